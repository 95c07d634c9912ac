"""`gru-serve verify`: replay a version's golden requests, in this process or against a server."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gru_serving.client import Target
from gru_serving.commands.connection_arguments import (
    add_connection_arguments,
    connect_as_told,
    exit_status,
    explain_asked,
)
from gru_serving.commands.terminal import (
    NO_ANSWER,
    USAGE,
    WRONG,
    add_debug_argument,
    command_parser,
    safe_text,
    waiting,
)
from gru_serving.engine.golden import (
    TOLERANCE,
    Engine,
    Verdict,
    VerificationError,
    WrongAnswerError,
    naming,
    read_golden,
    replay,
)
from gru_serving.errors import NotFound, ServingError
from gru_serving.release.verify import client_engine, verify_files
from gru_serving.storage.publishing import find_version

_EXAMPLES = """examples:
  gru-serve verify models/tickets/1
      load the version in this process: is the export intact?
  gru-serve verify models/tickets/1 --url http://localhost:8501
  gru-serve verify models/tickets --url grpcs://models.example.com:443 --label stable --json
      ask a server: does what it serves answer as this version did at export?

exit status, for CI:
  0  every answer is as at export
  1  a wrong answer, or a golden request refused: what is served is not this version
  2  nothing could be compared: wrong arguments, no golden requests, a version that does not load
     or that the server does not serve
  3  the server gave no usable answer: down, too slow, not TensorFlow Serving, or access refused
"""


def main(argv: Sequence[str]) -> int:
    """Replay; returns the exit status, as described in the help."""
    arguments = _parser().parse_args(argv)
    try:
        version = find_version(arguments.version)
        golden = read_golden(version)
        if arguments.url is None:
            with waiting(f"loading {version} and asking it"):
                verdict = verify_files(
                    version, arguments.tolerance, arguments.warmup, arguments.runtime
                )
        else:
            arguments.model = arguments.model or version.resolve().parent.name
            verdict = _against_server(version, golden, arguments)
    except (VerificationError, ServingError, ValueError, OSError) as error:
        if arguments.debug:
            raise
        status = _status(error, asked=arguments.url is not None)
        said = explain_asked(error, arguments)
        if arguments.json:
            print(json.dumps({"status": status, "error": said}))
        print(f"gru-serve verify: {said}", file=sys.stderr)
        return status
    _report(arguments, version, verdict)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "verify",
        "Check that a version still answers as it did at export: its files, loaded in "
        "this process, or the server at --url.",
        _EXAMPLES,
    )
    parser.add_argument(
        "version",
        type=Path,
        metavar="VERSION",
        help="directory of the version, or the base path for its highest",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=TOLERANCE,
        help="largest difference that counts as equal (default: %(default)g)",
    )
    parser.add_argument(
        "--warmup", action="store_true", help="without --url: also run the warmup requests"
    )
    parser.add_argument(
        "--runtime",
        choices=("tensorflow", "onnx"),
        default="tensorflow",
        help="without --url: library that runs the version (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_debug_argument(parser)
    add_connection_arguments(parser, url=None)
    parser.add_argument("--model", help="name on the server (default: the base path's name)")
    parser.add_argument(
        "--label", default="", help="ask for this label (default: the version's own number)"
    )
    parser.add_argument(
        "--latest", action="store_true", help="request the highest version that serves"
    )
    return parser


def _against_server(
    version: Path, golden: list[dict[str, Any]], arguments: argparse.Namespace
) -> Verdict:
    path = version.resolve()
    number = int(path.name) if path.name.isdecimal() else None
    if arguments.label or arguments.latest:
        number = None
    target = Target(arguments.model, number, arguments.label)
    with connect_as_told(arguments) as client:
        return replay(golden, _naming(client_engine(client, target)), arguments.tolerance)


def _naming(ask: Engine) -> Engine:
    """Return an engine whose errors name the request."""

    def asking(request: dict[str, Any]) -> Any:
        with naming(f"signature {request['signature_name']!r}"):
            return ask(request)

    return asking


def _status(error: Exception, asked: bool) -> int:
    if isinstance(error, WrongAnswerError):
        return WRONG
    if not asked or not isinstance(error, ServingError):
        return USAGE
    if exit_status(error) == NO_ANSWER:
        return NO_ANSWER
    return USAGE if isinstance(error, NotFound) else WRONG


def _report(arguments: argparse.Namespace, version: Path, verdict: Verdict) -> None:
    if arguments.json:
        outcome = {"status": 0, "version": str(version), **verdict._asdict()}
        print(json.dumps(outcome))
        return
    where = f"{arguments.url}: as {version}" if arguments.url else str(version)
    print(
        f"{where}: {verdict.requests} requests with {verdict.rows} rows answered as at "
        f"export; largest difference {verdict.largest_difference:.1e}"
    )
    for name, difference in sorted(verdict.by_signature.items()):
        print(f"  {safe_text(name):<16} {difference:.1e}")
