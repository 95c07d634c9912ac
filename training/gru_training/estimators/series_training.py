"""How the estimator of series learns: a table in, a run out."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from gru_training.data.series import Series
from gru_training.errors import DataError
from gru_training.estimators.run_estimator import (
    RunEstimator,
    begun,
    load_tensorflow,
    progress_console,
    tuning,
)
from gru_training.estimators.series_table import (
    Times,
    trained_series,
)
from gru_training.estimators.settings import Settings, in_python
from gru_training.forecasting.config import ForecastingConfig
from gru_training.forecasting.presets import PRESETS

if TYPE_CHECKING:
    from sklearn.utils import Tags

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


class SeriesTraining(RunEstimator):
    """Trains on series: in one go, after a break, or in a search."""

    _task = "forecasting"
    _settings = SETTINGS
    _shared = frozenset({"_series", "_loaded"})
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
        """Train, and write a run directory: a temporary one unless `runs_dir` or `name` is set.

        Ctrl-C ends the training and keeps the best epoch so far; a training that was killed goes
        on with `resume` if its run was to be kept.

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
        """Search for settings, and train with those that do best on the validation part.

        Where chance may explain what they gain over the defaults, these are kept. Settings
        that are not the defaults stay as they are. The test part is not looked at before the
        training at the end. Called again with the same data and settings, a search whose study is
        kept goes on.

        Args:
            data: As for `fit`; so are the next two.
            time: Likewise.
            time_format: Likewise.
            minutes: Time for the search; by default 30, or what `trials` take.
            trials: Most trials.
            vary: Ranges to search beside the default ones, as `"units=64:256"`.
            study: Folder of the study; by default in `runs_dir`, or none is kept.
            progress: As for `fit`.

        Raises:
            TrainingError: Settings, data or study cannot be used.
        """
        from gru_training.forecasting.data import read_series

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

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a table with times
        tags.input_tags.allow_nan = True
        return tags

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
        series = given = None
        if data is not None:
            series = trained_series(data, times, config.data)
            given = {"time": times.column, "time_format": times.format}
            for note in series.notes:
                console.print(f"note: {note}", style="yellow", markup=False, highlight=False)
        load_tensorflow()
        from gru_training.forecasting.pipeline import train_forecasting

        run = self._run_of(
            config, lambda place: train_forecasting(place, console, resume, series, given)
        )
        self._finish(run, console)
        self._series = series
        return self


def _listed(target: Any) -> Any:
    """One column is as good as a list of one."""
    return (target,) if isinstance(target, str) else target
