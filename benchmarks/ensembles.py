"""What an average of three runs gains over each of them, and how much of it one network keeps.

    python -m benchmarks.ensembles --data ../shared/data/mr --triples 0 3 6

Each triple is three trainings that differ in the seed alone, on one split (`--split-seed 0`); their
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

from training.sentiment.run import SentimentRun
from training.words.vocabulary import token_ids

MEMBERS, ROWS, REPEATS = 3, 32, 30
STYLES = {"accuracy": ".2%", "log_loss": ".4f"}


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing and print the tables; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ensembles",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="of texts with classes")
    parser.add_argument("--triples", nargs="+", type=int, default=[0], help="their first seeds")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs/ensembles"))
    parser.add_argument("--settings", nargs=argparse.REMAINDER, default=[], help="of the training")
    arguments = parser.parse_args(argv)
    found = [
        triple(arguments.data, seed, arguments.runs_dir, arguments.settings)
        for seed in arguments.triples
    ]
    print("\n".join(table([SentimentRun.open(path).metrics for path in found])))
    print("\n".join(costs(found[0])))
    return 0


def triple(data: Path, seed: int, folder: Path, settings: Sequence[str]) -> Path:
    """The distilled run of a triple."""
    name = f"{data.name}-{seed}"
    train = ["sentiment", "--data", str(data), "--seed", str(seed), "--split-seed", "0"]
    train += ["--runs-dir", str(folder), "--name", name, *settings]
    average = ["ensemble", str(folder / name), "--seeds", str(MEMBERS), "--distil"]
    made = folder / f"{name}-ensemble-distilled"
    for path, command in ((folder / name, train), (made, average)):
        if not path.exists():
            subprocess.run(
                [sys.executable, "-m", "training", *command], check=True, stdout=sys.stderr
            )
    return made


def table(metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Measures of all triples, of validation and test rows.

    Args:
        metrics: Of the distilled run of each triple.
    """
    shown = [(name, part) for name in STYLES for part in ("validation", "test")]
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
        cells = [_mean([row[part][name] for row in rows], STYLES[name]) for name, part in shown]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    kept = []
    for name, part in shown:
        of = [statistics.mean(row[part][name] for row in rows)
              for rows in (singles, averages, distilled)]  # fmt: skip
        gain = of[1] - of[0]
        kept.append(f"{(of[2] - of[0]) / gain:.0%}" if gain else "")
    return [*lines, f"| share of the gain kept | {' | '.join(kept)} |"]


def _mean(values: Sequence[float], style: str) -> str:
    text = format(statistics.mean(values), style)
    if len(values) > 1:
        text += f" ± {format(statistics.stdev(values), style)}"
    return text


def costs(distilled: Path) -> list[str]:
    """Bytes and milliseconds of the models of a triple."""
    whole = distilled.with_name(distilled.name.removesuffix("-distilled"))
    single = whole.with_name(whole.name.removesuffix("-ensemble"))
    runs = {name: SentimentRun.open(path) for name, path in (
        ("single run", single), ("average", whole), ("distilled", distilled))}  # fmt: skip
    texts = [row.text for row in islice(runs["average"].test_predictions(), ROWS)]
    ids = token_ids(runs["average"].preprocessor(), texts)
    batch = tf.ragged.constant([row.tolist() for row in ids], dtype=tf.int32).to_tensor()
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
