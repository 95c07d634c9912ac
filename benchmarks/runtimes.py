"""One exported version in both runtimes, side by side in one process.

    python -m benchmarks.runtimes VERSION [VERSION ...] [--rounds 5]

Asks each version its own golden rows, in interleaved rounds, without any server around it, and
prints medians in microseconds and their ratio.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gru_serving.codecs.coerce import coerce
from gru_serving.engine.golden import read_golden
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.runtime import open_version

RUNTIMES = ("tensorflow", "onnx")
_ROWS = (1, 8, 32)
_SECONDS = 0.5


def rows_of(version: Path, predictor: Predictor) -> dict[str, np.ndarray]:
    """All golden rows of `serving_default` that have one shape."""
    asked = [
        coerce(request["inputs"], predictor.find_signature(""))
        for request in read_golden(version)
        if request["signature_name"] == "serving_default"
    ]
    shape = {name: array.shape[1:] for name, array in asked[-1].items()}
    alike = [one for one in asked if {n: a.shape[1:] for n, a in one.items()} == shape]
    rows = {name: np.concatenate([one[name] for one in alike]) for name in shape}
    middle = len(next(iter(rows.values()))) // 2  # the first text is empty
    return {name: np.roll(array, -middle, axis=0) for name, array in rows.items()}


def call_times(predictor: Predictor, inputs: Mapping[str, np.ndarray]) -> list[float]:
    """Seconds of each call, for a while."""
    times = []
    end = time.perf_counter() + _SECONDS
    while (started := time.perf_counter()) < end:
        predictor.predict(inputs)
        times.append(time.perf_counter() - started)
    return times


def main() -> None:
    """Parse, load, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", type=Path, nargs="+", metavar="VERSION")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for version in arguments.versions:
        predictors = {
            runtime: Predictor(open_version(version, LoadOptions(runtime=runtime)).session)
            for runtime in RUNTIMES
        }
        rows = rows_of(version, predictors["onnx"])
        for count in _ROWS:
            inputs = {name: np.resize(a, (count, *a.shape[1:])) for name, a in rows.items()}
            times: dict[str, list[float]] = {runtime: [] for runtime in RUNTIMES}
            for number in range(arguments.rounds + 1):
                for runtime, predictor in predictors.items():
                    measured = call_times(predictor, inputs)
                    times[runtime] += measured if number else []  # the first round warms up
            medians = [statistics.median(times[runtime]) * 1e6 for runtime in RUNTIMES]
            print(
                f"{version}, {count} rows: TensorFlow {medians[0]:.0f} us, "
                f"ONNX Runtime {medians[1]:.0f} us, ratio {medians[1] / medians[0]:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
