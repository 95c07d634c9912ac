"""A forecaster that goes on with 10 % newer rows, beside a training anew: seconds and errors.

    python -m benchmarks.continuing_series --sets minima load exchange --seeds 0 1 2

For each set: `gru-train forecasting` on the first 90 % of the rows, `gru-train continue` with the
whole file, and `gru-train forecasting` on that, all without a second training on all rows. The
three are compared on the windows that none of them was trained on (`gru-train compare`): mean
squared error, standardised by the training anew, and the difference between going on and training
anew as a share of the latter's error, with its 95 % interval. "Network" is the time to find the
weights of the networks, compiling included; "in all" also plan, baselines, figures and the report.
What is in the folder already is not trained again.
"""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.forecasting_defaults.sets import SETS
from benchmarks.own_process import train
from gru_training.compare.command import compare_runs
from gru_training.forecasting.run import ForecastingRun

_SETS = {
    one.name: one
    for one in SETS
    # The others are panels in long form, no file, or have a published split that is not by shares,
    # so that the first rows by themselves would be split differently.
    if one.name in ("airline", "sunspots", "minima", "exchange", "weather", "load")
}
_OLD = 0.9
"""Share of the rows that the first run has."""
_HEAD = (
    "| set | seed | network anew, s | continued, s | ratio | in all anew, s | continued, s | ratio "
    "| windows | MSE before | continued | anew | continued beside anew |"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing and print the table, a row for each seed; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.continuing_series",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", nargs="+", choices=_SETS, default=["minima", "load", "exchange"])
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--runs-dir", type=Path, default=Path("runs/continuing_series"))
    arguments = parser.parse_args(argv)
    folder: Path = arguments.runs_dir
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{_HEAD}\n|---|{'---:|' * (_HEAD.count('|') - 2)}", flush=True)
    for name in arguments.sets:
        for seed in arguments.seeds:
            print(measured(name, seed, folder), flush=True)
    return 0


def measured(name: str, seed: int, folder: Path) -> str:
    """A row of the table."""
    _, whole, *flags = _SETS[name].arguments(folder)
    first = _first_rows(Path(whole), folder / f"{name}-first.csv")
    settings = [*flags, "--no-refit", "--seed", str(seed)]
    old, continued, anew = (
        folder / f"{name}-{way}-s{seed}" for way in ("old", "continued", "anew")
    )
    train(old, ["forecasting", "--data", str(first), *settings])
    train(continued, ["continue", str(old), "--data", str(whole)])
    train(anew, ["forecasting", "--data", str(whole), *settings])
    compared = compare_runs([anew, continued, old], Path(whole))
    anew_mse, continued_mse, old_mse = (
        contender.measures["MSE"] for contender in compared.contenders[:3]
    )
    runs = [ForecastingRun.open(path) for path in (anew, continued)]
    seconds = []
    for of_anew, of_continued in (
        [sum(float(epoch["seconds"]) for epoch in run.history) for run in runs],
        [float(run.metrics["seconds"]) for run in runs],
    ):
        seconds.append(f"{of_anew:.1f} | {of_continued:.1f} | {of_continued / of_anew:.2f}")
    errors = [each.value.value for each in (old_mse, continued_mse, anew_mse)]
    difference = continued_mse.difference
    assert difference is not None
    share = f"{difference.value / errors[2]:+.1%}"
    if difference.low is not None and difference.high is not None:
        share += f" ({difference.low / errors[2]:+.1%} to {difference.high / errors[2]:+.1%})"
    cells = [name, str(seed), *seconds, f"{compared.count:,}"]
    return f"| {' | '.join([*cells, *(f'{error:.4f}' for error in errors), share])} |"


def _first_rows(whole: Path, path: Path) -> Path:
    """Write the first rows of a table; its path."""
    with whole.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows[: round(_OLD * len(rows))]])
    return path


if __name__ == "__main__":
    raise SystemExit(main())
