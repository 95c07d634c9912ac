"""Speed of the layer on a CPU, compared with Keras', PyTorch's and Flax's.

    python -m benchmarks.layer                      everything, about ten minutes
    python -m benchmarks.layer --quick              a first impression, under two minutes
    python -m benchmarks.layer --only layer --grid main
    python -m benchmarks.layer --only layer --shape 32,50,100,256
    python -m benchmarks.layer --from benchmarks/results/layer.json --markdown tables.md

All contenders get the same weights and inputs. Before any timing their outputs and weight gradients
are compared, and the path that keras_gru's layer took is checked. Then they run in turn, two calls
before each timed one; rounds in which other processes used more than a tenth of a core are thrown
away. docs/notes/layer_performance.md says more. Leave the machine alone meanwhile.

Results go to the folder: layer.json (every single time), layer.md (the tables) and layer.png (the
ratios), written after each shape, so that Ctrl-C loses nothing that was measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.layer.contest import MEASURES, RIVALLED, Contest, Shape, contests
from benchmarks.layer.memory import ENVIRONMENT, MEASURED
from benchmarks.layer.plot import save_plot
from benchmarks.layer.report import markdown, print_tables
from benchmarks.layer.rounds import counts_foreign_time, measure
from benchmarks.layer.worker import Key, Worker

_RIVALS = {"torch": "PyTorch", "flax": "Flax"}
_OUT = Path(__file__).parents[1] / "results"
_console = Console(width=None if sys.stdout.isatty() else 170)


def main(arguments: list[str] | None = None) -> int:
    """Measure, or show earlier results; returns 0, 1 after a failure, or 130 after Ctrl-C."""
    options = _parser().parse_args(arguments)
    if options.source:
        results = json.loads(options.source.read_text(encoding="utf-8"))
        _report(results, options.out, options.markdown, plot=options.out is not None)
        return 0
    folder = options.out or _OUT
    folder.mkdir(parents=True, exist_ok=True)
    rounds = options.rounds or (3 if options.quick else 7)
    todo = contests(options.only, options.grid, options.shape, options.quick)
    results = {"rounds": rounds, "environment": {}, "absent": {}, "contests": [], "memory": []}
    code = 0
    try:
        _run(todo, rounds, results, folder)
    except KeyboardInterrupt:
        code = 130
        _console.print("Interrupted.")
    except RuntimeError as error:
        code = 1
        _console.print(f"[red]Ended early:[/] {escape(str(error))}")
    if results["contests"] or results["memory"]:
        _report(results, folder, options.markdown, plot=True)
    return code


def _run(todo: list[Contest], rounds: int, results: dict[str, Any], folder: Path) -> None:
    timed = [contest for contest in todo if contest.table != "memory"]
    sized = [contest for contest in todo if contest.table == "memory"]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=_console) as progress:
        task = progress.add_task("starting", total=len(todo))

        def say(text: str) -> None:
            progress.update(task, description=text)

        def done(text: str) -> None:
            progress.advance(task)
            progress.console.print(text)
            _write(folder / "layer.json", json.dumps(results, indent=1))

        if timed:
            say("starting the frameworks")
            rivals = any(contest.table in RIVALLED for contest in timed)
            with _workers(folder, rivals, results) as workers:
                results["gemm"] = [workers[0].ask("gemm")]
                for contest in timed:
                    entry = _run_contest(contest, rounds, workers, say)
                    results["contests"].append(entry)
                    results["gemm"].append(workers[0].ask("gemm"))
                    done(f"{contest}: {entry['thrown_away']} rounds thrown away")
        for contest, found in _memory(sized, folder, say):
            results["memory"].append(found)
            done(str(contest))


@contextlib.contextmanager
def _workers(folder: Path, rivals: bool, results: dict[str, Any]) -> Iterator[list[Worker]]:
    """TensorFlow's worker, and those of the installed rivals."""
    log = folder / "layer.log"
    log.unlink(missing_ok=True)
    names = ("tensorflow", *(_RIVALS if rivals else ()))
    started = [Worker(name, log) for name in names]
    try:
        ready = []
        results["environment"] = _environment()
        for worker in started:
            try:
                worker.answer()
            except ModuleNotFoundError as error:
                if worker.framework == "tensorflow":
                    raise
                results["absent"][_RIVALS[worker.framework]] = str(error)
                _console.print(f"{_RIVALS[worker.framework]} is left out: {error}")
                continue
            ready.append(worker)
            results["environment"].update(worker.ask("versions"))
        yield ready
    finally:
        for worker in started:
            worker.stop()


def _run_contest(contest: Contest, rounds: int, workers: list[Worker], say: Any) -> dict[str, Any]:
    say(f"{contest}: compiling and comparing")
    runners: dict[Key, Worker] = {}
    details: dict[Key, tuple[str | None, int]] = {}
    for worker in workers if contest.table in RIVALLED else workers[:1]:
        weights = workers[0].ask("weights_for", worker.framework, contest)
        found = worker.ask("setup", contest, weights)
        details.update(found)
        runners.update(dict.fromkeys(found, worker))
    differences = workers[0].ask(
        "assert_equal",
        {key: worker.framework for key, worker in runners.items()},
        {key: worker.ask("result", key) for key, worker in runners.items()},
    )
    counted = measure(
        runners,
        rounds,
        [os.getpid(), *(worker.pid for worker in workers)],
        lambda clean, noisy: say(f"{contest}: round {clean} of {rounds}, {noisy} disturbed"),
    )
    for worker in workers:
        worker.ask("drop")
    return {
        "table": contest.table,
        "grid": contest.grid,
        "masked": contest.masked,
        "shape": contest.shape,
        "thrown_away": counted.thrown_away,
        "disturbed": counted.disturbed,
        "times": [
            {
                "measure": key[0],
                "contender": key[1],
                "against": details[key][0],
                "difference": differences[key],
                "seconds": seconds,
            }
            for key, seconds in counted.seconds.items()
        ],
    }


def _memory(
    todo: list[Contest], folder: Path, say: Any
) -> Iterator[tuple[Contest, dict[str, Any]]]:
    """Peak memory, every figure from a process of its own."""
    for contest in todo:
        say(str(contest))
        found: dict[str, Any] = {"shape": contest.shape}
        for name in MEASURED:
            worker = Worker("tensorflow", folder / "layer.log", ENVIRONMENT)
            try:
                worker.answer()
                worker.ask("setup", contest, worker.ask("weights_for", "tensorflow", contest))
                found[name] = worker.ask("peak_bytes", ("start", name), ("training", name))
            finally:
                worker.stop()
        yield contest, found


def _environment() -> dict[str, str]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        model = next((line.split(":")[1].strip() for line in lines if "model name" in line), model)
    return {
        "processor": model,
        "cores": str(cores),
        "foreign load": "watched" if counts_foreign_time() else "not known on this system",
        "python": platform.python_version(),
    }


def _report(results: dict[str, Any], folder: Path | None, extra: Path | None, plot: bool) -> None:
    print_tables(results, _console)
    text = markdown(results)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "layer.md", text)
        if plot:
            picture = save_plot(results, folder / "layer.png")
            _console.print(f"Written to {folder}" + ("" if picture else "; no plot: no matplotlib"))
    if extra is not None:
        _write(extra, text)
        _console.print(f"Tables written to {extra}")


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _parser() -> argparse.ArgumentParser:
    assert __doc__
    title, _, more = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.layer",
        description=title,
        epilog=more + "\ntables:\n" + "\n".join(f"  {k:<15}{v}" for k, v in MEASURES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--grid",
        choices=("main", "second", "all"),
        default="all",
        help="of the table `layer`: the shapes the layer was tuned on, others, or all (default)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=tuple(MEASURES),
        default=list(MEASURES),
        metavar="TABLE",
        help=f"tables to measure: {', '.join(MEASURES)} (default: all)",
    )
    parser.add_argument(
        "--shape",
        action="append",
        type=_shape,
        metavar="B,T,D,U",
        help="measure this shape instead, in every table; may be given again",
    )
    parser.add_argument(
        "--rounds", type=_positive, help="rounds that count, per shape (default 7; 3 with --quick)"
    )
    parser.add_argument("--quick", action="store_true", help="few shapes, three rounds")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="for results (default benchmarks/results)"
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the tables there as well"
    )
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="LAYER_JSON",
        help="measure nothing; show an earlier run's tables, and write them to --out if given",
    )
    return parser


def _shape(text: str) -> Shape:
    try:
        return Shape.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1. Received: {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
