"""`gru-train forecast`: tomorrow's values, on the screen or in a file."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from gru_training.data.problems import counted
from gru_training.forecasting.future.config import ForecastConfig
from gru_training.forecasting.future.forecast import (
    ID,
    TIME,
    forecast,
    require_horizon,
    require_known,
)
from gru_training.forecasting.future.recent import (
    Recent,
    recent_of_file,
    recent_of_run,
    with_future_file,
)
from gru_training.forecasting.run import ForecastingRun
from gru_training.tables.table_writer import (
    FileKind,
    file_kind,
    put_in_place,
    require_writable,
    unwritten,
)

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 60
"""Of the table on the screen."""


@dataclass(frozen=True)
class ForecastJob:
    """A forecast that can be made: all is checked that can be without the model."""

    config: ForecastConfig
    run: ForecastingRun
    recent: Recent
    kind: FileKind | None
    """Of the output."""


def check_forecast(config: ForecastConfig, console: Console) -> ForecastJob:
    """Open the run and read the data; needs no TensorFlow.

    Raises:
        TrainingError: Run, data or output cannot be used.
    """
    kind = None
    if config.output is not None:
        kind = file_kind(config.output, "--output")
        require_writable(config.output, config.overwrite)
    run = ForecastingRun.open(config.run_path)
    run.config  # noqa: B018  says whether it is a forecaster's
    require_horizon(run, config.horizon)
    with console.status("reading the data ..."):
        recent = recent_of_file(run, config.data) if config.data else recent_of_run(run)
        if config.future is not None:
            recent = with_future_file(run, recent, config.future)
        require_known(run, recent)
    for note in recent.notes:
        console.print(f"note: {note}", style="yellow", markup=False, highlight=False)
    return ForecastJob(config, run, recent, kind)


def run_forecast(job: ForecastJob, console: Console) -> None:
    """Forecast, and print or write the result.

    Raises:
        TrainingError: The model cannot be loaded, or the output cannot be written.
    """
    with console.status("forecasting ..."):
        table = forecast(job.run, job.recent, job.config.horizon)
    first, last = table[TIME].iloc[0], table[TIME].iloc[-1]
    console.print(
        f"{job.run.series.name}: {counted(table[TIME].nunique(), 'step')} "
        f"{f'at {first}' if first == last else f'from {first} to {last}'}, after "
        f"{job.recent.times[-1]}",
        markup=False,
        highlight=False,
    )
    if not job.run.metrics["beats_seasonal_naive"]:
        console.print(
            "note: on its validation windows this model was no better than repeating the last "
            f"season; see {job.run.path / 'report.md'}",
            style="yellow",
            markup=False,
            highlight=False,
        )
    if job.config.output is None or job.kind is None:
        _print(table, console)
        console.print(
            f"\nnext    gru-train forecast {quote(str(job.run.path))} --output forecast.csv",
            markup=False,
            highlight=False,
        )
        return
    _write(table, job.config.output, job.kind, job.config.overwrite)
    console.print(f"output  {job.config.output}", markup=False, highlight=False)


def _print(table: "pd.DataFrame", console: Console) -> None:
    shown = Table(box=None, header_style="bold")
    for name in table.columns:
        shown.add_column(name, justify="left" if name in (ID, TIME) else "right", no_wrap=True)
    times = table[TIME].dt.strftime(_time_format(table))
    for time, row in zip(times, table.head(_MOST_ROWS).itertuples(index=False), strict=False):
        shown.add_row(str(row[0]), time, *(f"{value:,.5g}" for value in row[2:]))
    wide = console.options.update(max_width=1000)
    console.print(shown, width=max(console.width, console.measure(shown, options=wide).maximum))
    if len(table) > _MOST_ROWS:
        console.print(f"... {len(table) - _MOST_ROWS:,} more rows; --output writes all of them")


def _time_format(table: "pd.DataFrame") -> str:
    """With no more of the time of day than the steps have."""
    times = table[TIME].dt
    if (times.normalize() == table[TIME]).all():
        return "%Y-%m-%d"
    return "%Y-%m-%d %H:%M:%S" if times.second.any() else "%Y-%m-%d %H:%M"


def _write(table: "pd.DataFrame", output: Path, kind: FileKind, overwrite: bool) -> None:
    """The file appears when it is whole."""
    import pyarrow as pa

    from gru_training.tables.table_writer import table_writer

    rows = pa.Table.from_pandas(table, preserve_index=False)
    days = _time_format(table) == "%Y-%m-%d"
    kind_of_time = pa.date32() if days else pa.timestamp("us")
    rows = rows.set_column(1, TIME, rows[TIME].cast(kind_of_time, safe=False))
    try:
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as folder:
            aside = Path(folder) / "whole"
            with table_writer(aside, kind, rows.schema) as writer:
                for piece in rows.to_batches():
                    writer.write(piece)
            put_in_place(aside, output, overwrite)
    except OSError as error:
        raise unwritten(output, error) from error
