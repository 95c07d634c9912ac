"""`gru-serve conformance`: which answers of a server are those of TensorFlow Serving."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gru_serving.commands.terminal import (
    NO_ANSWER,
    USAGE,
    WRONG,
    command_parser,
    run_command,
    safe_text,
)
from gru_serving.conformance import kit
from gru_serving.conformance.report import report_page
from gru_serving.conformance.server import Server
from gru_serving.errors import Unavailable
from gru_serving.named_files import write_whole

_OWN = "gru-serve"
_EXAMPLES = """examples:
  gru-serve conformance --make-models /tmp/kit
  gru-serve conformance --grpc localhost:8500 --rest http://localhost:8501 --models /tmp/kit
  gru-serve conformance --rest http://localhost:8501 --report report.html --json server.json

The first writes the models that the cases need, and prints the command lines that start a server of
them: this project's, and the container of TensorFlow Serving. The second asks that server all cases
over both transports. The third asks one transport, and writes a page to read and a file to compare
with that of another server: `diff`.

A server of another kind needs models of the same names that answer likewise. --models
is their folder as the server sees it (/models in a container), for the cases that change what it
serves.

verdicts:
  same                   the answer is TensorFlow Serving's
  deviates (documented)  it is another, and the file of --deviations says why
  deviates               it is another
  not offered            the server has no such method, or the address was not given

Cases are tables of TOML files, gru_serving/conformance/cases; README.md beside them says how to
add one. --deviations gru-serve stands for the deviations that this project documents.

exit status: 0 nothing deviates, or only as documented; 1 an answer deviates; 2 wrong arguments;
3 no server answers there
"""


def main(argv: Sequence[str]) -> int:
    """Ask a server all cases, or write the models; returns the exit status, as the help says."""
    parser = command_parser(
        "conformance",
        "Ask any running server whether it speaks TensorFlow Serving's API: more than 400 cases "
        "from its sources and tests, each with a verdict.",
        _EXAMPLES,
    )
    parser.add_argument("--grpc", metavar="HOST:PORT", help="address of gRPC")
    parser.add_argument("--rest", metavar="URL", help="address of REST, http://HOST:PORT")
    parser.add_argument(
        "--models", metavar="DIR", help="folder of the models as the server sees it"
    )
    parser.add_argument(
        "--make-models",
        type=Path,
        metavar="DIR",
        help="write the models and exit; needs TensorFlow",
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="page to write (HTML)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="outcomes to write (JSON)")
    parser.add_argument(
        "--deviations", metavar="FILE", help=f"TOML file of documented deviations, or {_OWN}"
    )
    parser.add_argument(
        "--timeout", type=float, default=10.0, metavar="SECONDS",
        help="time after which a request counts as not answered (default: %(default)g)",
    )  # fmt: skip
    return run_command(parser, argv, _run, _status)


def _status(error: Exception) -> int:
    return NO_ANSWER if isinstance(error, Unavailable) else USAGE


def _run(arguments: argparse.Namespace) -> int:
    if arguments.make_models is not None:
        return _make_models(arguments.make_models)
    if arguments.grpc is None and arguments.rest is None:
        raise ValueError(
            "expected an address, as --grpc HOST:PORT, --rest URL or both, or --make-models DIR; "
            "got none"
        )
    deviations = {}
    if arguments.deviations is not None:
        named = kit.DEVIATIONS if arguments.deviations == _OWN else Path(arguments.deviations)
        deviations = kit.read_deviations(named)
    cases, begun = kit.all_cases(), time.monotonic()
    with Server(arguments.grpc, arguments.rest, arguments.models, arguments.timeout) as server:
        _check_answers(server)
        outcomes = kit.ask(server, cases, deviations, _tell)
    seconds = time.monotonic() - begun
    name = " and ".join(one for one in (arguments.grpc, arguments.rest) if one is not None)
    if arguments.json is not None:
        text = json.dumps(kit.as_record(outcomes), ensure_ascii=False, indent=1)
        write_whole(arguments.json, f"{text}\n")
    if arguments.report is not None:
        write_whole(arguments.report, report_page(outcomes, name, seconds))
    counts = kit.counts(outcomes)
    print(f"{len(outcomes)} cases in {seconds:.0f} s")
    for verdict, number in counts.items():
        print(f"{number:>5}  {verdict}")
    return WRONG if counts[kit.DEVIATES] else 0


def _check_answers(server: Server) -> None:
    """Send a request over each transport; any answer will do.

    Raises:
        Unavailable: No server answers at an address.
    """
    if server.speaks("rest") and (failure := server.rest("GET", "/v1/models/text").failure):
        raise Unavailable(f"--rest: expected a server there; got {failure}")
    if server.speaks("grpc"):
        answer = server.grpc("GetModelStatus", 'model_spec { name: "text" }')
        if answer.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
            raise Unavailable(f"--grpc: expected a server there; got {answer.said}")


def _tell(outcome: kit.Outcome) -> None:
    """Print a case that is not the same, as soon as it is known."""
    if outcome.verdict == kit.SAME:
        return
    print(safe_text(f"{outcome.verdict}: {outcome.case.name}: {outcome.reason}"))
    sys.stdout.flush()


def _make_models(folder: Path) -> int:
    from gru_serving.conformance.models import command_lines, make_models

    make_models(folder)
    print(f"models {folder}\n")
    for name, line in command_lines(folder).items():
        print(f"{name}:\n  {line}\n")
    return 0
