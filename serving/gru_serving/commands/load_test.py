"""`gru-serve load-test`: throughput and latency of a server."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gru_serving.client import Target
from gru_serving.codecs.signature import DEFAULT_SIGNATURE
from gru_serving.commands.connection_arguments import (
    NO_ANSWER,
    USAGE,
    WRONG,
    add_connection_arguments,
    add_target_arguments,
    check_texts,
    connection_options,
    exit_status,
    explain_error,
)
from gru_serving.commands.terminal.help_format import HelpFormatter
from gru_serving.errors import InvalidArgument, PlotError, ServingError
from gru_serving.named_files import naming_file
from gru_serving.release.golden import VerificationError, read_golden
from gru_serving.storage.publishing import find_version

_EXAMPLES = """examples:
  gru-serve load-test --model sentiment --golden models/sentiment
      8 clients, each sending its next request when the last is answered (closed loop)
  gru-serve load-test --url grpc://localhost:8500 --model sentiment --rate 500 "a fine film"
      500 requests a second are due, at random times, whatever the answers take (open loop)
  gru-serve load-test --model sentiment --golden models/sentiment --signature step \\
      --concurrency 32 --processes 2 --seconds 30 --plot load.png --json load.json

A closed loop finds the highest throughput. An open loop finds what users of a given traffic
wait: latencies count from the time a request was due, so a stall is charged for all that had to
wait for it. Run it on another machine than the server's where you can; on the same one the two
share its cores.

exit status: 0; 1 where requests failed; 2 wrong arguments or files; 3 no usable answer
"""


def main(argv: Sequence[str]) -> int:
    """Measure; returns the exit status, as the help says."""
    arguments = _parser().parse_args(argv)

    try:
        summary = _measure(arguments)
    except (PlotError, VerificationError, ServingError, ValueError, OSError) as error:
        if arguments.debug:
            raise
        print(f"gru-serve load-test: {explain_error(error, arguments)}", file=sys.stderr)
        return USAGE if isinstance(error, VerificationError) else exit_status(error)
    if summary["ok"] == 0:
        return NO_ANSWER
    return WRONG if summary["errors"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gru-serve load-test",
        description="Measure throughput and latency of a server, over REST or gRPC.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="one request each")
    parser.add_argument(
        "--golden", type=Path, metavar="VERSION", help="send a version's golden requests in turn"
    )
    parser.add_argument("--signature", default=DEFAULT_SIGNATURE, help="(default: %(default)s)")
    parser.add_argument("--batch", type=int, default=1, help="texts per request (default: 1)")
    parser.add_argument(
        "--concurrency",
        type=int,
        help="clients (default: 8); with --rate the maximum number of connections (default: 256)",
    )
    parser.add_argument(
        "--rate", type=float, metavar="R", help="open loop: requests due per second"
    )
    parser.add_argument("--arrivals", choices=("poisson", "constant"), default="poisson")
    parser.add_argument("--seconds", type=float, default=10.0, help="(default: 10)")
    parser.add_argument(
        "--warmup",
        type=float,
        default=1.0,
        help="seconds of load before the measurement (default: 1)",
    )
    parser.add_argument("--processes", type=int, default=1, help="sending processes (default: 1)")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the arrival times (default: 0)"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a .png, .svg or .pdf")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the figures; - prints them"
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    add_connection_arguments(parser)
    add_target_arguments(parser)
    return parser


def _measure(arguments: argparse.Namespace) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import Progress

    from gru_serving.client.options import ClientOptions
    from gru_serving.load_test.load import run_load
    from gru_serving.load_test.plan import LoadPlan
    from gru_serving.load_test.report import plot, show, summarize
    from gru_serving.load_test.requests import encode_requests

    options = ClientOptions(**connection_options(arguments))
    target = Target(arguments.model, arguments.version, arguments.label)
    batches = _batches(arguments)
    concurrency = arguments.concurrency or (8 if arguments.rate is None else 256)
    plan = LoadPlan(
        arguments.url,
        encode_requests(arguments.url, batches, target, arguments.signature, options),
        concurrency,
        arguments.rate,
        arguments.arrivals,
        arguments.seconds,
        arguments.warmup,
        arguments.processes,
        arguments.timeout,
        arguments.seed,
        options,
    )
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("load", total=plan.warmup + plan.seconds)
        result = run_load(plan, lambda seconds: progress.update(bar, completed=seconds))
    summary = summarize(plan, result)
    text = json.dumps(summary, indent=1)
    if arguments.json is not None and str(arguments.json) != "-":
        with naming_file(arguments.json):
            arguments.json.write_text(text + "\n", "utf-8")
    print(text if str(arguments.json) == "-" else show(summary))
    if arguments.plot is not None:
        plot(plan, result, arguments.plot)
    return summary


def _batches(arguments: argparse.Namespace) -> list[Any]:
    if bool(arguments.texts) == bool(arguments.golden):
        raise InvalidArgument(
            "expected either texts or --golden VERSION; got "
            + ("both" if arguments.texts else "neither (see --help)")
        )
    if arguments.batch < 1:
        raise InvalidArgument(f"--batch: expected at least 1; got {arguments.batch}")
    if arguments.texts:
        check_texts(arguments.texts)
        return [[text] * arguments.batch for text in arguments.texts]
    golden = read_golden(find_version(arguments.golden))
    fitting = [
        request["inputs"]
        for request in golden
        if request["signature_name"] == arguments.signature and "inputs" in request
    ]
    if not fitting:
        known = sorted({one["signature_name"] for one in golden if "inputs" in one})
        raise InvalidArgument(f"--signature: expected one of {known}; got {arguments.signature!r}")
    return fitting
