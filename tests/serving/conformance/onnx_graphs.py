"""The kit's models for ONNX Runtime: graphs beside their SavedModels, as exports have them."""

import json

import numpy as np
import onnx
from onnx import helper, numpy_helper

from gru_serving.engine.golden import write_golden
from gru_serving.preprocessing.description import FOLDER, Description, Signature

# What ONNX Runtime is not given, TensorFlow answers: tf.Examples, tables, loops, sums over rows.
FLOAT = onnx.TensorProto.FLOAT
TYPES = {
    "float64": "DOUBLE", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
    "uint8": "UINT8", "uint32": "UINT32", "uint64": "UINT64", "bool": "BOOL",
}  # fmt: skip


def graph(path, nodes, inputs, outputs, kind=FLOAT, **constants):
    """Write a graph whose inputs and outputs may have any shape."""
    values = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    infos = [[helper.make_tensor_value_info(name, kind, None) for name in names]
             for names in (inputs, outputs)]  # fmt: skip
    made = helper.make_graph(nodes, path.stem, *infos, values)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


def finish(version, signatures, golden):
    """Write the description of the graphs, and a request each that they must answer."""
    described = {name: Signature([], name, [], outputs) for name, outputs in signatures.items()}
    Description(described).write(version / FOLDER)
    write_golden(
        version,
        [
            {"method": "predict", "signature_name": name, "inputs": inputs, "outputs": outputs}
            for name, inputs, outputs in golden
        ],
    )


def add_graphs(models):
    """Add graphs to the models of `make_models`."""
    node = helper.make_node
    halves = {"half": np.float32(0.5), "two": np.float32(2)}
    for name in ("half_plus_two", "batched", "warm"):
        version = models / name / "1"
        (version / FOLDER).mkdir(parents=True)
        nodes = [node("Mul", ["x", "half"], ["m"]), node("Add", ["m", "two"], ["y"])]
        graph(version / FOLDER / "serving_default.onnx", nodes, ["x"], ["y"], **halves)
        golden = [("serving_default", {"x": [[1.0]]}, {"y": [[2.5]]})]
        finish(version, {"serving_default": {"y": "y"}}, golden)
    for number, factor in ((1, 1), (3, 10)):
        version = models / "affine" / str(number)
        (version / FOLDER).mkdir(parents=True)
        kernel = factor * np.float32([[1, 2], [3, 4], [5, 6]])
        nodes = [node("MatMul", ["x", "kernel"], ["m"]), node("Add", ["m", "b"], ["y"]),
                 node("Add", ["x", "x"], ["doubled"])]  # fmt: skip
        graph(version / FOLDER / "serving_default.onnx", nodes, ["x", "b"], ["y", "doubled"],
              kernel=kernel)  # fmt: skip
        answer = {"y": [[factor + 0.5, 2 * factor + 0.5]], "doubled": [[2.0, 0.0, 0.0]]}
        golden = [("serving_default", {"x": [[1.0, 0.0, 0.0]], "b": [[0.5]]}, answer)]
        finish(version, {"serving_default": {"y": "y", "doubled": "doubled"}}, golden)
    version = models / "echo" / "00000123"
    (version / FOLDER).mkdir(parents=True)
    for name, kind in TYPES.items():
        path = version / FOLDER / f"{name}.onnx"
        graph(path, [node("Identity", ["x"], ["y"])], ["x"], ["y"], getattr(onnx.TensorProto, kind))
    values = {name: [True] if name == "bool" else [1] for name in TYPES}
    golden = [(name, {"x": value}, {"x": value}) for name, value in values.items()]
    finish(version, {name: {"x": "y"} for name in TYPES}, json.loads(json.dumps(golden)))
