"""The delivered model of a run as an ONNX graph, which forecasts without TensorFlow.

A training writes it beside the Keras model where ONNX can express the model. It reads and answers
standardised values; the steps around it are those of `gru_serving.preprocessing.series`, in NumPy.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from gru_serving.preprocessing.operations import Arrays
from gru_training.forecasting.preprocessor import Predictor
from gru_training.forecasting.run import DELIVERED, ForecastingRun
from gru_training.runs.stored_graph import StoredGraph

if TYPE_CHECKING:
    from gru_training.runs.directory import RunWriter
GRAPH = "forecast.onnx"
"""File of the graph in a run."""
_STORED = StoredGraph(
    GRAPH,
    ("config.json", "series.json", "scaler.json", "combination.json", "model.keras", DELIVERED),
)
_CHECKED_WINDOWS, _CHECKED_COLUMNS, _TOLERANCE = 64, 1 << 14, 1e-4
"""Test windows whose answers are compared with the Keras model's, columns of all of them, and the
largest difference."""


def graph_predictor(run: ForecastingRun) -> Predictor | None:
    """Load the graph of a run; None if there is none that was made from its present files.

    Raises:
        RunDirectoryError: The graph cannot be loaded.
    """
    stored = _STORED.load(run)
    if stored is None:
        return None
    graph, _ = stored
    scale = run.preprocessor().scale

    def predict(histories: np.ndarray) -> np.ndarray:
        read = scale.standardised(np.asarray(histories, np.float32), Arrays)
        (answers,) = graph.run(["answers"], {"standardised": np.asarray(read, np.float32)})
        return np.asarray(answers)

    return predict


def write_graph(writer: "RunWriter", model: Any, predict: Predictor) -> None:
    """Write the graph of a forecaster into its run after comparing its answers with the model's.

    Nothing is written if ONNX cannot express the model, or if the answers differ.

    Args:
        writer: The run, with all its other files in place.
        model: The delivered model, from standardised windows (B, L, C) to (B, H, K, Q or 1).
        predict: Answers of the model to raw windows.
    """
    from gru_training.forecasting.export.onnx import ForecastingGraphs

    run = ForecastingRun(writer.path)
    shown = run.shown_network(model)
    try:
        graph = ForecastingGraphs(model, shown, run.config.model, run.shape).forecast()
    except ValueError:
        return
    _STORED.write(run, graph)
    windows = run.test_windows(
        min(_CHECKED_WINDOWS, max(1, _CHECKED_COLUMNS // len(run.series.columns)))
    )
    answer = graph_predictor(run)
    assert answer is not None
    if not np.allclose(answer(windows), predict(windows), _TOLERANCE, _TOLERANCE, equal_nan=True):
        (writer.path / GRAPH).unlink()
