"""Time from the start of a model's loading to AVAILABLE, and of the first request after it.

    python -m benchmarks.server_start                           # the models of first_answer
    python -m benchmarks.server_start demo_output/models/sentiment/1 --runtime onnx

A server is started for every figure, with TF Serving's flag `--enable_model_warmup` on and off. It
serves another small model first, so that TensorFlow is there, as it is in TF Serving, and then the
measured one as the next version. Its log says how long loading took, warmup requests included; the
first request is timed over gRPC, on a connection that is there already. Without versions, the
models are those of `benchmarks.first_answer`, each with this layer and with that of Keras, in turn,
and one warmup request; of an export, they are its own, and the request is its first golden one.
"""

import argparse
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.first_answer import LAYERS, MODELS, UNITS, export_both, fresh, request_ids
from benchmarks.server_process import NAME, RunningServer, await_version, publish, running_server
from gru_serving.client import connect
from gru_serving.engine.golden import read_golden, to_array
from gru_serving.engine.warmup import predict_record, write_records
from gru_serving.storage.digests import write_digests

_LOADED = re.compile(r"Successfully loaded servable version .* in ([\d.]+) s")
WARMUP = (True, False)


class Start(NamedTuple):
    """Seconds."""

    available: float
    first_request: float


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.server_start",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("versions", type=Path, nargs="*", metavar="VERSION")
    parser.add_argument("--rounds", type=int, default=3, help="starts (default: %(default)s)")
    parser.add_argument("--runtime", default="tensorflow", help="the server's flag")
    arguments = parser.parse_args(argv)
    print("| model | AVAILABLE, warmed up | first request | AVAILABLE, not | first request |")
    print("|---|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder, "other")
        fresh(_export_other, other)
        for version in arguments.versions:
            request = read_golden(version)[0]
            inputs = {name: to_array(values) for name, values in request["inputs"].items()}
            starts = _in_turns(other, {"": version}, inputs, arguments)
            print(_row(str(version), starts), flush=True)
        for number, model in enumerate(() if arguments.versions else MODELS):
            ids = request_ids(model)
            paths = {layer: Path(folder, f"{layer}-{number}") for layer in LAYERS}
            fresh(export_both, model, paths, UNITS)
            for path in paths.values():
                write_records(path, [predict_record({"ids": ids})])
                write_digests(path)  # which spare the server a trial
            print(_row(model.name, _in_turns(other, paths, {"ids": ids}, arguments)), flush=True)
    return 0


def _in_turns(
    other: Path,
    versions: Mapping[str, Path],
    inputs: Mapping[str, np.ndarray],
    arguments: argparse.Namespace,
) -> dict[str, dict[bool, list[Start]]]:
    starts: dict[str, dict[bool, list[Start]]] = {n: {w: [] for w in WARMUP} for n in versions}
    for turn in range(arguments.rounds):
        for warmup in WARMUP:
            for name in list(versions)[:: -1 if turn % 2 else 1]:
                with (
                    tempfile.TemporaryDirectory() as folder,
                    running_server(Path(folder, NAME), other, warmup, arguments.runtime) as server,
                ):
                    starts[name][warmup].append(_start(server, versions[name], inputs))
    return starts


def _start(server: RunningServer, version: Path, inputs: Mapping[str, np.ndarray]) -> Start:
    publish(version, server.base, 2)
    await_version(server.url, 2)
    with connect(server.url) as client:
        client.status(NAME)
        begun = time.perf_counter()
        client.predict(inputs, NAME)
        first = time.perf_counter() - begun
    _, loaded = _LOADED.findall(server.log.read_text("utf-8"))
    return Start(float(loaded), first)


def _row(model: str, starts: Mapping[str, Mapping[bool, Sequence[Start]]]) -> str:
    """A row of Markdown: this layer's over Keras' and, in brackets, both; or seconds."""
    cells = [model]
    for warmup in WARMUP:
        for field in Start._fields:
            medians = [
                statistics.median(getattr(s, field) for s in of_layer[warmup])
                for of_layer in starts.values()
            ]
            shown = ", ".join(f"{m:.2f}" if field == "available" else f"{m:.3f}" for m in medians)
            both = len(medians) > 1
            cells.append(f"{medians[0] / medians[1]:.2f} × ({shown} s)" if both else f"{shown} s")
    return f"| {' | '.join(cells)} |"


def _export_other(path: Path) -> None:
    import keras

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.export(path, verbose=False)
    write_digests(path)


if __name__ == "__main__":
    sys.exit(main())
