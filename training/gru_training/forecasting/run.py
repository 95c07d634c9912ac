"""A run of the forecasting task.

Besides what every run holds (`gru_training.runs.directory`):

=========================  ====================================================================
series.json                columns, targets, frequency, season, look-back, horizon, borders
scaler.json                mean and deviation of the training rows
calibration.npz            levels (Q,) and offsets (H, K, Q) of the quantiles
last_window.npz            the end of the series, from which a forecast begins:
                           `gru_training.forecasting.future`
test_windows.npz           raw histories (n, L, C) evenly from the test part, their known inputs
                           of the steps ahead (n, H, F), the times (n,) of their last steps as
                           texts, and the forecasts (n, H, K) and quantiles (n, H, K, Q) of them
                           in raw units
test_errors.npz            errors of every test window, of the model and of the baselines: see
                           gru_training.forecasting.outcomes
delivered.keras            the model trained further on all rows, if it was
forecast.onnx              the delivered model as an ONNX graph, where ONNX can express it:
                           `gru_training.forecasting.graph`
combination.json           of a combination: what each part is and weighs
pictures (.png)            forecasts, errors, coverage, residuals, learning curves, and what known
                           inputs add
=========================  ====================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gru_training.config import from_dict
from gru_training.data.calendar import Calendar
from gru_training.data.series import people_read
from gru_training.errors import ConfigError, DataError, RunDirectoryError
from gru_training.forecasting.config import ForecastingConfig, ForecastShape
from gru_training.runs.directory import TaskRun

if TYPE_CHECKING:
    import keras
    import pandas as pd

    from gru_training.forecasting.data import ForecastingData
    from gru_training.forecasting.preprocessor import SeriesPreprocessor

DELIVERED = "delivered.keras"
"""File of the model trained on all rows; missing if there is only the measured one."""


@dataclass(frozen=True)
class SeriesDescription:
    """Description of a series, as a run records it."""

    name: str
    columns: tuple[str, ...]
    target_columns: tuple[str, ...]
    frequency: str
    """Pandas' name of the spacing, as `h`, `15min`, `W-SAT` or `MS`."""
    season: int
    lookback: int
    horizon: int
    borders: tuple[int, ...]
    """Row numbers at which training, validation and test part end."""
    first_time: str
    last_time: str
    published_split: bool
    """Whether the borders are those of published results on a public set."""
    panel: bool = False
    """Whether the series stood in long form: series that begin late or end early."""
    future_columns: tuple[str, ...] = ()
    """The F known inputs whose future values a forecast needs; for series in long form a column for
    each series and input, as in `gru_training.data.long_form.input_column`.
    """
    inputs: tuple[str, ...] = ()
    """Names of each series' inputs beside its values, for series in long form."""
    calendar: Calendar = Calendar()  # noqa: RUF009  it is frozen
    """Calendar inputs in the last columns, computed from the times."""
    zone: str | None = None
    """Time zone in which the times are displayed; None to display them unchanged."""
    local: bool = False
    """Whether the times are clock times in the zone rather than UTC."""
    constant_columns: tuple[str, ...] = ()
    """Columns that never vary, and are forecast as constant."""
    constant_values: tuple[float, ...] = ()
    """Value of each of them."""

    @property
    def constants(self) -> dict[str, float]:
        """The columns that never vary, with their values."""
        return dict(zip(self.constant_columns, self.constant_values, strict=True))

    @property
    def future_inputs(self) -> tuple[str, ...]:
        """The names of the known inputs for messages."""
        return self.inputs if self.panel and self.future_columns else self.future_columns


class ForecastingRun(TaskRun):
    """A complete run of the forecasting task."""

    @cached_property
    def config(self) -> ForecastingConfig:
        """The settings of the run."""
        return self._read_config("forecasting", ForecastingConfig)

    @cached_property
    def series(self) -> SeriesDescription:
        """The description of the series of the training."""
        path = self.path / "series.json"
        try:
            series = from_dict(SeriesDescription, self._json("series.json"))
        except (ConfigError, TypeError) as error:
            raise RunDirectoryError(f"{path}: {error}") from error
        unknown = [name for name in series.target_columns if name not in series.columns]
        if unknown:
            raise RunDirectoryError(
                f"{path}: expected targets among the columns {list(series.columns)}, got {unknown}"
            )
        return series

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the C columns read."""
        return self.series.columns

    @property
    def target_columns(self) -> tuple[str, ...]:
        """The names of the K columns forecast."""
        return self.series.target_columns

    @property
    def frequency(self) -> str:
        """Pandas' name of the spacing of the steps."""
        return self.series.frequency

    def people_read(self, times: "pd.DatetimeIndex") -> "pd.Index[Any]":
        """Return times of the series for display, see `gru_training.data.series.people_read`."""
        return people_read(times, self.frequency, self.series.zone, self.series.local)

    @cached_property
    def shape(self) -> ForecastShape:
        """Look-back, horizon, number of columns, and target column numbers."""
        series = self.series
        targets = tuple(series.columns.index(name) for name in series.target_columns)
        try:
            return ForecastShape(series.lookback, series.horizon, len(series.columns), targets)
        except ValueError as error:
            raise RunDirectoryError(f"{self.path / 'series.json'}: {error}") from error

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """The Q levels of the quantiles, ascending, with .5 among them."""
        return tuple(self._array("calibration.npz", "levels", 1).tolist())

    @cached_property
    def offsets(self) -> np.ndarray:
        """The offsets (H, K, Q), which added to standardised forecasts give the quantiles."""
        return self._array("calibration.npz", "offsets", 3).astype(np.float32, copy=False)

    @cached_property
    def deviations(self) -> np.ndarray:
        """Standard deviations (C,) of the training rows, in raw units."""
        scale = self._json("scaler.json")
        try:
            return np.asarray(scale.get("raw_deviation", scale["deviation"]), np.float64)
        except (AttributeError, KeyError, ValueError) as error:
            raise RunDirectoryError(f"{self.path / 'scaler.json'}: {error!r}") from error

    def preprocessor(self) -> "SeriesPreprocessor":
        """Return the scaling of raw windows for the model, as in training."""
        from gru_training.forecasting.preprocessor import SeriesPreprocessor

        try:
            return SeriesPreprocessor.load(self.path / "scaler.json")
        except DataError as error:
            raise RunDirectoryError(str(error)) from error

    def load_model(self) -> "keras.Model":
        """Load the model of the best epoch, from standardised (B, L, C) to (B, H, K, Q or 1).

        Raises:
            RunDirectoryError: The file is damaged or does not fit the series.
        """
        return self._read("model.keras")

    def delivered_model(self) -> "keras.Model":
        """Load the model of forecasts and exports: trained on all rows, or else the measured one.

        Raises:
            RunDirectoryError: The model cannot be read, see `load_model`.
        """
        if not (self.path / DELIVERED).is_file():
            return self.load_model()
        return self._read(DELIVERED)

    def _read(self, name: str) -> "keras.Model":
        model, shape = self._load(name), self.shape
        read, answered = model.input_shape[1:], model.output_shape[1:3]
        expected = (shape.lookback, shape.channels), (shape.horizon, len(shape.targets))
        if (read, answered) != expected:
            raise RunDirectoryError(
                f"{self.path}: expected a model from {expected[0]} to {expected[1]} as in "
                f"series.json, got one from {read} to {answered} in {name}"
            )
        return model

    @cached_property
    def combination(self) -> dict[str, Any] | None:
        """The parts of a combination with their weights; None for a network alone."""
        if not (self.path / "combination.json").is_file():
            return None
        found = self._json("combination.json")
        try:
            for share in found["shares"]:
                float(share["weight"]), str(share["name"]), share["network"]
            int(found["network_lookback"])
        except (TypeError, KeyError, ValueError, OverflowError) as error:
            raise RunDirectoryError(f"{self.path / 'combination.json'}: {error!r}") from error
        return dict(found)

    def shown_network(self, model: "keras.Model") -> "tuple[keras.Model, ForecastShape] | None":
        """Find the network whose gates can be shown, and its shape.

        Args:
            model: Model of the run.

        Returns:
            Network and shape; of a combination the network with the greatest weight, None if none
            has any.
        """
        combination = self.combination
        if combination is None:
            return model, self.shape
        networks = [each for each in combination["shares"] if each["network"] and each["weight"]]
        if not networks:
            return None
        shown = max(networks, key=lambda share: float(share["weight"]))
        lookback = int(combination["network_lookback"])
        return model.get_layer(shown["network"]), replace(self.shape, lookback=lookback)

    def test_windows(self, count: int) -> np.ndarray:
        """Return raw histories (n, L, C) float32, evenly from the test part; at most `count`."""
        histories = self._array("test_windows.npz", "histories", 3)
        return np.asarray(histories[evenly(len(histories), count)])

    def test_futures(self, count: int) -> np.ndarray:
        """Return known inputs (n, H, F) float32 of the steps after `test_windows`."""
        futures = self._array("test_windows.npz", "futures", 3)
        return np.asarray(futures[evenly(len(futures), count)])

    def test_times(self, count: int) -> np.ndarray:
        """Return the times (n,) of the last steps of `test_windows`, as texts."""
        times = self._array("test_windows.npz", "times", 1, "U")
        return np.asarray(times[evenly(len(times), count)])

    def test_answers(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return forecasts (n, H, K) and quantiles (n, H, K, Q) of `test_windows`, in raw units."""
        forecasts = self._array("test_windows.npz", "forecasts", 3)
        rows = evenly(len(forecasts), count)
        return forecasts[rows], self._array("test_windows.npz", "quantiles", 4)[rows]

    def test_errors(self) -> dict[str, Any]:
        """Return the errors of the test windows, see `gru_training.forecasting.outcomes`."""
        return self.arrays("test_errors.npz")

    def arrays(self, name: str) -> dict[str, Any]:
        """Read the arrays of one of the run's .npz files.

        Raises:
            RunDirectoryError: The file is missing or damaged; or, later, lacks an array asked for.
        """
        path = self.path / name
        try:
            # NumPy does not close a damaged file that it has opened itself.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return _Arrays(path, arrays)
        except Exception as error:  # a damaged file fails anywhere: zip, header, content
            raise RunDirectoryError(f"cannot read {path}: {error}") from error

    def _array(self, file: str, name: str, dimensions: int, kind: str = "f") -> np.ndarray:
        """Read an array with this number of dimensions and this kind of NumPy's."""
        array = np.asarray(self.arrays(file)[name])
        if array.ndim != dimensions or array.dtype.kind != kind:
            raise RunDirectoryError(
                f"{self.path / file}: expected {name!r} to have {dimensions} dimensions of "
                f"{'texts' if kind == 'U' else 'floats'}, got {array.ndim} of {array.dtype}"
            )
        return array


class _Arrays(dict[str, Any]):
    """Arrays of a file by name, with errors that name the file."""

    def __init__(self, path: Path, arrays: Mapping[str, Any]):
        super().__init__(arrays)
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise RunDirectoryError(f"{self._path}: expected an array {name!r}, got {sorted(self)}")


def evenly(rows: int, count: int) -> np.ndarray:
    """Choose at most `count` numbers below `rows`, evenly spread, including both ends."""
    return np.unique(np.linspace(0, rows - 1, min(rows, count)).round().astype(int))


def description(data: "ForecastingData") -> SeriesDescription:
    """Describe a series for `series.json`."""
    series = data.series
    return SeriesDescription(
        series.name,
        series.columns,
        data.target_columns,
        series.frequency,
        data.season,
        data.shape.lookback,
        data.shape.horizon,
        (data.borders.train, data.borders.validation, data.borders.test),
        str(series.index[0]),
        str(series.index[-1]),
        data.published,
        series.panel,
        tuple(series.columns[column] for column in given_ahead(data)),
        series.inputs,
        series.calendar,
        series.zone,
        series.local,
        tuple(name for name, _ in series.constants),
        tuple(value for _, value in series.constants),
    )


def given_ahead(data: "ForecastingData") -> list[int]:
    """List the columns that callers give for the steps ahead, without those of the calendar."""
    made = data.series.calendar.columns
    ahead = data.preprocessor.future_columns
    return [column for column in ahead if data.series.columns[column] not in made]


def known_inputs(data: "ForecastingData") -> list[str]:
    """Return the names for display of the inputs that forecasts read for the steps ahead."""
    if data.preprocessor.known is None:
        return []
    return [*description(data).future_inputs, *data.series.calendar.columns]


def require_alike(run: ForecastingRun, like: ForecastingRun) -> None:
    """Raise RunDirectoryError if two runs do not forecast the same; needs no TensorFlow."""
    for what in ("target_columns", "horizon", "frequency"):
        found, expected = getattr(run.series, what), getattr(like.series, what)
        if found != expected:
            name = {"target_columns": "targets"}.get(what, what)
            raise RunDirectoryError(
                f"{run.path}: expected the {name} {_shown(expected)} of {like.path}, got "
                f"{_shown(found)}"
            )


def _shown(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)
