"""What to forecast; see `gru_training.config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

_OptionalFile = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]


@dataclass(frozen=True)
class ForecastConfig:
    """Forecast what comes next, with times and intervals.

    The forecast begins after the series that the run was trained on, or after newer values of
    the same columns in --data. Columns are found by name, in any order; rows at the end that
    have no value yet are what is to be forecast. A file may have fewer rows than the model reads if
    it continues the run's own series.

    A run that was trained with --future reads those columns of the steps that it forecasts: from
    the rows at the end, or from a file of their own (--future). The forecast covers as many steps
    as they are known for.

    The forecast has a row for each column and time: unique_id, ds, forecast, and the bounds lo-80,
    hi-80, lo-95 and hi-95. Without --output it is printed.

    gru-train forecast runs/load

    gru-train forecast runs/load --data load-until-today.csv --output tomorrow.csv

    gru-train forecast runs/load --future weather-forecast.csv --output tomorrow.csv
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """A run directory of `gru-train forecasting`."""
    data: _OptionalFile = None
    """Newer values, a table as for training."""
    future: _OptionalFile = None
    """Known inputs of the steps to forecast, a table with their times, where the run was
    trained with --future."""
    output: _OptionalFile = None
    """Where the forecast goes: .csv, .tsv, .jsonl (plain or .gz) or .parquet."""
    horizon: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Steps to forecast; by default all that the model was trained for, which is the most."""
    overwrite: bool = False
    """Replace the output if it is there already."""
    debug: bool = False
    """Show TensorFlow's messages, and where an error arose."""
