"""Gain from known inputs of the steps ahead, on a load that follows the temperature.

    python -m benchmarks.known_inputs --seeds 0 1 2

Trains `gru-train forecasting --target load` with default settings on two years of hourly load
(`benchmarks.forecasting_defaults.made_series.hourly_load`: days, weeks, heating below 15 degrees
and cooling above 22, holidays, noise), once as it is and once with `--future temperature holiday`,
and prints the mean squared error on the test windows (standardised). The temperature of the steps
ahead is the true one, so this is what a perfect weather forecast is worth. Runs that are there
already are not trained again.
"""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.forecasting_defaults.made_series import hourly_load
from benchmarks.own_process import train
from gru_training.forecasting.linear import RIDGE, SEASONAL_NAIVE
from gru_training.forecasting.run import ForecastingRun

WAYS = {"without": (), "with": ("--future", "temperature", "holiday")}


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.known_inputs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--runs-dir", type=Path, default=Path("runs/known_inputs"))
    arguments = parser.parse_args(argv)
    arguments.runs_dir.mkdir(parents=True, exist_ok=True)
    data = arguments.runs_dir / "load.csv"
    if not data.exists():
        hourly_load().to_csv(data, index=False)
    errors: dict[str, list[float]] = {way: [] for way in WAYS}
    simple: dict[str, float] = {}
    for seed in arguments.seeds:
        for way, flags in WAYS.items():
            path = arguments.runs_dir / f"{way}-s{seed}"
            words = ["forecasting", "--data", str(data), "--target", "load", *flags]
            train(path, [*words, "--seed", str(seed), "--no-refit"])
            metrics = ForecastingRun.open(path).metrics
            errors[way].append(metrics["model"]["test"]["mse"])
            floors = metrics["baselines"]
            simple = {name: floors[name]["test"]["mse"] for name in (RIDGE, SEASONAL_NAIVE)}
    print("| | mean squared error |\n|---|---:|")
    for way, found in errors.items():
        spread = f" ± {statistics.stdev(found):.4f}" if len(found) > 1 else ""
        print(f"| {way} known inputs | {statistics.mean(found):.4f}{spread} |")
    for name, error in simple.items():
        print(f"| {name} | {error:.4f} |")
    ratio = statistics.mean(errors["with"]) / statistics.mean(errors["without"])
    print(f"\nRatio, over {len(arguments.seeds)} seeds: {ratio:.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
