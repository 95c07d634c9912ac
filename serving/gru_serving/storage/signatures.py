"""Signatures of versions by OpenSSF Model Signing: written at export, required by some servers.

`<version>/assets.extra/model.sig` is a Sigstore bundle with the digests of all other files of the
version. The tool `model_signing` reads and writes the same. Keys and certificates are files, and
nothing here asks a network.
"""

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gru_serving.errors import InvalidArgument, RefusedVersion

FILE = Path("assets.extra", "model.sig")
# What the tool never covers, and no server reads.
_UNCOVERED = {FILE, *map(Path, (".git", ".gitattributes", ".github", ".gitignore"))}
_MAX_CHARACTERS = 500
# What reading JSON of any structure raises.
_NO_SIGNATURE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


class Signer:
    """Signs versions with the private key of an elliptic curve.

    Args:
        key: PEM file of the private key, on P-256, P-384 or P-521, without a password.
        certificates: PEM files of the certificate of that key and of those between it and the
            authority that servers trust; empty where servers trust the public key.

    Raises:
        InvalidArgument: A file cannot be read, or does not fit the others.
    """

    def __init__(self, key: Path, certificates: Sequence[Path] = ()) -> None:
        from model_signing import hashing, signing

        self._config = signing.Config()
        self._hashing = hashing.Config().set_ignored_paths(paths=[FILE])
        try:
            if certificates:
                self._config.use_certificate_signer(
                    private_key=key,
                    signing_certificate=certificates[0],
                    # Of no certificate the library makes an error; one more of the same is none.
                    certificate_chain=certificates[1:] or certificates,
                )
            else:
                self._config.use_elliptic_key_signer(private_key=key)
        except (OSError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgument(
                f"--sign {key}: expected the private key of an elliptic curve as PEM, without a "
                "password, and with --certificate the certificate of that key first; got: "
                f"{_words(error)}. `openssl genpkey -algorithm EC -pkeyopt "
                "ec_paramgen_curve:P-256 -out key.pem` makes a key"
            ) from None

    def sign(self, version: Path) -> None:
        """Write the signature of a version whose files are complete.

        Args:
            version: Directory of the version; a signature that it has is replaced.

        Raises:
            OSError: A file cannot be read, or the signature not be written.
            ValueError: The version has links, which no signature covers.
        """
        path = version / FILE
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        self._config.set_hashing_config(self._hashing).sign(version, path)


class UnsignedVersion(RefusedVersion):
    """A version without a signature, where one is required."""


class TrustedSigners:
    """The public keys and authorities whose signatures a server accepts.

    Args:
        paths: PEM files, each with one public key or with certificates of authorities. They are
            read again for every version, so that a key can be replaced without a restart.

    Raises:
        InvalidArgument: A file cannot be read, or holds neither.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._verifiers()

    def check(self, version: Path) -> None:
        """Check the signature of a version.

        Args:
            version: Directory of the version.

        Raises:
            RefusedVersion: There is no signature, none of these signers made it, or it is of other
                files.
        """
        path = version / FILE
        if not path.is_file():
            raise UnsignedVersion(
                f"{path}: expected the signature that --trusted_signers asks for; got none. "
                "`gru-serve export --sign KEY` and `gru-serve publish --sign KEY` write one"
            )
        try:
            bundle = json.loads(path.read_bytes())
            certified = "x509CertificateChain" in bundle["verificationMaterial"]
            _check_coverage(bundle)
        except _NO_SIGNATURE as error:
            raise RefusedVersion(
                f"{path}: expected a signature by OpenSSF Model Signing over all files of the "
                f"version; got: {_words(error)}"
            ) from None
        faults = []
        for signer, is_authority, verify in self._verifiers():
            try:
                if certified != is_authority:
                    raise ValueError(f"made with a {'certificate' if certified else 'key alone'}")
                verify(version, path)
                return
            except Exception as error:  # the library raises what others raise below it
                faults.append(f"by {signer}: {_words(error)}")
        raise RefusedVersion(f"{path}: the signature does not hold: {'; '.join(faults)}")

    def _verifiers(self) -> list[tuple[Path, bool, Callable[[Path, Path], None]]]:
        """Return each file, whether it holds authorities, and the check by it."""
        from model_signing import verifying

        found: list[tuple[Path, bool, Callable[[Path, Path], None]]] = []
        for path in self._paths:
            config = verifying.Config()
            try:
                if is_authority := b"-----BEGIN CERTIFICATE-----" in path.read_bytes():
                    config.use_certificate_verifier(certificate_chain=[path])
                else:
                    config.use_elliptic_key_verifier(public_key=path)
            except (OSError, TypeError, ValueError, AttributeError) as error:
                raise InvalidArgument(
                    "--trusted_signers: expected a public key on P-256, P-384 or P-521, or "
                    f"certificates of authorities, as PEM in {path}; got: {_words(error)}"
                ) from None
            found.append((path, is_authority, config.verify))
        return found


def has_signature(version: Path) -> bool:
    """Tell whether a version has a signature, by whomever."""
    return (version / FILE).exists()


def _check_coverage(bundle: Any) -> None:
    """Refuse a signature that leaves out files, or follows links out of the version.

    Raises:
        ValueError: The signature does not cover all that a server reads.
    """
    payload = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    serialization = payload["predicate"]["serialization"]
    left_out = {Path(name) for name in serialization.get("ignore_paths", ())} - _UNCOVERED
    if left_out or serialization["allow_symlinks"]:
        shown = ", ".join(sorted(map(str, left_out))) or "what links point to"
        raise ValueError(f"one that leaves out {shown}")


def _words(error: Exception) -> str:
    """Return the message of a library's error, on one line, without the bytes of digests."""
    text = " ".join(f"{error}".partition(": Expected ")[0].split())
    text = text.replace("\\'", "'").replace('["', "").replace("['", "").removesuffix("]")
    return text[:_MAX_CHARACTERS] or type(error).__name__
