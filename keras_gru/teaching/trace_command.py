"""`python -m keras_gru trace`: which network, and shown how."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from keras_gru.teaching.cells.registry import CELLS
from keras_gru.teaching.columns.report import columns_report
from keras_gru.teaching.exercise import run_exercise
from keras_gru.teaching.network import Network, read_network
from keras_gru.teaching.network_fields import NetworkError
from keras_gru.teaching.paths import last_paths
from keras_gru.teaching.trace import Trace, trace
from keras_gru.teaching.trace_page import write_trace_page
from keras_gru.teaching.trace_report import render
from keras_gru.teaching.value_table import Layout
from keras_gru.teaching.worked_example import WorkedExample, example_paths, load_example

_BLANKS = 8
_EVERY_CELL = "de_to_p"
_INTERRUPTED = 130


def add_trace(commands: Any) -> None:
    """Add the command to a parser's sub-commands."""
    tracing = commands.add_parser(
        "trace",
        help="print every intermediate value of a small network",
        description="Print gates, states, losses, gradients by path, and the update of a "
        "network, each with the number of its equation in DERIVATION.md.",
        epilog="examples: python -m keras_gru trace good_movie | "
        "python -m keras_gru trace --cell lstm | "
        "python -m keras_gru trace my_network.json --json",
    )
    tracing.add_argument(
        "network",
        nargs="?",
        help="a worked example's name (see `list`) or a JSON file; by default "
        f"{_EVERY_CELL}, which has every cell",
    )
    tracing.add_argument("--variant", help="a named variant of a worked example")
    tracing.add_argument(
        "--cell", choices=tuple(CELLS), help="the worked example with this recurrent cell"
    )
    shown = tracing.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="all numbers as JSON, unrounded")
    shown.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page in which every number can be changed; for GRUs",
    )
    shown.add_argument(
        "--columns",
        action="store_true",
        help="as texts draw it: columns, matrices and [h, x], in the symbols of the texts",
    )
    shown.add_argument(
        "--exercise",
        nargs="?",
        const=_BLANKS,
        type=int,
        metavar="BLANKS",
        help=f"leave some lines blank (default {_BLANKS}), and check your answers",
    )
    tracing.add_argument(
        "--decimals", type=int, default=4, choices=range(1, 13), metavar="1..12", help="default 4"
    )
    tracing.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Trace a network; returns the exit status."""
    if options.exercise is not None and options.exercise < 1:
        raise NetworkError(f"--exercise: expected 1 blank or more, got {options.exercise}")
    example, variant, network = _network(options.network, options.variant, options.cell)
    if options.html is not None:
        write_trace_page(network, options.html, example, variant)
        sys.stdout.write(f"wrote {options.html}\n")
        return 0
    found = trace(network)
    if options.json:
        paths = last_paths(found)
        split = {} if paths is None else {"paths": paths.to_json()}
        json.dump({**found.to_json(), **split}, sys.stdout, indent=1)
        sys.stdout.write("\n")
    elif options.exercise is not None:
        return _exercise(found, options.exercise)
    elif options.columns:
        width = Console().width
        if found.network.note:
            Console().print(found.network.note, markup=False, highlight=False)
        for paragraph in columns_report(found, width, options.decimals):
            sys.stdout.write(f"{paragraph}\n")
    else:
        console = Console()
        console.print(render(found, Layout(console.width, options.decimals)))
    return 0


def _exercise(found: Trace, count: int) -> int:
    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def ask(prompt: str) -> str:
        sys.stdout.write(prompt)
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        if not sys.stdin.isatty():
            sys.stdout.write(line.rstrip("\n") + "\n")  # a terminal has shown it already
        return line

    try:
        run_exercise(found, count, ask, say)
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


def _network(
    name: str | None, variant: str | None, cell: str | None
) -> tuple[WorkedExample | None, str | None, Network]:
    """The network, and the example and variant that it is of."""
    name = _EVERY_CELL if name is None else name
    if name not in example_paths():
        return None, None, _from_file(Path(name), variant, cell)
    example = load_example(name)
    if cell is not None:
        if variant is not None:
            raise NetworkError("--cell: expected this or --variant, got both")
        variant = example.variant_with(cell)
    network = example.network(variant)
    if network is None:
        raise NetworkError(f"network: {name!r} is arithmetic without a network; see `audit`")
    return example, variant, network


def _from_file(path: Path, variant: str | None, cell: str | None) -> Network:
    if not path.exists():
        known = ", ".join(example_paths())
        raise NetworkError(f"network: expected a JSON file or one of {known}, got {str(path)!r}")
    for option, value in (("--variant", variant), ("--cell", cell)):
        if value is not None:
            raise NetworkError(f"{option}: expected a worked example, got the file {str(path)!r}")
    return read_network(path)
