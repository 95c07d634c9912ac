"""Quality and size of trained models with int8 kernels, compared with float32.

    python -m benchmarks.int8 runs/RUN ...

One row per run: accuracy on the test rows, or squared error on the test windows; bytes of
model.keras; milliseconds of a batch of 32, the two models in turn, the least of 30 each.
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from gru_training.forecasting.data import prepare, read_series
from gru_training.forecasting.evaluation import evaluate_forecasts
from gru_training.forecasting.preprocessor import make_predictor
from gru_training.forecasting.run import ForecastingRun
from gru_training.sentiment.network.model import predict_logits
from gru_training.sentiment.run import SentimentRun
from gru_training.words.vocabulary import token_ids

ROWS, REPEATS = 32, 30


def main(runs: list[str]) -> None:
    """Print the table."""
    print("| run | measure | float32 | int8 GRUs | int8 all | bytes | ms |")
    print("|---|---|---|---|---|---|---|")
    for path in runs:
        print(f"| {Path(path).name} | {' | '.join(row_of(path))} |", flush=True)


def row_of(path: str) -> list[str]:
    """Write one row of the table, without the name."""
    run, evaluate = opened(path)
    models = [run.load_model() for _ in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Keras' warning about layers without weights
        models[1].quantize("int8", filters="gru_cell")
        models[2].quantize("int8")
    measured = [evaluate(model) for model in models]
    sizes = " / ".join(f"{size(model):,}" for model in models)
    times = " / ".join(f"{value:.2f}" for value in milliseconds(models))
    measure = "accuracy" if isinstance(run, SentimentRun) else "MSE"
    return [measure, *(f"{value:.4f}" for value in measured), sizes, times]


def opened(path: str) -> tuple[Any, Any]:
    """A run, and the function that measures its model."""
    if (Path(path) / "scaler.json").is_file():
        return forecasting(ForecastingRun.open(path))
    run = SentimentRun.open(path)
    predictions = list(run.test_predictions())
    ids = token_ids(run.preprocessor(), [prediction.text for prediction in predictions])
    labels = np.array([run.classes.index(prediction.label) for prediction in predictions])
    return run, lambda model: float((predict_logits(model, ids).argmax(-1) == labels).mean())


def forecasting(run: ForecastingRun) -> tuple[ForecastingRun, Any]:
    """Open a run of the other task in the same way."""
    data = prepare(read_series(run.config.data), run.config.data)

    def evaluate(model: keras.Model) -> float:
        windows = data.windows("test")
        result = evaluate_forecasts(
            make_predictor(model, data.preprocessor),
            windows,
            run.offsets,
            data.preprocessor,
            run.levels,
        )
        return float(result.errors.mse)

    return run, evaluate


def size(model: keras.Model) -> int:
    """Size of model.keras in bytes."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.keras"
        model.save(path)
        return path.stat().st_size


def milliseconds(models: list[keras.Model]) -> list[float]:
    """Milliseconds of a batch, the models taking turns."""
    shape = [size or 40 for size in models[0].input_shape[1:]]
    dtype = models[0].inputs[0].dtype
    batch = tf.ones([ROWS, *shape], dtype)
    functions = [tf.function(lambda x, model=model: model(x, training=False)) for model in models]
    least = [float("inf")] * len(models)
    for _ in range(REPEATS):
        for index, function in enumerate(functions):
            start = time.perf_counter()
            function(batch)
            least[index] = min(least[index], 1e3 * (time.perf_counter() - start))
    return least


if __name__ == "__main__":
    main(sys.argv[1:])
