"""Command line: trace a network, list and audit the worked examples, compare architectures."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from keras_gru.network import Network, NetworkError, read_network
from keras_gru.trace import trace
from keras_gru.trace_report import Layout, render
from keras_gru.worked_example import example_paths, load_example, load_examples
from keras_gru.worked_example_report import summary_table, write_markdown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except (NetworkError, OSError, ValueError) as error:
        sys.stderr.write(f"{parser.prog}: error: {error}\n")
        return 2
    except BrokenPipeError:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m keras_gru",
        description="Look inside a GRU: every number of its forward and backward pass.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    tracing = commands.add_parser(
        "trace",
        help="every intermediate of a small network, step by step",
        description="Print gates, states, losses, gradients by path, and the update of a "
        "network, each with the number of its equation in DERIVATION.md.",
        epilog="examples: python -m keras_gru trace good_movie | "
        "python -m keras_gru trace my_network.json --json",
    )
    tracing.add_argument("network", help="a worked example's name (see `list`) or a JSON file")
    tracing.add_argument("--variant", help="a named variant of a worked example")
    tracing.add_argument("--json", action="store_true", help="all numbers as JSON, unrounded")
    tracing.add_argument(
        "--decimals", type=int, default=4, choices=range(1, 13), metavar="1..12", help="default 4"
    )
    tracing.set_defaults(run=_trace)

    listing = commands.add_parser("list", help="the worked examples and how their texts fared")
    listing.set_defaults(run=_list)

    audit = commands.add_parser(
        "audit",
        help="write every printed number beside ours, and the errata, as Markdown",
        description="Judge every number that the texts print and write docs/worked_examples.md.",
    )
    audit.add_argument("output", type=Path, help="the Markdown file to write")
    audit.set_defaults(run=_audit)
    return parser


def _trace(options: argparse.Namespace) -> int:
    found = trace(_network(options.network, options.variant))
    if options.json:
        json.dump(found.to_json(), sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        console = Console()
        console.print(render(found, Layout(console.width, options.decimals)))
    return 0


def _network(name: str, variant: str | None) -> Network:
    if name not in example_paths():
        path = Path(name)
        if not path.exists():
            known = ", ".join(example_paths())
            raise NetworkError(f"network: expected a JSON file or one of {known}, got {name!r}")
        if variant is not None:
            raise NetworkError(f"--variant: expected a worked example, got the file {name!r}")
        return read_network(path)
    network = load_example(name).network(variant)
    if network is None:
        raise NetworkError(f"network: {name!r} is arithmetic without a network; see `audit`")
    return network


def _list(options: argparse.Namespace) -> int:  # noqa: ARG001
    Console().print(summary_table(load_examples()))
    return 0


def _audit(options: argparse.Namespace) -> int:
    write_markdown(load_examples(), options.output)
    sys.stdout.write(f"wrote {options.output}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
