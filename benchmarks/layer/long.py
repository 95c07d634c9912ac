"""Memory and time of training on long sequences, with and without `keras.RematScope`.

    python -m benchmarks.layer.long
    python -m benchmarks.layer.long --shape 8,50000,16,64 --cases "last state" --json long.json

A training step of one layer on B sequences of T steps, D features and U units: forward pass and
gradients of all weights. With "all outputs" the loss is the sum of the squares of all outputs, with
"last state" of the last one. Each figure is from a fresh process: memory is the peak of resident
memory in a step beyond what was resident before the first one, time the least of three later steps.
Keras' own layer cannot be made in the scope. `Dense` in the place of the GRU shows what the outputs
and the loss need whatever the layer keeps.
"""

import argparse
import functools
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.fresh_process import ask
from benchmarks.layer.contest import Shape
from benchmarks.layer.memory import ENVIRONMENT, MEASURED

CASES = ("all outputs", "last state")
LAYERS = (*MEASURED, "Dense")
_TIMED = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and, with --json, write the figures; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.layer.long",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--shape", type=Shape.parse, default=Shape(32, 10_000, 64, 128))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.worker:
        print(json.dumps(_measure(arguments.layers[0], arguments.cases[0], arguments.shape)))
        return 0
    print(f"| {arguments.shape} | memory (MiB) | of Keras' | of keras_gru's | time (s) |")
    print("|---|---:|---:|---:|---:|", flush=True)
    found = []
    for case in arguments.cases:
        of_case: dict[str, dict[str, float]] = {}
        for layer in arguments.layers:
            if (case, layer) == ("last state", "Dense"):
                continue
            of_case[layer] = _in_fresh_process(layer, case, arguments.shape)
            found.append({"case": case, "layer": layer, **of_case[layer]})
            print(table_row(case, layer, of_case), flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


def table_row(case: str, layer: str, of_case: dict[str, dict[str, float]]) -> str:
    """A row of Markdown."""
    measured = of_case[layer]
    columns = [f"{layer}, {case}", f"{measured['bytes'] / 2**20:.0f}"]
    for other in MEASURED[:2]:
        known = other in of_case
        columns.append(f"{measured['bytes'] / of_case[other]['bytes']:.2f}" if known else "")
    columns.append(f"{measured['seconds']:.2f}")
    return f"| {' | '.join(columns)} |"


def _in_fresh_process(layer: str, case: str, shape: Shape) -> dict[str, float]:
    command = ["benchmarks.layer.long", "--worker", "--shape", str(shape)]
    command += ["--layers", layer, "--cases", case]
    return ask(command, ENVIRONMENT, f"{layer}, {case}").found


def _measure(layer: str, case: str, shape: Shape) -> dict[str, float]:
    import keras
    import numpy as np
    import tensorflow as tf

    import keras_gru
    from benchmarks.layer.memory import peak_bytes

    rng = np.random.default_rng(0)
    x = tf.constant(rng.standard_normal(shape[:3], dtype=np.float32))
    sequences: dict[str, Any] = {"return_sequences": case == "all outputs"}
    makers: dict[str, Any] = {
        "Keras": functools.partial(keras.layers.GRU, **sequences),
        "Dense": keras.layers.Dense,
    }
    make = makers.get(layer, functools.partial(keras_gru.GRU, **sequences))

    def training() -> Any:
        with keras.RematScope("full" if "RematScope" in layer else None):
            made = make(shape.units)
        made.build((shape.batch, None, shape.features))
        weights = [variable.value for variable in made.trainable_variables]

        @tf.function(autograph=False)
        def train(x: Any) -> Any:
            with tf.GradientTape() as tape:
                outputs = made(x) if layer == "Dense" else made(x, training=True)
                loss = tf.reduce_sum(tf.square(outputs))
            return tape.gradient(loss, weights)

        return train

    start, step = training(), training()
    peak = peak_bytes(lambda: start(x[:1, :20]), lambda: step(x))
    seconds = []
    for _ in range(_TIMED):
        begin = time.perf_counter()
        step(x)
        seconds.append(time.perf_counter() - begin)
    return {"bytes": peak, "seconds": min(seconds)}


if __name__ == "__main__":
    sys.exit(main())
