"""The first training step of a model, later ones, its first prediction, and its export.

    python -m benchmarks.first_step
    python -m benchmarks.first_step --models speech video --rounds 5
    python -m benchmarks.first_step --processor    # where other processes disturb the clock
    python -m benchmarks.first_step --programs FOLDER    # twice: the second time they are there

The model shapes of `tests/ecosystem`, once with `keras_gru.GRU` and once with `keras.layers.GRU`,
in fresh processes that take turns. "First step" is the first `train_on_batch` of 16 rows: tracing,
compiling, running; "step" the median of twenty later ones, "predict" the first `predict_on_batch`.
All are medians over the rounds: this layer over Keras' and, in brackets, both. "Compiled" counts
the programs that XLA made, "saved_model.pb" is the size of the exported graph.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fresh_process import COMPILATIONS, ask
from benchmarks.layer.lengths import LAYERS
from gru_training.programs import keep_programs

ROWS, STEPS = 16, 30


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and, with --json, write the figures; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.first_step",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--models", nargs="+", metavar="NAME", help="of tests/ecosystem (all)")
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes per layer")
    parser.add_argument(
        "--processor", action="store_true", help="processor seconds of all threads, not the clock's"
    )
    parser.add_argument(
        "--programs", metavar="FOLDER", help="keep there what XLA compiles, and use what is there"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure")
    parser.add_argument("--worker", choices=LAYERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.worker:
        if arguments.programs:
            keep_programs(arguments.programs)
        clock = time.process_time if arguments.processor else time.perf_counter
        print(json.dumps(_measure(arguments.worker, arguments.models[0], clock)))
        return 0
    print("| model | first step (s) | step (ms) | predict (s) | saved_model.pb (kB) | compiled |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    found = []
    for model in arguments.models or _names():
        runs: dict[str, list[Any]] = {layer: [] for layer in LAYERS}
        for turn in range(arguments.rounds):
            for layer in LAYERS[:: -1 if turn % 2 else 1]:
                runs[layer].append(_in_fresh_process(layer, model, arguments))
        found.append({"model": model, **runs})
        print(table_row(found[-1]), flush=True)
    print()
    for measure in ("first", "step", "predict", "bytes"):
        ratios = [_median(c, "keras_gru", measure) / _median(c, "keras", measure) for c in found]
        print(f"{measure}: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


def table_row(cell: dict[str, Any]) -> str:
    """A row of Markdown."""
    columns = [cell["model"]]
    for measure, scale in (("first", 1), ("step", 1e3), ("predict", 1), ("bytes", 1e-3)):
        theirs, ours = (_median(cell, layer, measure) * scale for layer in LAYERS)
        digits = 0 if measure == "bytes" else 2
        columns.append(f"{ours / theirs:.2f} × ({ours:.{digits}f}, {theirs:.{digits}f})")
    columns.append(str(cell["keras_gru"][0]["compiled"]))
    return f"| {' | '.join(columns)} |"


def _median(cell: dict[str, Any], layer: str, measure: str) -> float:
    return statistics.median(run[measure] for run in cell[layer])


def _names() -> list[str]:
    from tests.ecosystem import model_shapes

    return [shape.__name__ for shape in model_shapes.ALL]


def _in_fresh_process(layer: str, model: str, given: argparse.Namespace) -> dict[str, float]:
    command = ["benchmarks.first_step", "--worker", layer, "--models", model]
    command += ["--processor"] if given.processor else []
    command += ["--programs", given.programs] if given.programs else []
    answer = ask(command, COMPILATIONS, layer)
    return {**answer.found, "compiled": answer.compiled}


def _measure(layer: str, name: str, clock: Callable[[], float]) -> dict[str, float]:
    import keras

    import keras_gru
    from tests.ecosystem import model_shapes

    gru = {"keras": keras.layers.GRU, "keras_gru": keras_gru.GRU}[layer]
    model = getattr(model_shapes, name)(gru)
    rng = np.random.default_rng(0)

    def values(tensor: Any) -> Any:
        size = (ROWS, *(STEPS if axis is None else axis for axis in tensor.shape[1:]))
        if tensor.dtype == "int32":
            return rng.integers(1, 20, size).astype("int32")
        return rng.random(size) < 0.7 if tensor.dtype == "bool" else rng.normal(size=size)

    inputs = [values(tensor) for tensor in model.inputs]
    targets = (
        [np.zeros(v.shape, "float32") for v in model(inputs)]
        if len(model.outputs) > 1
        else (np.zeros(model(inputs if len(inputs) > 1 else inputs[0]).shape, "float32"))
    )
    inputs = inputs if len(inputs) > 1 else inputs[0]
    model.compile("adam", ["mse"] * len(model.outputs) if len(model.outputs) > 1 else "mse")
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]).predict_on_batch(np.ones((2, 2)))
    times = []
    for _ in range(21):
        begin = clock()
        model.train_on_batch(inputs, targets)
        times.append(clock() - begin)
    begin = clock()
    model.predict_on_batch(inputs)
    predict = clock() - begin
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder, verbose=False)
        size = Path(folder, "saved_model.pb").stat().st_size
    return {
        "first": times[0],
        "step": statistics.median(times[1:]),
        "predict": predict,
        "bytes": size,
    }


if __name__ == "__main__":
    sys.exit(main())
