"""The export of a forecaster: its signatures, and requests with their answers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

from gru_serving.preprocessing.series import MEDIAN
from gru_training.data.problems import values_shown
from gru_training.forecasting.export.calendar import calendar_card, calendar_inputs
from gru_training.forecasting.export.one_series import one_series_of
from gru_training.forecasting.export.onnx import ForecastingGraphs
from gru_training.forecasting.export.signatures import ForecastingSignatures
from gru_training.forecasting.future import Recent, inputs_ahead
from gru_training.forecasting.intervals import quantiles
from gru_training.forecasting.preprocessor import make_predictor
from gru_training.forecasting.run import ForecastingRun
from gru_training.servable import OnnxModel, Request, Servable, written

_GOLDEN_BATCHES = (1, 1, 2, 4)
_STEPS = 12
_STREAMED_ROWS, _STREAMED_TICKS = 8, 64
_REFERENCE_WINDOWS = 2000


class ForecastingServable(Servable):
    """The model of a forecasting run.

    Args:
        run: Complete run.
    """

    module: ForecastingSignatures

    def __init__(self, run: ForecastingRun) -> None:
        self._run = run
        self._model = run.delivered_model()
        self._preprocessor = run.preprocessor()
        self._predict = make_predictor(self._model, self._preprocessor)
        network = self._model, run.shown_network(self._model), run.config.model, run.shape
        one_series = one_series_of(run, self._model)
        calendar = calendar_inputs(run, self._preprocessor)
        self._timed = calendar is not None and calendar.read
        module = ForecastingSignatures(
            *network,
            self._preprocessor,
            run.columns,
            run.levels,
            run.offsets,
            run.series.panel,
            one_series,
            calendar,
        )
        self._graphs = ForecastingGraphs(*network, one_series)
        super().__init__(module, module.concrete())
        self._windows = run.test_windows(sum(_GOLDEN_BATCHES))  # (n, L, C)
        self._given = len(run.columns) - len(run.series.calendar.columns)
        self._times = np.array([])
        if self._timed:
            self._times = run.test_times(sum(_GOLDEN_BATCHES))  # (n,)
        self._known = bool(run.series.future_columns)
        if self._known:
            self._futures = run.test_futures(sum(_GOLDEN_BATCHES))  # (n, H, F)
        if run.series.panel:  # of a series that has ended the answer is NaN, which compares to none
            ended = np.isnan(self._windows).all(axis=1, keepdims=True)
            mean = self._preprocessor.plain.mean.astype(np.float32)
            self._windows = np.where(ended, mean, self._windows)

    def golden(self) -> list[Request]:
        """Return requests on held-out windows with the answers of the Keras model."""
        requests, start = [], 0
        for size in _GOLDEN_BATCHES:
            batch = self._windows[start : start + size]
            if len(batch):
                requests.append(self._golden_forecast(batch, batch, start))
            start += size
        first = self._windows[:2]
        holes = first.copy()
        holes[:, 1::5, : self._given] = np.nan
        holes[:1, -1, : self._given] = np.nan
        requests.append(self._golden_forecast(holes, holes))
        if not self.module.reads_all:  # of more than the look-back, the oldest are not read
            longer = np.concatenate([first[:, :3] + 1, first], axis=1)
            requests.append(self._golden_forecast(longer, first))
        requests += self._golden_names(first)
        if "one_series" in self.signatures:
            requests.append(self._golden_one_series(len(first)))
        if "gates" in self.signatures:
            shown = self._windows[:1]
            requests.append(
                self._golden_gates(shown[:, -_STEPS:] if self.module.reads_all else shown)
            )
        if "step" in self.signatures:
            requests += self._golden_steps(_begun(first))
        return requests

    def streamed(self) -> Iterator[tuple[np.ndarray, np.ndarray]] | None:
        """Compute quantiles of held-out windows tick by tick: `serving_default` beside `step`."""
        return self._stream() if "step" in self.signatures else None

    def _stream(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        windows = _begun(self._windows[:_STREAMED_ROWS])[:, :_STREAMED_TICKS]
        state = tf.zeros((len(windows), self.module.state_size))
        for t in range(windows.shape[1]):
            answer = self.signatures["step"](value=tf.constant(windows[:, t]), state=state)
            state = answer["state"]
            whole = self.signatures["serving_default"](history=tf.constant(windows[:, : t + 1]))
            yield whole["quantiles"].numpy(), answer["quantiles"].numpy()

    def reference(self) -> Request:
        """Return windows of the test part with the run's stored forecasts."""
        windows = self._run.test_windows(_REFERENCE_WINDOWS)
        forecasts, _ = self._run.test_answers(_REFERENCE_WINDOWS)
        inputs = {"history": windows[..., : self._given]}
        return Request("serving_default", inputs, {"forecast": forecasts})

    def columns(self) -> dict[str, list[str]]:
        """Return the names of the columns of histories and of forecasts."""
        return {
            "history": list(self._run.columns[: self._given]),
            "forecast": list(self._run.target_columns),
        }

    def onnx(self) -> OnnxModel:
        """Return the networks as ONNX graphs."""
        return written(self.module.described(), self._graphs)

    def card(self) -> dict[str, Any]:
        """Return this task's entries of the model card."""
        return {
            "columns": list(self._run.columns[: self._given]),
            "forecast_columns": list(self._run.target_columns),
            "future_columns": list(self._run.series.future_columns),
            "calendar": calendar_card(self._run.series.calendar) if self._timed else None,
            "frequency": self._run.frequency,
            "lookback": self._run.shape.lookback,
            "least_steps": self.module.least_steps,
            "horizon": self._run.shape.horizon,
            "levels": list(self._run.levels),
            "parameters": self._model.count_params(),
            "series_of_unequal_length": self._run.series.panel,
            "streaming": "step" in self.signatures,
            "streaming_state_size": self.module.state_size if "step" in self.signatures else None,
        }

    def notes(self) -> list[str]:
        """Name the columns that were constant, which no network forecasts."""
        if not (constants := self._run.series.constants):
            return []
        shown = values_shown(constants)
        return [f"constant in the training, so that servers do not forecast them: {shown}"]

    def _golden_forecast(self, asked: np.ndarray, read: np.ndarray, start: int = 0) -> Request:
        """Make a request whose answer is that of the Keras model to the windows `read`.

        Args:
            asked: (B, T, C), of the request.
            read: Values that the model reads, (B, L, C).
            start: Number of the first window whose known inputs are sent, if the model reads any.
        """
        inputs = {"history": asked[..., : self._given], **self._timestamps(len(read), start)}
        effects = None
        if self._known:
            inputs["future"] = self._futures[start : start + len(read)]
        if self._preprocessor.future_columns:
            effects = self._preprocessor.effects(read, self._ahead(len(read), start))
        served = quantiles(self._predict(read), self._run.offsets, self._run.levels)
        raw = self._preprocessor.restore(served, effects).numpy()
        middle = list(self._run.levels).index(MEDIAN)
        outputs = {"forecast": raw[..., middle], "quantiles": raw}
        return Request("serving_default", inputs, outputs)

    def _timestamps(self, rows: int, start: int = 0) -> dict[str, np.ndarray]:
        """Make the input `timestamp` of a number of windows, if the model reads it."""
        if not self._timed:
            return {}
        times = np.resize(self._times[start:], rows)
        return {"timestamp": np.array([str(time).encode() for time in times], object)}

    def _ahead(self, rows: int, start: int) -> np.ndarray:
        """Return all inputs of the steps ahead (rows, H, F).

        Those of the calendar come from pandas.
        """
        run, none = self._run, np.empty((0, 0), np.float32)
        names = [run.columns[column] for column in self._preprocessor.future_columns]
        found = []
        for row in range(start, start + rows):
            last = pd.DatetimeIndex(self._times[row : row + 1]).tz_localize(None)
            given = self._futures[row] if self._known else none
            recent = Recent(last, self._windows[row], given)
            parts = recent, names, run.series.calendar, run.frequency, run.shape.horizon
            found.append(inputs_ahead(*parts)[1])
        return np.stack(found)

    def _golden_names(self, windows: np.ndarray) -> list[Request]:
        """List the columns from last to first, after one that the model does not know."""
        own, count = self._run.columns[: self._given], self._given
        columns = ("", *reversed(own))
        names = _named(columns, len(windows))
        unknown = np.full((*windows.shape[:2], 1), np.nan, np.float32)
        turned = np.concatenate([unknown, windows[..., : self._given][..., ::-1]], axis=-1)
        expected = self._golden_forecast(windows, windows).outputs
        places = range(count, 0, -1)
        needed = np.isin(np.arange(count), self.module.read)
        known = {
            "columns": _named(own, len(windows)),
            "place": np.tile(np.array([*places], np.int32), (len(windows), 1)),
            "needed": np.tile(needed.astype(np.int32), (len(windows), 1)),
            "forecast_columns": _named(self._run.target_columns, len(windows)),
        }
        named = {"history": turned, "columns": names, **self._timestamps(len(windows))}
        if self._known:
            known_columns = self._run.series.future_columns
            named["future"] = self._futures[: len(windows), :, ::-1]
            named["future_columns"] = _named((*reversed(known_columns),), len(windows))
            known["future_columns"] = _named(known_columns, len(windows))
        return [
            Request("by_name", named, expected),
            Request("columns", {"names": names}, known),
        ]

    def _single(self, rows: int) -> dict[str, np.ndarray]:
        """Make inputs of `one_series` from some windows of the first series."""
        windows = np.resize(self._windows, (rows, *self._windows.shape[1:]))
        inputs = {"history": windows[..., self._run.shape.targets[0]]}
        if self._known:
            count = len(self._run.series.inputs)
            columns = [self._run.columns.index(n) for n in self._run.series.future_columns[:count]]
            futures = np.resize(self._futures, (rows, *self._futures.shape[1:]))
            inputs |= {"past": windows[..., columns], "future": futures[..., :count]}
        return inputs

    def _golden_one_series(self, rows: int) -> Request:
        # This uses the signature's own arithmetic; the tests compare it with the model's.
        inputs = self._single(rows)
        asked = {name: tf.constant(value) for name, value in inputs.items()}
        outputs = {name: v.numpy() for name, v in self.signatures["one_series"](**asked).items()}
        return Request("one_series", inputs, outputs)

    def _golden_gates(self, window: np.ndarray) -> Request:
        # This uses the signature's own arithmetic; the tests compare it with the layer's equations.
        inputs = {"history": window[..., : self._given], **self._timestamps(len(window))}
        asked = {name: tf.constant(value) for name, value in inputs.items()}
        outputs = {name: v.numpy() for name, v in self.signatures["gates"](**asked).items()}
        return Request("gates", inputs, outputs)

    def _golden_steps(self, windows: np.ndarray) -> list[Request]:
        """Make a chain of steps, followed by the whole look-back with the Keras model's answer."""
        requests = []
        state = np.zeros((len(windows), self.module.state_size), np.float32)
        steps = windows.shape[1]
        for t in range(steps):
            value = windows[:, t]
            answer = self.signatures["step"](value=tf.constant(value), state=tf.constant(state))
            outputs = {name: answer[name].numpy() for name in ("forecast", "quantiles", "state")}
            if t == steps - 1:
                outputs.update(self._golden_forecast(windows, windows).outputs)
            if t < _STEPS or t == steps - 1:
                requests.append(Request("step", {"value": value, "state": state}, outputs))
            state = answer["state"].numpy()
        return requests


def _begun(windows: np.ndarray) -> np.ndarray:
    """Select the windows with every value in their first tick, if a stream needs them."""
    begun = windows.copy()
    for row, column in np.argwhere(np.isnan(windows[:, 0])):
        known = windows[row, ~np.isnan(windows[row, :, column]), column]
        begun[row, 0, column] = known[0] if len(known) else 0.0
    return begun


def _named(columns: tuple[str, ...], rows: int) -> np.ndarray:
    """Encode texts (rows, columns) as in requests."""
    return np.tile(np.array([name.encode() for name in columns], object), (rows, 1))
