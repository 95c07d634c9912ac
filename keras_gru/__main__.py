"""Command line: trace a network, list and audit the worked examples, compare architectures."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from keras_gru.missing_extra import naming_extra
from keras_gru.teaching.network_fields import NetworkError
from keras_gru.teaching.trace_command import add_trace
from keras_gru.teaching.worked_example import load_examples
from keras_gru.teaching.worked_example_report import (
    summary_table,
    texts_table,
    variants_table,
    write_markdown,
)

_READER_GONE = 128 + 13  # the status that shells report for SIGPIPE, which Windows lacks


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
        return _READER_GONE
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

    add_trace(commands)

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
    option(
        "--lengths",
        nargs="+",
        type=int,
        default=[10, 30, 60],
        help="sequence lengths of the adding problem",
    )
    option("--updates", type=int, default=800, help="maximum number of weight updates per run")
    option("--units", type=int, default=32, help="size of the state")
    option(
        "--match",
        choices=("units", "parameters"),
        default="units",
        help="what all cells have as many of: units, or parameters, about those of a GRU of "
        "--units",
    )
    option(
        "--learning-rate", type=float, default=0.005, help="learning rate of Adam, for all cells"
    )
    option("--seeds", type=int, default=1, help="runs of each cell and task")
    option(
        "--corpus",
        type=Path,
        help="text file of 5,000 characters or more; without it, scikit-learn's data set "
        "descriptions",
    )
    compare.set_defaults(run=_compare)
    return parser


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
    from keras_gru.teaching.comparison import ComparisonConfig, Run
    from keras_gru.teaching.comparison_report import write_report, write_runs
    from keras_gru.teaching.comparison_tasks import read_corpus, run_comparison

    config = ComparisonConfig(
        lengths=tuple(options.lengths),
        updates=options.updates,
        units=options.units,
        match=options.match,
        learning_rate=options.learning_rate,
        seeds=options.seeds,
        corpus=options.corpus,
    )
    # What would fail at the end fails now.
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
        return 130
    report = write_report(config, runs, options.output)
    Console().print(Markdown(report.read_text(encoding="utf-8")))
    sys.stdout.write(f"wrote {report}\n")
    return 130 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
