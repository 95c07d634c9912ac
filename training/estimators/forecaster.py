"""A forecaster to train on tables and to ask what comes next."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console

from training.data.series import Series
from training.errors import DataError
from training.estimators.run_estimator import (
    RunEstimator,
    begun,
    load_tensorflow,
    progress_console,
    tuning,
)
from training.estimators.series_table import Times, recent_rows, tested_rows, trained_series
from training.estimators.settings import Settings, in_python, takes
from training.forecasting.config import ForecastingConfig
from training.forecasting.presets import PRESETS

if TYPE_CHECKING:
    import pandas as pd

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


_FOUND = Times()


@takes(SETTINGS)
class Forecaster(RunEstimator):
    """A GRU forecaster, as `gru-train forecasting` trains it.

    It writes the same run directory, and with the same rows and settings gets the same weights.
    Columns in `future` (prices, weather forecasts) are read of the steps that are forecast as
    well: `predict` takes them. Those of `calendar="auto"` and `holidays="DE"` follow from the
    times.

    Args:
        **settings: Any option of `gru-train forecasting` by its name without dashes
            (`target=["load"]`, `horizon=48`, `lookback=336`, `linear_skip=True`,
            `runs_dir="runs"`, `name="load"`), and `preset` to begin with others than the
            defaults.

    Attributes:
        run_: The run directory (`training.forecasting.run.ForecastingRun`).

    Example:
        >>> forecaster = Forecaster(horizon=24).fit(load)
        >>> forecaster.predict()  # the 24 hours after the last one
    """

    _task = "forecasting"
    _settings = SETTINGS
    _model: Any = None
    _series: Series | None = None

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
        """Trains, and writes a run directory.

        Ctrl-C ends the training and keeps the best epoch so far; a training that was killed goes
        on with `resume`.

        Args:
            data: A table (pandas, Polars, PyArrow, ...) with a column or an index of times, evenly
                spaced, and columns of numbers, where missing values may be; or a long one with the
                columns `unique_id`, `ds` and `y`; or the path of a file as for `--data`.
                By default what the preset reads, else the weekly CO2 of Mauna Loa.
            time: The column of times; found by itself when called date, time, ds, ...
            time_format: Of times that are texts, as `%d.%m.%Y`; found by itself where it is
                unambiguous.
            progress: Show how it goes; by default in a terminal or a notebook only.

        Raises:
            TrainingError: Settings, data or run directory cannot be used; no run is left behind.
        """
        with in_python():
            config, table = self._source(data, time, time_format)
            return self._train(config, progress, table, Times(time, time_format))

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
        """Search for the settings that do best on the validation part, and train with them.

        Settings that are not the defaults stay as they are. The test part is not looked at before
        the training at the end. Called again with the same data and settings, the search goes on.

        Args:
            data: As for `fit`; so are the next two.
            time: Likewise.
            time_format: Likewise.
            minutes: Time for the search; by default 30, or what `trials` take.
            trials: Most trials.
            vary: Ranges to search beside the default ones, as `"units=64:256"`.
            study: Folder of the study; by default in `runs_dir`.
            progress: As for `fit`.

        Raises:
            TrainingError: Settings, data or study cannot be used.
        """
        from training.forecasting.data import read_series

        with in_python():
            search = tuning(self._task, minutes, trials, vary, study)
            config, table = self._source(data, time, time_format)
            times = Times(time, time_format)
            series = (
                read_series(config.data)
                if table is None
                else trained_series(table, times, config.data)
            )
            self._search(config, series, search, progress)
        return self.fit(data, time=time, time_format=time_format, progress=progress)

    @classmethod
    def resume(
        cls, path: str | os.PathLike[str], data: Any = None, *, progress: bool | None = None
    ) -> Self:
        """Go on with a training that was killed, to the weights it would have had.

        Args:
            path: Where the run was to be, as `runs/NAME`.
            data: The same table as before, where it was given in memory.
            progress: As for `fit`.

        Raises:
            CheckpointError: There is no checkpoint, or the data are others.
        """
        config, given = begun(path, cls._task, ForecastingConfig)
        if given is not None and data is None:
            raise DataError(f"{path} was begun with data given in memory; give them again")
        if given is None and data is not None:
            raise DataError(f"{path} reads its data from {config.data.data}; leave `data` out")
        with in_python():
            estimator = cls(**cls._settings.values(config))
            return estimator._train(config, progress, data, Times.of_run(given), resume=True)

    def predict(
        self, horizon: int | None = None, *, data: Any = None, future: Any = None
    ) -> "pd.DataFrame":
        """Forecast what comes next.

        Args:
            horizon: Steps; by default all that the model was trained for, which is the most.
            data: Newer values of the same columns, found by name, or the path of a file with
                them; by default the forecast begins after the series of the training. Rows at
                the end that have no value yet are left out, and too few rows are appended to the
                end of that series where they continue it.
            future: Known inputs of the steps to forecast, a table with their times or the path of
                a file, where the estimator was given `future`; by default those in the rows of
                `data`, or of the table of the training, that have no value to forecast yet. The
                forecast covers as many steps as they are known for.

        Returns:
            A row for each column and step, as statsforecast has them: `unique_id`, the column;
            `ds`, the time; `forecast`; and the bounds `lo-80`, `hi-80`, `lo-95` and
            `hi-95`.

        Raises:
            ConfigError: The model forecasts fewer steps.
            DataError: The data do not fit the run, or are too few.
        """
        from training.forecasting.future.forecast import forecast

        run = self._run()
        with in_python():
            recent = recent_rows(run, data, future)
            load_tensorflow()
            if self._model is None:
                self._model = run.delivered_model()
            table = forecast(run, recent, horizon, self._model)
        for note in recent.notes:
            Console(stderr=True, soft_wrap=True).print(f"note: {note}", markup=False)
        return table

    def cross_validation(
        self,
        data: Any = None,
        *,
        folds: int = 5,
        step: int = 1,
        gap: int = 0,
        refit: bool = False,
        warm_start: bool = False,
        adaptive: bool = False,
    ) -> "pd.DataFrame":
        """Errors at several origins in time, through the test part, beside refitted baselines.

        The model stays as it was trained, unless `refit` is given; it has never seen the test part.
        Ridge regression and exponential smoothing are fitted anew on all rows before each fold.

        Args:
            data: The series of the training, which may have grown since; needed where the
                estimator was loaded and the series was given in memory.
            folds: Parts of the test windows, in the order of time.
            step: Forecast from every n-th time of a fold only.
            gap: Rows before each fold that no model is fitted on.
            refit: Train the run's model again for each fold, on all rows before it.
            warm_start: With `refit`, begin with the networks of the fold before.
            adaptive: Also measure intervals that learn from their misses as time goes on.

        Returns:
            A row for each fold and model: `fold`, `model`, `first_time`, `last_time`,
            `windows`, `mse`, `mae`, `mase`, `rmsse` and `smape`; for the run's model `crps`,
            too, and the shares of values inside its intervals, `inside-80` and `adaptive-80`.

        Raises:
            TrainingError: The data are not those of the run, or a number is out of range.
        """
        from training.forecasting.backtests.backtest import backtest
        from training.forecasting.backtests.config import BacktestConfig
        from training.forecasting.backtests.fold import fold_table

        run = self._run()
        with in_python():
            config = BacktestConfig(
                run.path, folds, step=step, gap=gap, refit=refit, warm_start=warm_start,
                adaptive=adaptive,
            )  # fmt: skip
            like_run = tested_rows(run, data, self._series)
            found = backtest(run, like_run, config, Console(quiet=True))
        return fold_table(found, run.levels, like_run.plain)

    def _source(
        self, data: Any, time: str | None, time_format: str | None
    ) -> tuple[ForecastingConfig, Any]:
        """The settings of a training, and the table where it is in memory."""
        several = "target", "future", "past", "calendar"
        listed = {name: _listed(getattr(self, name)) for name in several}
        values = {**vars(self), **listed}
        if data is not None and not isinstance(data, str | os.PathLike):
            return self._settings.config(values, data={"data": None}), data
        columns = {"data": data, "time_column": time, "time_format": time_format}
        named = {name: value for name, value in columns.items() if value is not None}
        return self._settings.config(values, data=named), None

    def _train(
        self,
        config: ForecastingConfig,
        progress: bool | None,
        data: Any = None,
        times: Times = _FOUND,
        resume: bool = False,
    ) -> Self:
        console = progress_console(progress)
        self._series, given = None, None
        if data is not None:
            self._series = trained_series(data, times, config.data)
            given = {"time": times.column, "time_format": times.format}
            for note in self._series.notes:
                console.print(f"note: {note}", style="yellow", markup=False, highlight=False)
        load_tensorflow()
        from training.forecasting.pipeline import train_forecasting

        run = train_forecasting(config, console, resume, self._series, given)
        return self._finish(run, console)

    def _fitted(self, run: Any) -> None:
        super()._fitted(run)
        self._model = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_model": None}  # read again from the run


def _listed(target: Any) -> Any:
    """One column is as good as a list of one."""
    return (target,) if isinstance(target, str) else target
