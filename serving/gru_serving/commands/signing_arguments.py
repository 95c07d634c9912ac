"""The command-line arguments that say with which key a version is signed."""

import argparse
from pathlib import Path

from gru_serving.storage.signatures import Signer


def add_signing_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --sign and --certificate."""
    parser.add_argument(
        "--sign",
        type=Path,
        metavar="KEY",
        help="sign the version with this private key: PEM, an elliptic curve's, without a password",
    )
    parser.add_argument(
        "--certificate",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="with --sign: the certificate of the key, then those between it and the authority "
        "that servers trust",
    )


def signer_of(arguments: argparse.Namespace) -> Signer | None:
    """Return the signer that the arguments name; None for no signature.

    Raises:
        ValueError: There is a certificate without a key.
        InvalidArgument: The files are not what they should be.
    """
    if arguments.sign is None:
        if arguments.certificate:
            raise ValueError("--certificate: expected --sign KEY beside it; got no key")
        return None
    return Signer(arguments.sign, arguments.certificate)
