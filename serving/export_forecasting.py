"""The export of a forecaster: its signatures, golden requests, warmup and parity.

With `serving.export` and the other `export_<task>` the only modules here that import keras_gru or
training.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from serving.golden import difference
from serving.protos.prediction_log_pb2 import PredictionLog
from serving.warmup import predict_record
from training.conformal import MEDIAN, quantiles
from training.forecasting_run import ForecastingRun
from training.forecasting_signatures import ForecastingSignatures

_GOLDEN_BATCHES = (1, 1, 2, 4)
_WARMUP_BATCHES = (1, 2, 8, 32)
_STEPS = 12
_PARITY_ROWS, _PARITY_TICKS = 8, 64


class ForecastingExport:
    """What `serving.export` asks of a task.

    Args:
        run: a complete run of the forecasting task.
    """

    task = "forecasting"

    def __init__(self, run: ForecastingRun) -> None:
        self._run = run
        self.methods: dict[str, str] = {}
        self._model = run.load_model()
        self._preprocessor = run.preprocessor()
        self.module = ForecastingSignatures(
            self._model,
            run.config.model,
            run.shape,
            self._preprocessor,
            run.columns,
            run.levels,
            run.offsets,
        )
        self.signatures: dict[str, Any] = self.module.by_name()
        self._windows = run.test_windows(sum(_GOLDEN_BATCHES))  # (n, L, C)

    def golden(self) -> list[dict[str, Any]]:
        """Requests on held-out windows, with the answers of the Keras model."""
        requests, start = [], 0
        for size in _GOLDEN_BATCHES:
            batch = self._windows[start : start + size]
            start += size
            if len(batch):
                requests.append(self._golden_forecast(batch, batch))
        first = self._windows[:2]
        holes = first.copy()
        holes[:, 1::5] = np.nan
        holes[:1, -1] = np.nan
        requests.append(self._golden_forecast(holes, holes))
        if not self.module.reads_all:  # of more than the look-back, the oldest are not read
            longer = np.concatenate([first[:, :3] + 1, first], axis=1)
            requests.append(self._golden_forecast(longer, first))
        if "gates" in self.signatures:
            shown = self._windows[:1]
            requests.append(
                self._golden_gates(shown[:, -_STEPS:] if self.module.reads_all else shown)
            )
        if "step" in self.signatures:
            requests += self._golden_steps(_begun(first))
        return requests

    def warmup(self) -> list[PredictionLog]:
        """Requests for every signature, with the batch sizes in use."""
        windows = np.resize(self._windows, (max(_WARMUP_BATCHES), *self._windows.shape[1:]))
        records = [
            predict_record({"history": windows[:size]}, "serving_default")
            for size in _WARMUP_BATCHES
        ]
        if "gates" in self.signatures:
            records.append(predict_record({"history": windows[:1]}, "gates"))
        if "step" in self.signatures:
            for size in _WARMUP_BATCHES:
                state = np.zeros((size, self.module.state_size), np.float32)
                records.append(
                    predict_record({"value": windows[:size, -1], "state": state}, "step")
                )
        return records

    def parity(self) -> dict[str, Any] | None:
        """How far `step`, tick by tick, is from `serving_default` on the same ticks.

        None where the model cannot stream.
        """
        if "step" not in self.signatures:
            return None
        windows = _begun(self._windows[:_PARITY_ROWS])[:, :_PARITY_TICKS]
        state = tf.zeros((len(windows), self.module.state_size))
        largest, differing = 0.0, 0
        for t in range(windows.shape[1]):
            answer = self.signatures["step"](value=tf.constant(windows[:, t]), state=state)
            state = answer["state"]
            whole = self.signatures["serving_default"](history=tf.constant(windows[:, : t + 1]))
            gap = difference(whole["quantiles"].numpy(), answer["quantiles"].numpy())
            largest = max(largest, float(gap.max()))
            differing += int((gap.max(axis=(1, 2, 3)) > 0).sum())
        return {
            "rows": len(windows),
            "steps": windows.shape[1],
            "steps_that_differ_at_all": differing,
            "largest_difference": largest,
        }

    def card(self) -> dict[str, Any]:
        """What of this task belongs on the model card."""
        return {
            "task": self.task,
            "columns": list(self._run.columns),
            "forecast_columns": list(self._run.target_columns),
            "frequency": self._run.frequency,
            "lookback": self._run.shape.lookback,
            "least_steps": self.module.least_steps,
            "horizon": self._run.shape.horizon,
            "levels": list(self._run.levels),
            "parameters": self._model.count_params(),
            "streaming": "step" in self.signatures,
            "streaming_state_size": self.module.state_size if "step" in self.signatures else None,
        }

    def _golden_forecast(self, asked: np.ndarray, read: np.ndarray) -> dict[str, Any]:
        """A request whose answer is that of the Keras model to the window `read`."""
        answers = self._model(self._preprocessor.standardise(tf.constant(read)), training=False)
        served = quantiles(answers, self._run.offsets, self._run.levels)
        raw = self._preprocessor.restore(served).numpy()
        return {
            "method": "predict",
            "signature_name": "serving_default",
            "inputs": {"history": _plain(asked)},
            "outputs": {
                "forecast": _plain(raw[..., list(self._run.levels).index(MEDIAN)]),
                "quantiles": _plain(raw),
            },
        }

    def _golden_gates(self, window: np.ndarray) -> dict[str, Any]:
        # The signature's own arithmetic; the tests compare it with the layer's equations.
        outputs = self.signatures["gates"](history=tf.constant(window))
        return {
            "method": "predict",
            "signature_name": "gates",
            "inputs": {"history": _plain(window)},
            "outputs": {name: _plain(value.numpy()) for name, value in outputs.items()},
        }

    def _golden_steps(self, windows: np.ndarray) -> list[dict[str, Any]]:
        """A chain of steps, and after it the whole look-back, as the Keras model answers that."""
        requests = []
        state = np.zeros((len(windows), self.module.state_size), np.float32)
        steps = windows.shape[1]
        for t in range(steps):
            value = windows[:, t]
            answer = self.signatures["step"](value=tf.constant(value), state=tf.constant(state))
            outputs = {name: answer[name].numpy() for name in ("forecast", "quantiles", "state")}
            if t == steps - 1:
                whole = self._golden_forecast(windows, windows)["outputs"]
                outputs.update({name: np.array(whole[name]) for name in whole})
            if t < _STEPS or t == steps - 1:
                requests.append(
                    {
                        "method": "predict",
                        "signature_name": "step",
                        "inputs": {"value": _plain(value), "state": _plain(state)},
                        "outputs": {name: _plain(array) for name, array in outputs.items()},
                    }
                )
            state = answer["state"].numpy()
        return requests


def _begun(windows: np.ndarray) -> np.ndarray:
    """The windows with a value of every column in their first tick, where a stream needs one."""
    begun = windows.copy()
    for row, column in np.argwhere(np.isnan(windows[:, 0])):
        known = windows[row, ~np.isnan(windows[row, :, column]), column]
        begun[row, 0, column] = known[0] if len(known) else 0.0
    return begun


def _plain(array: np.ndarray) -> Any:
    """Nested lists of the shortest decimals that give the same float32."""
    texts = np.char.mod("%.9g", array) if array.dtype != np.float32 else array.astype("U16")
    return texts.astype(np.float64).tolist()
