"""Default settings against simple forecasters, on sets that no preset knows.

    python -m benchmarks.forecasting_defaults --seeds 0 1 2
    python -m benchmarks.forecasting_defaults --sets airline load

Trains `gru-train forecasting` with `--data` and a horizon on each set and prints the mean squared
error on the test windows (standardised; mean and standard deviation over the seeds) beside that of
seasonal naive, ridge and exponential smoothing, which the same runs measured. The ratio is to the
best of these three on the test windows. Runs that are there already are not trained again. The
time is that of a training without the second one on all rows, `--refit`.
"""

import argparse
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.forecasting_defaults.sets import SETS
from benchmarks.own_process import train
from gru_training.forecasting.linear import RIDGE, SEASONAL_NAIVE, SMOOTHING
from gru_training.forecasting.run import ForecastingRun

SIMPLE = (SEASONAL_NAIVE, RIDGE, SMOOTHING)


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing and print the table; returns the exit status."""
    names = [each.name for each in SETS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forecasting_defaults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--runs-dir", type=Path, default=Path("runs/defaults"))
    parser.add_argument("--train", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args(argv)
    arguments.runs_dir.mkdir(parents=True, exist_ok=True)
    rows = []
    for each in SETS:
        if each.name not in arguments.sets:
            continue
        paths = [arguments.runs_dir / f"{each.name}-s{seed}" for seed in arguments.seeds]
        for path, seed in zip(paths, arguments.seeds, strict=True):
            if arguments.train:
                # A second training on all rows would change no figure, and double the time.
                words = ["forecasting", *each.arguments(path.parent), "--no-refit"]
                train(path, [*words, "--seed", str(seed)])
        done = [ForecastingRun.open(path).metrics for path in paths if path.exists()]
        if done:
            rows.append(row(each.name, done))
    print(markdown(rows))
    return 0


def row(name: str, metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A line of the table, from the runs of one set."""
    first = metrics[0]
    simple = {
        floor: first["baselines"][floor]["test"]["mse"]
        for floor in SIMPLE
        if floor in first["baselines"]
    }
    errors = [one["model"]["test"]["mse"] for one in metrics]
    best = min(simple.values())
    coverage = {interval["nominal"]: interval["coverage"] for interval in first["intervals"]}
    on_validation = min(first["baselines"][floor]["validation"]["mse"] for floor in simple)
    return {
        "name": name,
        "horizon": first["data"]["horizon"],
        "series": len(first["data"]["targets"]),
        "simple": simple,
        "errors": errors,
        "ratio": statistics.mean(errors) / best,
        "validation": first["model"]["validation"]["mse"] / on_validation,
        "coverage": coverage,
        "seconds": statistics.mean(one["seconds"] for one in metrics),
        "windows": first["data"]["windows"]["validation"],
    }


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table, and the geometric mean of the ratios."""
    head = ["set", "series", "horizon", "defaults", *SIMPLE, "ratio", "on validation",
            "80 %, 95 % cover", "time"]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for one in rows:
        spread = f" ± {statistics.stdev(one['errors']):.4f}" if len(one["errors"]) > 1 else ""
        cells = [
            one["name"],
            str(one["series"]),
            str(one["horizon"]),
            f"{statistics.mean(one['errors']):.4f}{spread}",
            *(f"{one['simple'][name]:.4f}" if name in one["simple"] else "–" for name in SIMPLE),
            f"{one['ratio']:.3f}",
            f"{one['validation']:.3f}",
            ", ".join(f"{one['coverage'][level]:.1%}" for level in sorted(one["coverage"])),
            f"{one['seconds']:.0f} s",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if rows:
        mean = math.exp(statistics.mean(math.log(one["ratio"]) for one in rows))
        lines += ["", f"Geometric mean of the ratios: {mean:.3f} over {len(rows)} sets."]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
