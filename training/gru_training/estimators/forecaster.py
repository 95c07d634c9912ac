"""The estimator for series."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rich.console import Console

from gru_training.data.even_series import ExpectedSeries
from gru_training.data.long_form import LongColumns
from gru_training.data.problems import Problems
from gru_training.data.series import Series
from gru_training.data.series_frame import NAME, series_of_frame
from gru_training.errors import ConfigError, DataError
from gru_training.estimators.run_estimator import RunEstimator, load_tensorflow
from gru_training.estimators.settings import Settings, in_python, takes, with_keywords
from gru_training.forecasting.config import ForecastingConfig, SeriesConfig
from gru_training.forecasting.presets import PRESETS
from gru_training.tune.command import TuneConfig

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.utils import Tags

    from gru_training.forecasting.data import ForecastingData
    from gru_training.forecasting.future import Recent
    from gru_training.forecasting.preprocessor import Predictor
    from gru_training.forecasting.run import ForecastingRun

SETTINGS = Settings(
    ForecastingConfig,
    PRESETS,
    {
        "data": "give the data to fit",
        "time_column": "give it to fit as time=",
        "time_format": "give it to fit",
        "debug": "errors of Python show where they arose",
    },
)


class Times(NamedTuple):
    """Column and format of the times of a table; None to find them automatically."""

    column: str | None = None
    format: str | None = None

    @classmethod
    def of_run(cls, given: Mapping[str, Any] | None) -> Self:
        """Return the times of a run, as known from its table."""
        return cls() if given is None else cls(given.get("time"), given.get("time_format"))


@takes(SETTINGS)
class Forecaster(RunEstimator):
    """A GRU forecaster, trained as by `gru-train forecasting`.

    It writes the same run directory, and gets the same weights from the same rows and settings.
    Columns in `future` (prices, weather forecasts) are also read for the steps that are forecast,
    so `predict` takes them. Those of `calendar="auto"` and `holidays="DE"` follow from the times.

    Args:
        **settings: Settings of `gru-train forecasting` by name
            (`target=["load"]`, `horizon=48`, `lookback=336`, `linear_skip=True`,
            `runs_dir="runs"`, `name="load"`), and `preset` to begin with others than the
            defaults.

    Attributes:
        run_: The run directory (`gru_training.forecasting.run.ForecastingRun`).

    Example:
        >>> forecaster = Forecaster(horizon=24).fit(load)
        >>> forecaster.predict()  # the 24 hours after the last one
    """

    _task = "forecasting"
    _settings = SETTINGS
    _shared = frozenset({"_series", "_loaded"})
    _series: Series | None = None
    _recent: "Recent | None" = None
    """Steps after which a forecast begins, where `update` has added some to those of the run."""

    def __init__(self, **settings: Any):
        self._set(settings)

    def fit(
        self,
        data: Any = None,
        *,
        time: str | None = None,
        time_format: str | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Train, and write a run directory: a temporary one unless `runs_dir` or `name` is set.

        Ctrl-C ends the training and keeps the best epoch so far. A training that was killed
        continues with `resume` if its run was to be kept.

        Args:
            data: A table (pandas, Polars, PyArrow, ...) with a column or an index of times, evenly
                spaced, and columns of numbers, where missing values may be; or a long one with the
                columns `unique_id`, `ds` and `y`; or the path of a file as for `--data`.
                By default what the preset reads, else the weekly CO2 of Mauna Loa.
            time: The column of times; found by itself when called date, time, ds, ...
            time_format: Format of times that are texts, as `%d.%m.%Y`; found by itself where it is
                unambiguous.
            progress: Whether to show progress; by default in a terminal or a notebook only.

        Raises:
            TrainingError: Settings, data or run directory cannot be used; no run is left behind.
        """
        with in_python():
            config, table = self._source(data, time, time_format)
            return self._train_on(config, progress, table, Times(time, time_format))

    def tune(
        self,
        data: Any = None,
        *,
        time: str | None = None,
        time_format: str | None = None,
        minutes: float | None = None,
        trials: int | None = None,
        vary: Sequence[str] = (),
        study: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Search for settings, and train with those that do best on the validation part.

        The defaults are kept if chance may explain the gain of the best settings. Settings other
        than the defaults stay as they are. The test part is not read before the final training.
        Called again with the same data and settings, a search whose study is kept continues.

        Args:
            data: Series to learn from, as for `fit`.
            time: Column of times, as for `fit`.
            time_format: Format of times, as for `fit`.
            minutes: Minutes for the search; by default 30, or what `trials` take.
            trials: Maximum number of trials.
            vary: Ranges to search beside the default ones, such as `"units=64:256"`.
            study: Folder of the study; by default in `runs_dir`, or none is kept.
            progress: Whether to show progress, as for `fit`.

        Raises:
            TrainingError: Settings, data or study cannot be used.
        """
        from gru_training.forecasting.data import read_series

        with in_python():
            search = TuneConfig(
                self._task, minutes=minutes, trials=trials, vary=tuple(vary),
                study=None if study is None else Path(study),
            )  # fmt: skip
            config, table = self._source(data, time, time_format)
            times = Times(time, time_format)
            series = (
                read_series(config.data)
                if table is None
                else _trained_series(table, times, config.data)
            )
            self._search(config, series, search, progress)
        return self.fit(data, time=time, time_format=time_format, progress=progress)

    @classmethod
    def resume(
        cls, path: str | os.PathLike[str], data: Any = None, *, progress: bool | None = None
    ) -> Self:
        """Continue a training that was killed, with the same result as without the interruption.

        Args:
            path: Directory that the run was to have, such as `runs/NAME`.
            data: Table of the training, where it was given in memory.
            progress: Whether to show progress, as for `fit`.

        Raises:
            CheckpointError: There is no checkpoint, or the data are others.
        """
        config, given = cls._interrupted(path, data)
        with in_python():
            estimator = cls(**cls._settings.values(config))
            return estimator._train_on(config, progress, data, Times.of_run(given), resume=True)

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a table with times
        tags.input_tags.allow_nan = True
        return tags

    def _source(
        self, data: Any, time: str | None, time_format: str | None
    ) -> tuple[ForecastingConfig, Any]:
        """Return the settings of a training, and the table if it is in memory."""
        several = "target", "future", "past", "calendar"
        listed = {name: _listed(getattr(self, name)) for name in several}
        values = {**vars(self), **listed}
        if data is not None and not isinstance(data, str | os.PathLike):
            return self._settings.config(values, data={"data": None}), data
        columns = {"data": data, "time_column": time, "time_format": time_format}
        named = {name: value for name, value in columns.items() if value is not None}
        return self._settings.config(values, data=named), None

    def predict(
        self, horizon: int | None = None, *, data: Any = None, future: Any = None
    ) -> "pd.DataFrame":
        """Forecast the steps after the last one.

        Args:
            horizon: Steps; by default all that the model was trained for, which is the most.
            data: Newer values of the same columns, found by name, or the path of a file with
                them; by default the forecast begins after the series of the training and the rows
                of `update`. Rows at the end that have no value yet are left out, and too few rows
                are appended to these where they continue them.
            future: Known inputs of the steps to forecast, a table with their times or the path of
                a file, where the estimator was given `future`; by default those in the rows of
                `data`, or of the table of the training, that have no value to forecast yet. The
                forecast covers as many steps as they are known for.

        Returns:
            A row for each column and step, as statsforecast has them: `unique_id`, the column;
            `ds`, the time; `forecast`; and the bounds `lo-80`, `hi-80`, `lo-95` and
            `hi-95`.

        Raises:
            ConfigError: The model forecasts fewer steps, or `horizon` is no number.
            DataError: The data do not fit the run, or are too few.
        """
        from gru_training.forecasting.future import forecast
        from gru_training.forecasting.graph import graph_predictor

        run = self._run()
        try:
            horizon = None if horizon is None else index(horizon)
        except TypeError:
            raise ConfigError(
                f"horizon must be a whole number of steps, got {type(horizon).__name__}; give a "
                "table of newer values as data=, one of known inputs as future="
            ) from None
        with in_python():
            recent = _recent_rows(run, data, future, self._recent)
            if recent.unknown:
                load_tensorflow()
            if "predictor" not in self._loaded:
                self._loaded["predictor"] = graph_predictor(run) or _with_tensorflow(run)
            notes = list(recent.notes)
            table = forecast(run, recent, horizon, self._loaded["predictor"], notes.append)
        _show(notes)
        return table

    def update(self, rows: Any) -> Self:
        """Append the next rows of the series, after which forecasts then begin.

        Nothing is trained again: weights, scale and intervals stay as they are. A forecast depends
        on a fixed number of last rows, which are all that is kept, so that it is the same as with
        the whole history in `predict(data=...)`. Of a network that streams these are 10,000 rows.

        Args:
            rows: Table of the same columns, found by name, or the path of a file, from the step
                after the last known one on. Rows at the end that have no value yet hold known
                inputs of the steps to forecast.

        Returns:
            This forecaster. Copies and pickles of it, and what it saves, begin after these rows,
            too; its run directory stays as it is.

        Raises:
            DataError: The rows leave a gap, repeat known times, or do not fit the run; nothing was
                appended.
        """
        from gru_training.forecasting.future import continued, recent_of_run

        run = self._run()
        with in_python():
            known = self._recent or recent_of_run(run)
            recent = continued(run, known, _newer_rows(run, "rows", rows))
        _show(recent.notes)
        self._recent = replace(recent, notes=())
        return self

    def _write_state(self, copy: Path) -> None:
        """Write the rows of `update` into a copy of the run."""
        from gru_training.forecasting.future import write_recent

        if self._recent is not None:
            write_recent(self._recent, copy)

    def cross_validation(
        self,
        data: Any = None,
        *,
        folds: int = 5,
        step: int = 1,
        gap: int = 0,
        refit: bool = False,
        warm_start: bool = False,
    ) -> "pd.DataFrame":
        """Measure errors at several origins through the test part, beside refitted baselines.

        The model stays as it was trained unless `refit` is given; it has never seen the test part.
        Ridge regression and exponential smoothing are refitted on all rows before each fold.

        Args:
            data: The series of the training, which may have grown since; needed where the
                estimator was loaded and the series was given in memory.
            folds: Parts of the test windows, in the order of time.
            step: Forecast from every n-th time of a fold only.
            gap: Rows before each fold that no model is fitted on.
            refit: Whether to train the run's model again for each fold, on all rows before it.
            warm_start: Whether `refit` begins with the networks of the fold before.

        Returns:
            A row for each fold and model: `fold`, `model`, `first_time`, `last_time`,
            `windows`, `mse`, `mae`, `mase`, `rmsse` and `smape`; for the run's model `crps`,
            too, and the shares of values inside its intervals, such as `inside-80`.

        Raises:
            TrainingError: The data are not those of the run, or a number is out of range.
        """
        from gru_training.forecasting.backtest import backtest, fold_table
        from gru_training.forecasting.config import BacktestConfig

        run = self._run()
        with in_python():
            config = BacktestConfig(
                run.path, folds, step=step, gap=gap, refit=refit, warm_start=warm_start
            )
            like_run = _tested_rows(run, data, self._series)
            found = backtest(run, like_run, config, Console(quiet=True))
        return fold_table(found, run.levels, like_run.plain)

    def _train_on(
        self,
        config: ForecastingConfig,
        progress: bool | None,
        table: Any,
        times: Times,
        resume: bool = False,
    ) -> Self:
        """Train on a table in memory, or on the data that the settings name."""
        series = None if table is None else _trained_series(table, times, config.data)
        given = {"time": times.column, "time_format": times.format}
        self._train(config, progress, resume, series, None if series is None else given)
        self._series, self._recent = series, None
        return self

    def _training(self) -> "Callable[..., ForecastingRun | None]":
        from gru_training.forecasting.pipeline import train_forecasting

        return train_forecasting


def _with_tensorflow(run: "ForecastingRun") -> "Predictor":
    """Return the predictor of a run without a graph."""
    from gru_training.forecasting.future import served_predictor

    load_tensorflow()
    return served_predictor(run)


def _trained_series(table: Any, times: Times, settings: SeriesConfig) -> Series:
    """Read the series to train on, with calendar columns if the settings ask for them."""
    from gru_training.forecasting.sets import as_wanted

    problems = Problems(NAME, settings.drop_bad, settings.sort_rows, unit="row")
    series = _read(table, times, settings, problems)
    problems.raise_errors()
    return as_wanted(series, settings)


def _newer(run: "ForecastingRun", name: str, table: Any, *expected: Any) -> Series:
    """Read newer rows of the series of a run, or its known inputs, from a table."""
    settings = run.config.data
    problems = Problems(name, settings.drop_bad, settings.sort_rows, unit="row")
    series = _read(table, Times.of_run(run.given), settings, problems, *expected)
    problems.remedies.clear()  # which are settings of a training
    problems.raise_errors()
    return series


def _newer_rows(run: "ForecastingRun", name: str, data: Any) -> Series:
    """Read newer values of the series of a run from a table or file; errors say `name`."""
    from gru_training.forecasting.future import expected_series, newer_of_file

    if isinstance(data, str | os.PathLike):
        return newer_of_file(run, Path(data))
    return _newer(run, name, data, expected_series(run))


def _show(notes: Sequence[str]) -> None:
    console = Console(stderr=True, soft_wrap=True, markup=False)
    for note in notes:
        console.print(f"note: {with_keywords(note)}")


def _recent_rows(
    run: "ForecastingRun", data: Any, future: Any, known: "Recent | None" = None
) -> "Recent":
    """Return the steps from which a forecast begins, and the known inputs after them.

    Without `data`, it begins after the steps that are known already, by default the run's own.
    """
    from gru_training.forecasting import future as of_run

    if data is None:
        recent = known or of_run.recent_of_run(run)
    else:
        recent = of_run.recent_of_series(run, _newer_rows(run, "data", data), known)
    if isinstance(future, str | os.PathLike):
        recent = of_run.with_future_file(run, recent, Path(future))
    elif future is not None:
        inputs = _newer(run, "future", future, of_run.expected_future(run), of_run.future_form(run))
        recent = of_run.with_future(run, recent, inputs)
    return of_run.checked(run, recent)


def _tested_rows(run: "ForecastingRun", data: Any, series: Series | None) -> "ForecastingData":
    """Return the series on which a run is tested: `data`, or `series` as it was trained on."""
    from gru_training.forecasting.backtest import data_of_run
    from gru_training.forecasting.data import read_series

    settings = run.config.data
    if isinstance(data, str | os.PathLike):
        settings = replace(settings, data=Path(data))
        series = read_series(settings)
    elif data is not None:
        series = _trained_series(data, Times.of_run(run.given), settings)
    elif series is None and run.given is not None:
        raise DataError(f"{run.path} was trained on a table in memory; give it again as `data`")
    return data_of_run(run, series or read_series(settings))


def _read(
    table: Any,
    times: Times,
    settings: SeriesConfig,
    problems: Problems,
    expected: ExpectedSeries | None = None,
    long: LongColumns | None = None,
) -> Series:
    long = long or settings.long
    return series_of_frame(table, *times, problems, expected, long, settings.times)


def _listed(target: Any) -> Any:
    """Return a list of names; a single name becomes a list of one."""
    return (target,) if isinstance(target, str) else target
