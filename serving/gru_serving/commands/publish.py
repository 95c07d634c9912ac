"""`gru-serve publish`: copy a version to a base path, as `export` would have written it."""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from gru_serving.commands.signing_arguments import add_signing_arguments, signer_of
from gru_serving.commands.terminal import USAGE, WRONG, command_parser, run_command
from gru_serving.engine.golden import VerificationError
from gru_serving.errors import InterfaceChangeError
from gru_serving.release.interface import ACCEPT_FLAG, ACCEPT_HELP, check_next_version
from gru_serving.release.verify import verify_files
from gru_serving.storage.digests import check_digests, has_digests, write_digests
from gru_serving.storage.publishing import (
    PublishError,
    find_version,
    publisher,
    put_in_place,
    remove_old,
)
from gru_serving.storage.signatures import has_signature

_EXAMPLES = """examples:
  gru-serve publish staging/tickets --to models/tickets             # its highest version
  gru-serve publish staging/tickets/1 --to models/tickets --as 7 --keep 3

The copy is made beside its place and compared with the digests written at export; its golden and
warmup requests are run on it, and only then is it renamed to its number: a server that watches the
base path never sees half a version. A second publisher meanwhile is refused.

exit status: 0 published; 1 the version does not answer as at export; 2 wrong arguments or files
"""


def main(argv: Sequence[str]) -> int:
    """Publish; returns the exit status, as described in the help."""
    parser = command_parser(
        "publish",
        "Check an exported version and copy it to another base path, under the next free number.",
        _EXAMPLES,
    )
    parser.add_argument(
        "version",
        type=Path,
        metavar="VERSION",
        help="directory of the version, or a base path for its highest",
    )
    parser.add_argument(
        "--to", type=Path, required=True, metavar="DIRECTORY", help="base path to publish to"
    )
    parser.add_argument(
        "--as",
        dest="number",
        type=int,
        metavar="N",
        help="number of the copy (default: the next free one)",
    )
    parser.add_argument(
        "--keep", type=int, metavar="N", help="afterwards remove all but the N highest versions"
    )
    parser.add_argument(
        "--unverified", action="store_true", help="publish without running golden requests"
    )
    parser.add_argument(ACCEPT_FLAG, action="store_true", help=ACCEPT_HELP)
    add_signing_arguments(parser)
    return run_command(
        parser,
        argv,
        _publish,
        lambda error: WRONG if isinstance(error, VerificationError) else USAGE,
        (PublishError, InterfaceChangeError, VerificationError),
    )


def _publish(arguments: argparse.Namespace) -> int:
    source = find_version(arguments.version)
    if arguments.number is not None and arguments.number < 1:
        raise ValueError(f"--as: expected a number from 1; got {arguments.number}")
    if arguments.keep is not None and arguments.keep < 1:
        raise ValueError(f"--keep: expected at least 1; got {arguments.keep}")
    signer = signer_of(arguments)
    with publisher(arguments.to) as aside:
        _copy(source, aside)
        if listed := has_digests(aside):
            check_digests(aside)
        if not arguments.allow_interface_change:
            check_next_version(arguments.to, aside)
        checked = "not verified"
        if not arguments.unverified:
            verdict = verify_files(aside, warmup=True)
            checked = f"{verdict.requests} golden requests answered as at export"
            # A file more would break a signature that stays.
            if not listed and (signer is not None or not has_signature(aside)):
                write_digests(aside)
        if signer is not None:
            signer.sign(aside)
        version = put_in_place(aside, arguments.to, arguments.number)
    print(f"published {source} as {version}; {checked}")
    if arguments.keep is not None:
        for old in remove_old(arguments.to, arguments.keep):
            print(f"removed {old}")
    return 0


def _copy(source: Path, aside: Path) -> None:
    try:
        shutil.copytree(source, aside, dirs_exist_ok=True)
    except shutil.Error as error:  # it lists every file
        failures = error.args[0]
        more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
        raise OSError(f"copying failed: {failures[0][2]}{more}") from None
