"""Size and speed of converted models: ONNX Runtime and TensorFlow Lite, Keras' GRU and ours.

    python -m benchmarks.converted

Milliseconds of one row, one thread each, the files in turn, the least of 200 each. Rows `export`
need tf2onnx and are left out without it.
"""

import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnxruntime
import tensorflow as tf

import keras_gru
from keras_gru.convert import to_onnx_model, to_tflite

REPEATS, STEPS, FEATURES = 200, 50, 64
SHAPES = {
    "GRU(64)": lambda gru: gru(64),
    "GRU(256), all outputs": lambda gru: gru(256, return_sequences=True),
    "Bidirectional(GRU(64)), all outputs": lambda gru: keras.layers.Bidirectional(
        gru(64, return_sequences=True)
    ),
}
GRUS = {"Keras": keras.layers.GRU, "ours": keras_gru.GRU}
Run = Callable[[], Any]


def main() -> None:
    """Print the table."""
    print("| model | format | Keras, kB | ours, kB | Keras, ms | ours, ms |")
    print("|---|---|---|---|---|---|")
    for name, shape in SHAPES.items():
        models = {library: model_of(shape(gru)) for library, gru in GRUS.items()}
        for kind, convert in formats().items():
            with tempfile.TemporaryDirectory() as directory:
                files = {k: convert(model, Path(directory) / k) for k, model in models.items()}
            times = in_turn([run for run, _ in files.values()])
            sizes = " | ".join(f"{size / 1000:.0f}" for _, size in files.values())
            print(f"| {name} | {kind} | {sizes} | {times[0]:.3f} | {times[1]:.3f} |", flush=True)


def formats() -> dict[str, Callable[[keras.Model, Path], tuple[Run, int]]]:
    """List the formats: functions that write a model and return its runner and the file's size."""
    exports = {"ONNX, `export`": exported} if find_spec("tf2onnx") else {}
    return {
        **exports,
        "ONNX, `to_onnx_model`": native,
        "TensorFlow Lite": lambda model, _: lite(model, None),
        "TensorFlow Lite, int8": lambda model, _: lite(model, "int8"),
    }


def model_of(layer: Any) -> keras.Model:
    """A model of one layer and one row."""
    inputs = keras.Input((STEPS, FEATURES), batch_size=1)
    model = keras.Model(inputs, layer(inputs))
    model(x())
    return model


def x() -> np.ndarray:
    """Draw the input."""
    return np.random.default_rng(0).normal(size=(1, STEPS, FEATURES)).astype("float32")


def exported(model: keras.Model, path: Path) -> tuple[Run, int]:
    """Export with tf2onnx."""
    model.export(f"{path}.onnx", format="onnx", verbose=False)
    return session(Path(f"{path}.onnx"))


def native(model: keras.Model, path: Path) -> tuple[Run, int]:
    """Export with a native GRU node."""
    to_onnx_model(model, path)
    return session(path)


def session(path: Path) -> tuple[Run, int]:
    """ONNX Runtime on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    loaded = onnxruntime.InferenceSession(str(path), options)
    given = {loaded.get_inputs()[0].name: x()}
    return lambda: loaded.run(None, given), path.stat().st_size


def lite(model: keras.Model, quantize: str | None) -> tuple[Run, int]:
    """The interpreter on one thread."""
    content = to_tflite(model, quantize=quantize)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it has moved
        interpreter = tf.lite.Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x())
    return interpreter.invoke, len(content)


def in_turn(runs: list[Run]) -> list[float]:
    """Measure the least milliseconds of each model, the models taking turns."""
    least = [float("inf")] * len(runs)
    for _ in range(REPEATS):
        for index, run in enumerate(runs):
            start = time.perf_counter()
            run()
            least[index] = min(least[index], 1e3 * (time.perf_counter() - start))
    return least


if __name__ == "__main__":
    main()
