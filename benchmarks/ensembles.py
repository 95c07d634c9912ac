"""What an average of three runs gains over each of them, and how much of it one network keeps.

    python -m benchmarks.ensembles sentiment --data ../shared/data/mr --triples 0 3 6
    python -m benchmarks.ensembles forecasting --data ../shared/data/classic/monthly-sunspots.csv

Each triple is three trainings that differ in the seed alone, on one split (of texts by
`--split-seed 0`); their
average; and the network that is distilled from it, by `gru-train ensemble --seeds 3 --distil`. Runs
that are in the folder already are taken from there, so that a measurement can be made in pieces.
The share kept is that of the gain summed over the triples. Times are of a batch of test rows, the
models in turn, the least of many.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import tensorflow as tf

from gru_training.forecasting.run import ForecastingRun
from gru_training.task import Task, find_task
from gru_training.words.vocabulary import token_ids

MEMBERS, ROWS, REPEATS = 3, 32, 30
STYLES = {
    "sentiment": {"accuracy": ".2%", "log_loss": ".4f"},
    "forecasting": {"mse": ".4f", "mae": ".4f"},
}


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing and print the tables; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ensembles",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("task", choices=list(STYLES))
    parser.add_argument("--data", type=Path, required=True, help="texts with classes, or a series")
    parser.add_argument("--triples", nargs="+", type=int, default=[0], help="their first seeds")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs/ensembles"))
    parser.add_argument("--settings", nargs=argparse.REMAINDER, default=[], help="of the training")
    arguments = parser.parse_args(argv)
    found = [triple(arguments, seed) for seed in arguments.triples]
    task = find_task(arguments.task)
    metrics = [task.open_run(path).metrics for path in found]
    print("\n".join(table(metrics, STYLES[arguments.task])))
    print("\n".join(costs(task, found[0])))
    return 0


def triple(arguments: argparse.Namespace, seed: int) -> Path:
    """The distilled run of a triple."""
    data: Path = arguments.data
    folder: Path = arguments.runs_dir
    settings: list[str] = arguments.settings
    name = f"{data.stem}-{seed}"
    train = [arguments.task, "--data", str(data), "--seed", str(seed)]
    train += ["--split-seed", "0"] if arguments.task == "sentiment" else []
    train += ["--runs-dir", str(folder), "--name", name, *settings]
    average = ["ensemble", str(folder / name), "--seeds", str(MEMBERS), "--distil"]
    made = folder / f"{name}-ensemble-distilled"
    for path, command in ((folder / name, train), (made, average)):
        if not path.exists():
            subprocess.run(
                [sys.executable, "-m", "gru_training", *command], check=True, stdout=sys.stderr
            )
    return made


def table(metrics: Sequence[Mapping[str, Any]], styles: Mapping[str, str]) -> list[str]:
    """Measures of all triples, of validation and test rows.

    Args:
        metrics: Of the distilled run of each triple.
        styles: How to write each measure.
    """
    shown = [(name, part) for name in styles for part in ("validation", "test")]
    lines = [
        "| | " + " | ".join(f"{name.replace('_', ' ')}, {part}" for name, part in shown) + " |",
        "|---|" + "---:|" * len(shown),
    ]
    figures = [each["distilled"] for each in metrics]
    singles = [run for each in figures for run in each["runs"]]
    averages, distilled = [each["average"] for each in figures], [each["model"] for each in figures]
    for title, rows in (
        (f"single runs ({len(singles)})", singles),
        (f"averages of {MEMBERS} ({len(figures)})", averages),
        (f"distilled ({len(figures)})", distilled),
    ):
        cells = [_mean([row[part][name] for row in rows], styles[name]) for name, part in shown]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    kept = []
    for name, part in shown:
        of = [statistics.mean(row[part][name] for row in rows)
              for rows in (singles, averages, distilled)]  # fmt: skip
        gain = of[1] - of[0]
        kept.append(f"{(of[2] - of[0]) / gain:.0%}" if gain else "")
    return [*lines, f"| share of the gain kept | {' | '.join(kept)} |"]


def batch_of(run: Any) -> tf.Tensor:
    """Test rows as a model reads them."""
    if isinstance(run, ForecastingRun):
        return tf.constant(run.preprocessor().standardise(run.test_windows(ROWS)))
    texts = [row.text for row in islice(run.test_predictions(), ROWS)]
    ids = token_ids(run.preprocessor(), texts)
    return tf.ragged.constant([row.tolist() for row in ids], dtype=tf.int32).to_tensor()


def _mean(values: Sequence[float], style: str) -> str:
    text = format(statistics.mean(values), style)
    if len(values) > 1:
        text += f" ± {format(statistics.stdev(values), style)}"
    return text


def costs(task: Task, distilled: Path) -> list[str]:
    """Bytes and milliseconds of the models of a triple."""
    whole = distilled.with_name(distilled.name.removesuffix("-distilled"))
    single = whole.with_name(whole.name.removesuffix("-ensemble"))
    paths = {"single run": single, "average": whole, "distilled": distilled}
    runs = {name: task.open_run(path) for name, path in paths.items()}
    batch = batch_of(runs["average"])
    functions = {
        name: tf.function(partial(run.load_model(), training=False)) for name, run in runs.items()
    }
    least = dict.fromkeys(runs, float("inf"))
    for _ in range(REPEATS):
        for name, function in functions.items():
            start = time.perf_counter()
            function(batch)
            least[name] = min(least[name], 1e3 * (time.perf_counter() - start))
    lines = ["", f"| | bytes of model.keras | ms for {ROWS} rows |", "|---|---:|---:|"]
    for name, run in runs.items():
        size = (run.path / "model.keras").stat().st_size
        lines.append(f"| {name} | {size:,} | {least[name]:.2f} |")
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
