"""The cost of first uses in a process: of training, of predictions, of an export, of new lengths.

    python -m benchmarks.cold
    python -m benchmarks.cold --only texts gamma --rounds 1
    python -m benchmarks.cold --json cold.json

Every figure is the median of fresh processes, in which this layer and Keras' take turns: ours over
Keras' and, in brackets, both, in seconds. Each stands four times: as processor time of all threads,
which other processes disturb less, and by the clock; without programs of earlier processes, and
with those that a process before it has compiled (`gru_training.programs`). "Compiled" counts the
programs that XLA made. Tasks:

    texts       embedding and two GRU(128), 16 rows of 60 tokens: first training step, first
                `predict`, export
    predict     `predict` of 30 batches of many lengths with GRU(64): first pass, second pass
    gamma ...   `fit` of 70 batches with 32, 17 or 9 rows and lengths of a distribution with
                GRU(64): first epoch, median of three later ones
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
import numpy.typing as npt

from benchmarks.fresh_process import COMPILATIONS, ask
from gru_training.programs import keep_programs

KERAS, OURS, OURS_KEPT = "keras", "keras_gru", "keras_gru, programs kept"
FEATURES, UNITS, BATCHES, LATER_EPOCHS = 32, 64, 70, 3

Rng = np.random.Generator
LENGTHS: dict[str, Callable[[Rng, int], Any]] = {
    "gamma": lambda rng, n: np.clip(rng.gamma(2.5, 28, n), 6, 230),
    "uniform": lambda rng, n: rng.integers(20, 120, n),
    "heavy-tailed": lambda rng, n: np.clip(12 * (1 + rng.pareto(1.3, n)), 12, 600),
    "two humps": lambda rng, n: np.where(
        rng.uniform(size=n) < 0.6, rng.integers(8, 25, n), rng.integers(150, 260, n)
    ),
    "bucketed": lambda rng, n: -(-rng.integers(20, 120, n) // 20) * 20,
}
"""Lengths of n batches, by the name of their distribution."""

TASKS = ("texts", "predict", *LENGTHS)

Clocks = tuple[float, float]
Runs = dict[str, list[dict[str, Any]]]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and, with --json, write the figures; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cold",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes per layer")
    parser.add_argument("--no-cache", action="store_true", help="omit the columns with programs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure")
    parser.add_argument("--worker", choices=(KERAS, OURS), help=argparse.SUPPRESS)
    parser.add_argument("--programs", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.worker:
        if arguments.programs:
            keep_programs(arguments.programs)
        print(json.dumps(_measure(arguments.worker, arguments.only[0])))
        return 0
    print("| | processor | clock | processor, programs kept | clock, programs kept | compiled |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    found = {}
    for task in arguments.only:
        found[task] = _in_turn(task, arguments.rounds, not arguments.no_cache)
        print("\n".join(table_rows(task, found[task])), flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


def table_rows(task: str, runs: Runs) -> list[str]:
    """Rows of Markdown, one for each figure of a task."""
    rows = []
    for figure in runs[KERAS][0]["figures"]:
        cells = [f"{task}: {figure}"]
        for contender in (OURS, OURS_KEPT):
            for clock in (0, 1):
                if not runs[contender]:
                    cells.append("")
                    continue
                theirs, ours = (
                    statistics.median(run["figures"][figure][clock] for run in runs[name])
                    for name in (KERAS, contender)
                )
                cells.append(f"{ours / theirs:.2f} × ({ours:.2f}, {theirs:.2f})")
        rows.append(f"| {' | '.join([*cells, str(runs[OURS][0]['compiled'])])} |")
    return rows


def batches(lengths: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Draw inputs (B, T, D) and targets (B, 1) of an epoch."""
    rng = np.random.default_rng(0)
    steps = LENGTHS[lengths](rng, BATCHES).astype(int)
    rows = rng.choice([32, 32, 32, 17, 9], BATCHES)
    return [
        (
            rng.standard_normal((b, t, FEATURES), dtype=np.float32),
            rng.standard_normal((b, 1), dtype=np.float32),
        )
        for b, t in zip(rows, steps, strict=True)
    ]


def _in_turn(task: str, rounds: int, kept: bool) -> Runs:
    """Run a task in fresh processes, the contenders in turn, reversed every other round."""
    runs: Runs = {KERAS: [], OURS: [], OURS_KEPT: []}
    with tempfile.TemporaryDirectory() as folder:
        if kept:
            _in_fresh_process("keras_gru", task, folder)
        for turn in range(rounds):
            for name in (KERAS, OURS, OURS_KEPT)[:: -1 if turn % 2 else 1]:
                if name != OURS_KEPT:
                    runs[name].append(_in_fresh_process(name, task))
                elif kept:
                    runs[name].append(_in_fresh_process(OURS, task, folder))
    return runs


def _in_fresh_process(layer: str, task: str, programs: str | None = None) -> dict[str, Any]:
    command = ["benchmarks.cold", "--worker", layer, "--only", task]
    command += ["--programs", programs] if programs else []
    answer = ask(command, COMPILATIONS, f"{layer}, {task}")
    return {"figures": answer.found, "compiled": answer.compiled}


def _measure(layer: str, task: str) -> dict[str, Clocks]:
    import keras

    import keras_gru

    gru = {KERAS: keras.layers.GRU, OURS: keras_gru.GRU}[layer]
    # The first model of a process costs something whatever its layers; no part of the figures.
    other = keras.Sequential([keras.Input((None, 2)), keras.layers.Dense(1)])
    other.compile("adam", "mse")
    other.train_on_batch(np.ones((2, 3, 2)), np.ones((2, 3, 1)))
    other.predict(np.ones((2, 3, 2)), verbose=0)
    return _texts(gru) if task == "texts" else _lengths(gru, task)


def _texts(gru: Any) -> dict[str, Clocks]:
    import keras

    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(1000, 64),
            gru(128, return_sequences=True),
            gru(128),
            keras.layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    rng = np.random.default_rng(0)
    words, labels = rng.integers(1, 1000, (16, 60)), rng.integers(0, 2, 16)
    figures = {
        "first training step": _timed(lambda: model.train_on_batch(words, labels)),
        "first `predict`": _timed(lambda: model.predict(words, verbose=0)),
    }
    with tempfile.TemporaryDirectory() as folder:
        figures["export"] = _timed(lambda: model.export(folder, verbose=False))
    return figures


def _lengths(gru: Any, task: str) -> dict[str, Clocks]:
    import keras

    model = keras.Sequential([keras.Input((None, FEATURES)), gru(UNITS), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    if task == "predict":
        rng = np.random.default_rng(0)
        lengths = rng.integers(5, 200, 30)
        data = [rng.standard_normal((32, t, FEATURES), dtype=np.float32) for t in lengths]

        def passing() -> Clocks:
            return _timed(lambda: [model.predict(batch, verbose=0) for batch in data])

        return {"first pass": passing(), "second pass": passing()}
    examples = batches(task)

    def epoch() -> Clocks:
        return _timed(
            lambda: model.fit(
                (batch for batch in examples), steps_per_epoch=BATCHES, verbose=0, shuffle=False
            )
        )

    first, later = epoch(), [epoch() for _ in range(LATER_EPOCHS)]
    processor, clock = (statistics.median(both) for both in zip(*later, strict=True))
    return {"first epoch": first, "later epochs": (processor, clock)}


def _timed(call: Callable[[], object]) -> Clocks:
    """Measure a call: seconds of processor time, and by the clock."""
    begin = time.process_time(), time.perf_counter()
    call()
    return time.process_time() - begin[0], time.perf_counter() - begin[1]


if __name__ == "__main__":
    sys.exit(main())
