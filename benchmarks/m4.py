"""M4 with its own measures: sMAPE, MASE and OWA of a run on the published test file.

gru-train forecasting --data Hourly-train.csv --name m4-hourly
python -m benchmarks.m4 runs/m4-hourly Hourly-test.csv
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.owa import M4Scores, m4_scores, naive2
from gru_training.errors import DataError, TrainingError
from gru_training.forecasting.future import forecast, recent_of_run
from gru_training.forecasting.run import ForecastingRun
from gru_training.forecasting.sets import m4_kind, read_m4_rows


def main(argv: Sequence[str] | None = None) -> int:
    """Print the scores of the run and of Naive 2; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.m4",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("test", type=Path, metavar="TEST", help="such as Hourly-test.csv")
    arguments = parser.parse_args(argv)
    try:
        own, naive, missing = scores(ForecastingRun.open(arguments.run), arguments.test)
    except TrainingError as error:
        parser.error(str(error))
    print("| | sMAPE | MASE | OWA |\n|---|---:|---:|---:|")
    for name, of in (("this run", own), ("Naive 2", naive)):
        print(f"| {name} | {of.smape:.3f} | {of.mase:.3f} | {of.owa:.3f} |")
    if missing:
        print(f"\n{missing:,} series that the run left out count with Naive 2.")
    return 0


def scores(run: ForecastingRun, test: Path) -> tuple[M4Scores, M4Scores, int]:
    """Score the run and Naive 2, and count the series for which the latter stands in.

    Raises:
        DataError: The files are not those of one part of the competition.
    """
    train_file = run.config.data.data
    kind = None if train_file is None else m4_kind(train_file)
    if train_file is None or kind is None or m4_kind(test) != kind:
        raise DataError(f"{test}: expected the test file of what {run.path} was trained on")
    train, truth = read_m4_rows(train_file), read_m4_rows(test)
    names = list(truth)
    if run.shape.horizon < kind.horizon:
        raise DataError(
            f"{run.path}: expected a horizon of {kind.horizon}, got {run.shape.horizon}"
        )
    table = forecast(run, recent_of_run(run), kind.horizon)
    by_name = {str(name): rows["forecast"].to_numpy() for name, rows in table.groupby("unique_id")}
    simple = np.stack([naive2(train[name], kind.horizon, kind.season) for name in names])
    own = np.stack([by_name.get(name, simple[row]) for row, name in enumerate(names)])
    values = np.stack([truth[name] for name in names])
    series = [train[name] for name in names]
    return (
        m4_scores(series, values, own, kind.season),
        m4_scores(series, values, simple, kind.season),
        sum(name not in by_name for name in names),
    )


if __name__ == "__main__":
    raise SystemExit(main())
