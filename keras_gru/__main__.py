"""Command line: trace a network, list and audit the worked examples, compare architectures."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from keras_gru.compilations import run_counting, summary
from keras_gru.missing_extra import naming_extra
from keras_gru.teaching.cells import CELLS
from keras_gru.teaching.columns import columns_report
from keras_gru.teaching.exercise import run_exercise
from keras_gru.teaching.network import Network, NetworkError, read_network
from keras_gru.teaching.trace import Trace, last_paths, trace
from keras_gru.teaching.trace_report import Layout, render, write_trace_page
from keras_gru.teaching.worked_example import (
    WorkedExample,
    example_paths,
    load_example,
    load_examples,
)
from keras_gru.teaching.worked_example_report import (
    summary_table,
    texts_table,
    variants_table,
    write_markdown,
)

_SIGPIPE_STATUS = 128 + 13
"""The exit status that shells report for SIGPIPE, a signal that Windows lacks."""
_INTERRUPTED_STATUS = 130
_DEFAULT_BLANKS = 8
_DEFAULT_EXAMPLE = "de_to_p"
"""A worked example that has every cell."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        status = int(options.run(options))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe; otherwise Python prints an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE_STATUS
    except (NetworkError, OSError, ValueError, ModuleNotFoundError) as error:
        sys.stderr.write(f"{parser.prog}: error: {error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m keras_gru",
        description="Look inside a GRU, an LSTM or a vanilla RNN: every number of its forward and "
        "backward pass.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_trace(commands)
    listing = commands.add_parser(
        "list", help="list the worked examples and how many of their numbers are right"
    )
    listing.set_defaults(run=_list)

    audit = commands.add_parser(
        "audit",
        help="write the printed and the computed numbers, and the errata, as Markdown",
        description="Check every number printed in the texts, and write docs/worked_examples.md.",
    )
    audit.add_argument("output", type=Path, help="the Markdown file to write")
    audit.set_defaults(run=_audit)
    _add_compare(commands)

    counted = commands.add_parser(
        "compilations",
        help="run a script, then list the programs that XLA compiled for it",
        description="Run a Python script, and print which programs XLA compiled meanwhile, for "
        "GRUs and for other functions, how long each took, and how there would be fewer.",
        epilog="example: python -m keras_gru compilations train.py --epochs 3",
    )
    counted.add_argument("script", help="the script")
    counted.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    counted.set_defaults(run=_compilations)
    return parser


def _add_trace(commands: Any) -> None:
    tracing = commands.add_parser(
        "trace",
        help="print every intermediate value of a small network",
        description="Print gates, states, losses, gradients by path, and the update of a "
        "network, each with the number of its equation in DERIVATION.md.",
        epilog="examples: python -m keras_gru trace good_movie | "
        "python -m keras_gru trace --cell lstm | "
        "python -m keras_gru trace my_network.json --json",
    )
    option = tracing.add_argument
    which = "a worked example's name (see `list`) or a JSON file; by default "
    option("network", nargs="?", help=f"{which}{_DEFAULT_EXAMPLE}, which has every cell")
    option("--variant", help="a named variant of a worked example")
    option("--cell", choices=tuple(CELLS), help="the worked example with this recurrent cell")
    shown = tracing.add_mutually_exclusive_group()
    choice = shown.add_argument
    choice("--json", action="store_true", help="all numbers as JSON, unrounded")
    page = "write a page in which every number can be changed; for GRUs"
    choice("--html", type=Path, metavar="FILE", help=page)
    drawn = "as texts draw it: columns, matrices and [h, x], in the symbols of the texts"
    choice("--columns", action="store_true", help=drawn)
    blanks = f"leave some lines blank (default {_DEFAULT_BLANKS}), and check your answers"
    many: Any = {"nargs": "?", "const": _DEFAULT_BLANKS, "metavar": "BLANKS"}
    choice("--exercise", type=int, help=blanks, **many)
    places: Any = {"choices": range(1, 13), "metavar": "1..12"}
    option("--decimals", type=int, default=4, help="default 4", **places)
    tracing.set_defaults(run=_trace)


def _add_compare(commands: Any) -> None:
    compare = commands.add_parser(
        "compare",
        help="train RNN, LSTM, GRU, MGU and coupled GRU side by side",
        description="Compare the cells on the adding problem with growing lengths (and the "
        "gradient that reaches each state), on completing one word, and on predicting the next "
        "character of a text. Writes report.md, runs.json and plots. The default takes a few "
        "minutes on two "
        "cores; Ctrl-C reports the runs that are complete.",
        epilog="example: python -m keras_gru compare --lengths 30 100 --seeds 3 --output runs/long",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    option = compare.add_argument
    option("--output", type=Path, default=Path("runs/comparison"), help="folder to write to")
    tasks = ("adding", "word", "corpus")
    option("--tasks", nargs="+", choices=tasks, default=list(tasks), help="tasks to train on")
    lengths = "sequence lengths of the adding problem"
    option("--lengths", nargs="+", type=int, default=[10, 30, 60], help=lengths)
    option("--updates", type=int, default=800, help="maximum number of weight updates per run")
    option("--units", type=int, default=32, help="size of the state")
    match = "what all cells have as many of: units, or parameters, about those of a GRU of --units"
    option("--match", choices=("units", "parameters"), default="units", help=match)
    rate = "learning rate of Adam, for all cells"
    option("--learning-rate", type=float, default=0.005, help=rate)
    option("--seeds", type=int, default=1, help="runs of each cell and task")
    corpus = "text file of 5,000 characters or more; without it, scikit-learn's data set "
    option("--corpus", type=Path, help=f"{corpus}descriptions")
    compare.set_defaults(run=_compare)


def _trace(options: argparse.Namespace) -> int:
    if options.exercise is not None and options.exercise < 1:
        raise NetworkError(f"--exercise: expected 1 blank or more, got {options.exercise}")
    example, variant, network = _network(options.network, options.variant, options.cell)
    if options.html is not None:
        write_trace_page(network, options.html, example, variant)
        sys.stdout.write(f"wrote {options.html}\n")
        return 0
    found = trace(network)
    console = Console()
    if options.json:
        paths = last_paths(found)
        split = {} if paths is None else {"paths": paths.to_json()}
        json.dump({**found.to_json(), **split}, sys.stdout, indent=1)
        sys.stdout.write("\n")
    elif options.exercise is not None:
        return _exercise(found, options.exercise)
    elif options.columns:
        if network.note:
            console.print(network.note, markup=False, highlight=False)
        for paragraph in columns_report(found, console.width, options.decimals):
            sys.stdout.write(f"{paragraph}\n")
    else:
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
        return _INTERRUPTED_STATUS
    return 0


def _network(
    name: str | None, variant: str | None, cell: str | None
) -> tuple[WorkedExample | None, str | None, Network]:
    """Find the network that the options name, with its worked example and variant."""
    name = _DEFAULT_EXAMPLE if name is None else name
    if name not in example_paths():
        return None, None, _network_of_file(Path(name), variant, cell)
    example = load_example(name)
    if cell is not None:
        if variant is not None:
            raise NetworkError("--cell: expected this or --variant, got both")
        variant = example.variant_with(cell)
    network = example.network(variant)
    if network is None:
        raise NetworkError(f"network: {name!r} is arithmetic without a network; see `audit`")
    return example, variant, network


def _network_of_file(path: Path, variant: str | None, cell: str | None) -> Network:
    if not path.exists():
        known = ", ".join(example_paths())
        raise NetworkError(f"network: expected a JSON file or one of {known}, got {str(path)!r}")
    for option, value in (("--variant", variant), ("--cell", cell)):
        if value is not None:
            raise NetworkError(f"{option}: expected a worked example, got the file {str(path)!r}")
    return read_network(path)


def _compilations(options: argparse.Namespace) -> int:
    status, found = run_counting([options.script, *options.arguments])
    sys.stderr.write(summary(found) + "\n")
    return status


def _list(options: argparse.Namespace) -> int:  # noqa: ARG001
    examples = load_examples()
    console = Console()
    console.print(summary_table(examples))
    console.print("\nThe texts that they quote:")
    console.print(texts_table())
    console.print("\nVariants, for trace NAME --variant VARIANT:")
    console.print(variants_table(examples))
    return 0


def _audit(options: argparse.Namespace) -> int:
    write_markdown(load_examples(), options.output)
    sys.stdout.write(f"wrote {options.output}\n")
    return 0


def _compare(options: argparse.Namespace) -> int:
    from keras_gru.teaching.comparison import ComparisonConfig, Run, read_corpus, run_comparison
    from keras_gru.teaching.comparison_report import write_report, write_runs

    given: dict[str, Any] = {**vars(options), "lengths": tuple(options.lengths)}
    names = {field.name for field in fields(ComparisonConfig)}
    config = ComparisonConfig(**{name: given[name] for name in names & given.keys()})
    # Fail now rather than at the end of the training.
    with naming_extra("plot", "matplotlib"):
        import matplotlib  # noqa: F401
    if "corpus" in options.tasks:
        read_corpus(config.corpus)
    runs: list[Run] = []
    interrupted = False
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    loss_column = TextColumn("loss {task.fields[loss]:.4f}")
    with RichProgress(*columns, loss_column, TimeRemainingColumn(), transient=True) as shown:
        bar = shown.add_task("", total=config.updates, loss=float("nan"))

        def progress(name: str, done: int, total: int, loss: float) -> None:
            shown.update(bar, description=name, completed=done, total=total, loss=loss)

        try:
            for run in run_comparison(config, tuple(options.tasks), progress):
                runs.append(run)
                write_runs(config, runs, options.output)
                shown.console.print(
                    f"{run.task}, {run.length} steps: {run.architecture}, seed {run.seed}: "
                    f"{run.updates} updates in {run.seconds:.1f} s, loss {run.losses[-1]:.4f}"
                )
        except KeyboardInterrupt:
            interrupted = True
    if not runs:
        sys.stderr.write("interrupted before a run was complete; nothing written\n")
        return _INTERRUPTED_STATUS
    report = write_report(config, runs, options.output)
    Console().print(Markdown(report.read_text(encoding="utf-8")))
    sys.stdout.write(f"wrote {report}\n")
    return _INTERRUPTED_STATUS if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
