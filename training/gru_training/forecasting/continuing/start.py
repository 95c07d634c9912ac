"""What a forecaster begins with that goes on from a run: its scale, networks and plan."""

from dataclasses import dataclass, replace
from functools import partial

import keras
import numpy as np

from gru_training.data.series import Series
from gru_training.errors import DataError
from gru_training.forecasting.combination.components import refitted
from gru_training.forecasting.combination.plan import Candidate, Plan, linear_data
from gru_training.forecasting.combination.refit import stored_plan
from gru_training.forecasting.config import ForecastingConfig
from gru_training.forecasting.data import Before, ForecastingData, never_negative, prepare
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.forecasting.run import ForecastingRun
from gru_training.forecasting.sources.sets import Borders
from gru_training.forecasting.windows import Learned, Windows
from gru_training.loop.batches import Drawn


@dataclass(frozen=True)
class Start:
    """The model of a run, to go on from."""

    run: ForecastingRun
    rows: int
    """Of its series, all that there were."""
    model: keras.Model
    """Which its networks are taken of."""
    trained: int
    """Rows that the model was trained on."""
    replay: float | None
    """Share of the old windows that an epoch reads; None: as many as there are new ones."""

    def learned(self, windows: Windows) -> Learned:
        """As of `gru_training.forecasting.combination.plan.Beginning`."""
        known = int((windows.origins + windows.horizon <= self.trained).sum())
        share = self.replay
        if share is None:
            share = min(1.0, (len(windows) - known) / max(1, known))
        return Learned(Drawn(0, known, share), len(self.run.target_columns))

    def of_all_rows(self) -> "Start":
        """The model that the run delivers."""
        if self.run.metrics.get("refit") is None:
            return self
        return replace(self, model=self.run.delivered_model(), trained=self.rows)


def continued_plan(config: ForecastingConfig, series: Series) -> Plan:
    """The plan of the run that is gone on from, over its rows and the new ones.

    The simple forecasters are fitted on the training rows anew. Networks that had no weight are
    left out, as the run does not hold them.

    Args:
        config: Of `gru_training.forecasting.continuing.settings.continuation`.
        series: Of `gru_training.forecasting.continuing.rows.read_whole`.

    Raises:
        DataError: The series cannot be used, or has no new row to train on.
    """
    assert config.continued is not None
    run = ForecastingRun.open(config.continued.from_run)
    scale = None if config.continued.refit_scaler else partial(_grown_scale, run)
    borders = run.series.borders
    data = prepare(series, config.data, Before(Borders(*borders), scale))
    _require_columns(run, data)
    model, old_rows = run.load_model(), old_row_count(run, data)
    start = Start(run, old_rows, model, borders[0], config.continued.replay)
    known = start.learned(data.windows("train"))
    if known.windows.rows == len(data.windows("train")):
        raise DataError(
            f"{series.source}: expected new rows of which some fall to the training part, whose "
            f"end stays at {series.times[data.borders.train - 1]}; got {len(series) - old_rows:,} "
            f"after the {old_rows:,} old ones; gather more of them first"
        )
    combination = run.combination
    if combination is None:
        return Plan(config, data, network_lookback=data.shape.lookback, start=start)
    plan = stored_plan(config, combination, data)
    rows, held = linear_data(data), {layer.name for layer in model.layers}
    candidates = [
        Candidate(refitted(each.forecaster, rows), each.validation_mse) for each in plan.candidates
    ]
    return replace(
        plan,
        candidates=tuple(candidates),
        criterion=str(combination.get("criterion", "")),
        networks=tuple(name for name in plan.networks or () if name in held),
        start=start,
    )


def old_row_count(run: ForecastingRun, data: ForecastingData) -> int:
    """How many of the rows the run had."""
    return int(data.series.times.searchsorted(np.datetime64(run.series.last_time), side="right"))


def _require_columns(run: ForecastingRun, data: ForecastingData) -> None:
    known = len(run.columns)
    if data.series.columns[:known] != run.columns or (
        data.target_columns[: len(run.target_columns)] != run.target_columns
    ):
        raise DataError(
            f"{data.series.source}: expected the columns of {run.path}, {', '.join(run.columns)}, "
            f"got {', '.join(data.series.columns)}; train anew on all rows"
        )


def _grown_scale(run: ForecastingRun, series: Series, rows: np.ndarray) -> SeriesPreprocessor:
    """That of a run; of further series it is measured on the training rows."""
    old = run.preprocessor()
    known, columns = len(run.columns), len(series.columns)
    if columns == known:
        return old
    targets = (*old.targets, *range(known, columns))
    transformed = np.concatenate([old.transformed, np.zeros(columns - known, bool)])
    if old.transformed.any():
        transformed[known:] = never_negative(rows, targets)[known:]
    fitted = SeriesPreprocessor.fit(rows, targets, transformed, old.exponent)
    return old.joined(fitted)
