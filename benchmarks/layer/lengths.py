"""The cost of data of many lengths: first epoch, later epochs, and other batch sizes.

    python -m benchmarks.layer.lengths
    python -m benchmarks.layer.lengths --lengths uniform --units 64 --rounds 3
    python -m benchmarks.layer.lengths --json lengths.json

A model of one layer and a Dense is fitted to 60 batches of 32 sequences, the last of them of 9.
Each batch is as long as its longest sequence, which is where layers that compile pay. Then the
model predicts batches of 1, 7, 32, 50, 64 and 100 rows, each twice. Both layers do so in turn,
every time in a fresh process. Times are medians over the rounds, in seconds. "Compiled" counts the
programs that XLA made.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.fresh_process import COMPILATIONS, ask

LAYERS = ("keras", "keras_gru")
DRAWS = {
    "uniform": "from 20 to 119",
    "geometric": "mostly short, a few of some hundred steps",
    "bucketed": "uniform, filled up to a multiple of 20",
    "fixed": "100 steps in every batch",
}
BATCHES, ROWS, LAST_ROWS, FEATURES = 60, 32, 9, 32
PREDICTED, PREDICTED_STEPS = (1, 7, 32, 50, 64, 100), 80
EPOCHS = 4


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and, with --json, write the figures; returns the exit status."""
    title, _, more = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.layer.lengths",
        description=title,
        epilog=more + "\nlengths:\n" + "\n".join(f"  {k:<12}{v}" for k, v in DRAWS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--lengths", nargs="+", choices=tuple(DRAWS), default=list(DRAWS))
    parser.add_argument("--units", nargs="+", type=int, default=[64, 256])
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes per layer")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure")
    parser.add_argument("--worker", choices=LAYERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.worker:
        print(json.dumps(_measure(arguments.worker, arguments.lengths[0], arguments.units[0])))
        return 0
    print("| lengths, units | first epoch | later epochs | predict, first | again | compiled |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    found = []
    for lengths in arguments.lengths:
        for units in arguments.units:
            runs: dict[str, list[Any]] = {layer: [] for layer in LAYERS}
            for turn in range(arguments.rounds):
                for layer in LAYERS[:: -1 if turn % 2 else 1]:
                    runs[layer].append(_in_fresh_process(layer, lengths, units))
            found.append({"lengths": lengths, "units": units, **runs})
            print(table_row(found[-1]), flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


def table_row(cell: dict[str, Any]) -> str:
    """A row of Markdown: this layer's time over Keras' and, in brackets, both."""
    columns = [f"{cell['lengths']}, {cell['units']}"]
    for measure in ("first epoch", "later epoch", "first predict", "later predict"):
        keras, ours = (statistics.median(run[measure] for run in cell[layer]) for layer in LAYERS)
        columns.append(f"{ours / keras:.2f} × ({ours:.2f}, {keras:.2f})")
    columns.append(str(cell["keras_gru"][0]["compiled"]))
    return f"| {' | '.join(columns)} |"


def batches(lengths: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Inputs (B, T, D) and targets (B, 1) of an epoch."""
    rng = np.random.default_rng(0)
    if lengths == "geometric":
        steps = np.minimum(8 + rng.geometric(1 / 60, BATCHES), 400)
    else:
        steps = rng.integers(20, 120, BATCHES)
    if lengths == "bucketed":
        steps = -(-steps // 20) * 20
    if lengths == "fixed":
        steps[:] = 100
    rows = [ROWS] * (BATCHES - 1) + [LAST_ROWS]
    return [
        (
            rng.standard_normal((b, t, FEATURES), dtype=np.float32),
            rng.standard_normal((b, 1), dtype=np.float32),
        )
        for b, t in zip(rows, steps, strict=True)
    ]


def _in_fresh_process(layer: str, lengths: str, units: int) -> dict[str, float]:
    command = ["benchmarks.layer.lengths", "--worker", layer, "--lengths", lengths]
    answer = ask([*command, "--units", str(units)], COMPILATIONS, layer)
    return {**answer.found, "compiled": answer.compiled}


def _measure(layer: str, lengths: str, units: int) -> dict[str, float]:
    import keras

    import keras_gru

    data = batches(lengths)
    gru = {"keras": keras.layers.GRU, "keras_gru": keras_gru.GRU}[layer]
    model = keras.Sequential([keras.Input((None, FEATURES)), gru(units), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    epochs, predictions = [], []
    for _ in range(EPOCHS):
        begin = time.perf_counter()
        model.fit((batch for batch in data), steps_per_epoch=BATCHES, verbose=0, shuffle=False)
        epochs.append(time.perf_counter() - begin)
    rng = np.random.default_rng(1)
    for _ in range(2):
        begin = time.perf_counter()
        for rows in PREDICTED:
            inputs = rng.standard_normal((rows, PREDICTED_STEPS, FEATURES), dtype=np.float32)
            model.predict(inputs, batch_size=rows, verbose=0)
        predictions.append(time.perf_counter() - begin)
    return {
        "first epoch": epochs[0],
        "later epoch": statistics.median(epochs[1:]),
        "first predict": predictions[0],
        "later predict": predictions[1],
    }


if __name__ == "__main__":
    sys.exit(main())
