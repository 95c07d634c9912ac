"""Time of an exported model until its first answer, and for each answer after it.

    python -m benchmarks.first_answer
    python -m benchmarks.first_answer --unroll 1 2 4 8    # by steps per iteration of an export

Models of token ids (Embedding 32, recurrent layers of 64 units, Dense), once with `keras_gru.GRU`
and once with `keras.layers.GRU` and the same weights. Each is exported, and loaded in a fresh
process by `tf.saved_model.load` and in a v1 Session, as a server does. Both layers take turns, so
that what else the machine does hits both. "First" is the loading and the first answer, "export" the
time that the export took. `benchmarks.server_start` has the same models in the server.
"""

import argparse
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LAYERS = ("keras_gru", "keras")
LOADERS = ("saved_model.load", "session")
COLUMNS = (
    *("model", "first, `tf.saved_model.load`", "first, v1 Session", "p50 afterwards"),
    *("export", "saved_model.pb", "library functions"),
)
UNITS, FEATURES, WORDS = 64, 32, 1000


class Model(NamedTuple):
    """A model of the grid.

    Attributes:
        name: Name in the table.
        mask: Whether id 0 is masked.
        bidirectional: Whether its recurrent layers also read backwards.
        layers: Number of recurrent layers.
    """

    name: str
    mask: bool
    bidirectional: bool
    layers: int


MODELS = (
    Model("one layer, no mask", False, False, 1),
    Model("one layer, mask", True, False, 1),
    Model("bidirectional, mask", True, True, 1),
    Model("two bidirectional, mask", True, True, 2),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables and, with --json, write the figures; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.first_answer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes per figure")
    parser.add_argument("--rows", type=int, default=1, help="rows of a request")
    parser.add_argument("--steps", type=int, default=50, help="ids per row")
    parser.add_argument("--units", type=int, default=UNITS, help="units of each layer")
    parser.add_argument("--unroll", type=int, nargs="+", default=[0], help="steps per iteration")
    parser.add_argument("--models", type=int, nargs="+", default=[1, 2, 3, 4], help="1 to 4")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure")
    arguments = parser.parse_args(argv)
    rows = []
    for unroll in arguments.unroll:
        print(f"\nUnrolled {unroll}-fold:" if unroll else "")
        print(
            "| model | first, load | first, session | p50 | export | saved_model.pb | functions |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
        for number in arguments.models:
            row = measure(MODELS[number - 1], arguments, unroll)
            rows.append(row)
            print(table_row(row), flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return 0


def measure(model: Model, arguments: argparse.Namespace, unroll: int) -> dict[str, Any]:
    """All figures of one model: seconds, and bytes per layer."""
    ids = request_ids(model, arguments.rows, arguments.steps)
    row: dict[str, Any] = {"model": model.name, "unroll": unroll, "rows": arguments.rows}
    row["export"] = {layer: [] for layer in LAYERS}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.rounds):
            paths = {layer: Path(folder, f"{layer}-{turn}") for layer in LAYERS}
            exported = fresh(export_both, model, paths, arguments.units, unroll, bool(turn % 2))
            for layer in LAYERS:
                row["export"][layer].append(exported["seconds"][layer])
        row.update({name: exported[name] for name in ("bytes", "functions")})
        for loader in LOADERS:
            first: dict[str, list[float]] = {layer: [] for layer in LAYERS}
            for turn in range(arguments.rounds):
                for layer in LAYERS[:: -1 if turn % 2 else 1]:
                    first[layer].append(fresh(_first_answer, paths[layer], loader, ids))
            row[f"first, {loader}"] = first
        row["p50"] = fresh(_later_answers, paths, ids)
    return row


def request_ids(model: Model, rows: int = 1, steps: int = 50) -> np.ndarray:
    """Token ids (rows, steps); of a model that masks, the last fifth is padding."""
    ids = np.random.default_rng(0).integers(1, WORDS, (rows, steps)).astype(np.int32)
    if model.mask:
        ids[:, -steps // 5 :] = 0
    return ids


def table_row(row: dict[str, Any]) -> str:
    """A row of Markdown: ratios to Keras and, in brackets, the figures behind them."""
    cells = [row["model"]]
    for loader in LOADERS:
        ours, keras = (statistics.median(row[f"first, {loader}"][layer]) for layer in LAYERS)
        cells.append(f"{ours / keras:.2f} × ({ours:.2f}, {keras:.2f} s)")
    ours, keras = (row["p50"][layer] * 1e3 for layer in LAYERS)
    cells.append(f"{ours / keras:.2f} × ({ours:.2f}, {keras:.2f} ms)")
    ours, keras = (statistics.median(row["export"][layer]) for layer in LAYERS)
    cells.append(f"{ours / keras:.2f} × ({ours:.2f}, {keras:.2f} s)")
    ours, keras = (row["bytes"][layer] / 1e3 for layer in LAYERS)
    cells.append(f"{ours / keras:.2f} × ({ours:.0f}, {keras:.0f} kB)")
    cells.append(", ".join(str(row["functions"][layer]) for layer in LAYERS))
    return f"| {' | '.join(cells)} |"


def fresh(function: Callable[..., Any], *args: Any) -> Any:
    """Run the function in a process that has imported TensorFlow and done nothing else."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tensorflow"])
    with context.Pool(1) as pool:
        return pool.apply(function, args)


def export_both(
    model: Model, paths: dict[str, Path], units: int, unroll: int = 0, keras_first: bool = False
) -> dict[str, Any]:
    """Export a model with each layer; seconds, bytes and library functions per layer.

    Args:
        model: Name of a model in `MODELS`.
        paths: Destination folder of each layer's export.
        units: Size of the state of each recurrent layer.
        unroll: Steps per iteration of this layer's loop; 0 for its own choice.
        keras_first: Whether Keras' layer goes before ours.
    """
    import keras
    from tensorflow.core.protobuf import saved_model_pb2

    from keras_gru import GRU
    from keras_gru.kernel import execution

    if unroll:
        execution.EXPORT_UNROLL = unroll
    warm_up = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    with tempfile.TemporaryDirectory() as folder:
        warm_up.export(folder, verbose=False)
    weights = None
    found: dict[str, Any] = {"seconds": {}, "bytes": {}, "functions": {}}
    classes = dict(zip(LAYERS, (GRU, keras.layers.GRU), strict=True))
    for layer in LAYERS[:: -1 if keras_first else 1]:
        made = classes[layer]
        layers: list[Any] = [keras.layers.Embedding(WORDS, FEATURES, mask_zero=model.mask)]
        for index in range(model.layers):
            recurrent = made(units, return_sequences=index < model.layers - 1)
            bidirectional = model.bidirectional
            layers.append(keras.layers.Bidirectional(recurrent) if bidirectional else recurrent)
        built = keras.Sequential(
            [keras.Input((None,), dtype="int32", name="ids"), *layers, keras.layers.Dense(2)]
        )
        weights = weights or built.get_weights()
        built.set_weights(weights)
        begun = time.perf_counter()
        built.export(paths[layer], verbose=False)
        found["seconds"][layer] = time.perf_counter() - begun
        content = (paths[layer] / "saved_model.pb").read_bytes()
        graph = saved_model_pb2.SavedModel.FromString(content).meta_graphs[0].graph_def
        found["bytes"][layer] = len(content)
        found["functions"][layer] = len(graph.library.function)
    return found


def _first_answer(path: Path, loader: str, ids: np.ndarray) -> float:
    started = time.perf_counter()
    if loader == "session":
        _session(path)(ids)
    else:
        import tensorflow as tf

        tf.saved_model.load(str(path)).signatures["serving_default"](tf.constant(ids))
    return time.perf_counter() - started


def _later_answers(paths: dict[str, Path], ids: np.ndarray, seconds: float = 4.0) -> dict[str, Any]:
    runs = [_session(paths[layer]) for layer in LAYERS]
    ours, keras = (run(ids) for run in runs)
    np.testing.assert_allclose(ours, keras, rtol=0, atol=1e-5)
    times: list[list[float]] = [[], []]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for run, taken in zip(runs, times, strict=True):
            for timed in (False, False, *[True] * 5):
                started = time.perf_counter()
                run(ids)
                if timed:
                    taken.append(time.perf_counter() - started)
    return dict(zip(LAYERS, map(statistics.median, times), strict=True))


def _session(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    """The signature of an export, in a v1 Session."""
    import tensorflow as tf

    session = tf.compat.v1.Session(graph=tf.Graph())
    with session.graph.as_default():
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(path))
    signature = loaded.signature_def["serving_default"]
    (name,) = (tensor.name for tensor in signature.inputs.values())
    output = session.graph.get_tensor_by_name(next(iter(signature.outputs.values())).name)
    run: Callable[[np.ndarray], np.ndarray] = session.make_callable(
        output, feed_list=[session.graph.get_tensor_by_name(name)]
    )
    return run


if __name__ == "__main__":
    raise SystemExit(main())
