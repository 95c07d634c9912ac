"""Accuracy of the forecasters: the results table, made from run directories.

    for seed in 0 1 2; do
        python -m gru_training forecasting --preset etth1-96 --seed $seed --name etth1-96-s$seed
    done
    python -m benchmarks.forecasting runs/etth1-96-s*

Runs of the same settings but for the seed make one row: mean and standard deviation (ddof 1) of
the errors over all test windows, on the standardised scale, beside the baselines of the same run.
"""

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gru_training.errors import TrainingError
from gru_training.forecasting.run import ForecastingRun


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and, with --json, write the figures; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forecasting",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directories")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    arguments = parser.parse_args(argv)
    try:
        rows = table([ForecastingRun.open(path) for path in arguments.runs])
    except TrainingError as error:
        parser.error(str(error))
    print(markdown(rows))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return 0


def table(runs: Sequence[ForecastingRun]) -> list[dict[str, Any]]:
    """One row for each group of runs that differ only in seed and name."""
    groups: dict[str, list[ForecastingRun]] = defaultdict(list)
    for run in runs:
        groups[_settings(run)].append(run)
    return [_row(group) for group in groups.values()]


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a Markdown table."""
    names = sorted({name for row in rows for name in row["baselines"]})
    head = ["set, horizon", "preset", "seeds", "MSE", "MAE", "coverage 95 %, 80 %", "time", *names]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [
            f"{row['data']}, {row['horizon']}",
            f"`{row['preset']}`",
            ", ".join(map(str, row["seeds"])),
            _spread(row["mse"]),
            _spread(row["mae"]),
            ", ".join(f"{share:.1%}" for share in row["coverage"]),
            f"{statistics.mean(row['seconds']):.0f} s",
            *(f"{row['baselines'].get(name, float('nan')):.4f}" for name in names),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _settings(run: ForecastingRun) -> str:
    values = json.loads((run.path / "config.json").read_text("utf-8"))
    del values["run"], values["training"]["seed"]
    return json.dumps(values, sort_keys=True)


def _row(runs: Sequence[ForecastingRun]) -> dict[str, Any]:
    metrics = [run.metrics for run in runs]
    first = metrics[0]
    intervals = {interval["nominal"]: [] for interval in first["intervals"]}
    for one in metrics:
        for interval in one["intervals"]:
            intervals[interval["nominal"]].append(interval["coverage"])
    return {
        "data": first["data"]["name"],
        "horizon": first["data"]["horizon"],
        "preset": runs[0].config.preset,
        "seeds": [one["seed"] for one in metrics],
        "mse": [one["model"]["test"]["mse"] for one in metrics],
        "mae": [one["model"]["test"]["mae"] for one in metrics],
        "validation_mse": [one["model"]["validation"]["mse"] for one in metrics],
        "coverage": [statistics.mean(intervals[n]) for n in sorted(intervals, reverse=True)],
        "seconds": [one["seconds"] for one in metrics],
        "baselines": {name: one["test"]["mse"] for name, one in first["baselines"].items()},
    }


def _spread(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}"


if __name__ == "__main__":
    raise SystemExit(main())
