"""A TensorFlow Lite model as a session: `model.tflite` in a version's directory.

Runs on LiteRT (`ai-edge-litert`), which continues TensorFlow Lite, where it is installed; else on
the interpreter inside TensorFlow, which is deprecated but knows TensorFlow's own operations too.
"""

from __future__ import annotations

import queue
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from serving.dtypes import by_numpy
from serving.errors import Internal, InvalidArgument, NotFound
from serving.protos.get_model_metadata_pb2 import SignatureDefMap
from serving.signature import DEFAULT_SIGNATURE, PREDICT_METHOD

MODEL_FILE = "model.tflite"


class TfliteSession:
    """A pool of interpreters of one model; its methods may be called from several threads.

    Args:
        path: Of the `.tflite` file.
        interpreters: Runs at once.

    Attributes:
        signatures: Those of the file; a file without any gets `serving_default` with the names of
            its tensors.

    Raises:
        InvalidArgument: The file holds no model that can be run.
    """

    def __init__(self, path: Path, interpreters: int = 1) -> None:
        self._pool: queue.LifoQueue[_Interpreter] = queue.LifoQueue()
        first = _Interpreter(path)
        self._pool.put(first)
        for _ in range(1, max(1, interpreters)):
            self._pool.put(_Interpreter(path))
        self.signatures = first.signatures()
        self._names = {
            info.name
            for proto in self.signatures.signature_def.values()
            for infos in (proto.inputs, proto.outputs)
            for info in infos.values()
        }

    def tensor(self, name: str) -> str:
        """The handle of a tensor: its name.

        Raises:
            NotFound: No signature has it.
        """
        if name not in self._names:
            raise NotFound(f"Missing TFLite tensor: {name}")
        return name

    def run(
        self,
        feeds: Mapping[Any, np.ndarray],
        fetches: Sequence[Any],
        timeout_ms: int = 0,  # noqa: ARG002 (an interpreter cannot be stopped)
    ) -> list[np.ndarray]:
        """Run the signature that has these tensors.

        Raises:
            InvalidArgument: Wrong types, or tensors that no signature has together.
            Internal: The interpreter failed.
        """
        interpreter = self._pool.get()
        try:
            return interpreter.run(feeds, fetches)
        finally:
            self._pool.put(interpreter)

    def close(self) -> None:
        """Free the interpreters; no run may be under way."""
        while not self._pool.empty():
            self._pool.get()


class _Interpreter:
    """One interpreter with a runner per signature."""

    def __init__(self, path: Path) -> None:
        try:
            self._interpreter = _interpreter_class()(model_path=str(path), num_threads=1)
            self._interpreter.allocate_tensors()
            self._runners = {
                key: self._interpreter.get_signature_runner(key)
                for key in self._interpreter.get_signature_list()
            }
        except (ValueError, RuntimeError) as error:
            raise InvalidArgument(f"Cannot build Interpreter from {path}: {error}") from None
        self._signatures: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
            key: (runner.get_input_details(), runner.get_output_details())
            for key, runner in self._runners.items()
        }
        if not self._signatures:
            inputs = {detail["name"]: detail for detail in self._interpreter.get_input_details()}
            outputs = {detail["name"]: detail for detail in self._interpreter.get_output_details()}
            self._signatures[DEFAULT_SIGNATURE] = (inputs, outputs)

    def signatures(self) -> SignatureDefMap:
        found = SignatureDefMap()
        for key, (inputs, outputs) in self._signatures.items():
            proto = found.signature_def[key]
            proto.method_name = PREDICT_METHOD
            for infos, details in ((proto.inputs, inputs), (proto.outputs, outputs)):
                for alias, detail in details.items():
                    info = infos[alias]
                    info.name = detail["name"]
                    info.dtype = _dtype(detail).number
                    for size in detail.get("shape_signature", detail["shape"]):
                        info.tensor_shape.dim.add(size=int(size))
        return found

    def run(self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any]) -> list[np.ndarray]:
        key = self._signature_of(feeds, fetches)
        inputs, outputs = self._signatures[key]
        names = {detail["name"]: alias for alias, detail in inputs.items()}
        answers = {detail["name"]: alias for alias, detail in outputs.items()}
        for i, (name, array) in enumerate(feeds.items()):
            expected, given = _dtype(inputs[names[name]]), by_numpy(array.dtype)
            if expected is not given:
                raise InvalidArgument(
                    f"Expects arg[{i}] to be {expected.name} but {given.name} is provided"
                )
        try:
            if key in self._runners:
                answer = self._runners[key](**{names[n]: array for n, array in feeds.items()})
                return [answer[answers[name]] for name in fetches]
            return self._invoke(inputs, outputs, {names[n]: a for n, a in feeds.items()}, fetches)
        except (ValueError, RuntimeError) as error:
            raise Internal(f"Failed to run interpreter. {error}") from None

    def _signature_of(self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any]) -> str:
        for key, (inputs, outputs) in self._signatures.items():
            taken = {detail["name"] for detail in inputs.values()}
            given = {detail["name"] for detail in outputs.values()}
            if taken == feeds.keys() and given >= set(fetches):
                return key
        raise InvalidArgument(
            f"Missing TFLite tensors: no signature takes {sorted(feeds)} and gives "
            f"{sorted(fetches)}"
        )

    def _invoke(
        self,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
        fetches: Sequence[str],
    ) -> list[np.ndarray]:
        for alias, array in arrays.items():
            index = inputs[alias]["index"]
            current = self._interpreter.get_input_details()
            shape = next(detail["shape"] for detail in current if detail["index"] == index)
            if tuple(shape) != array.shape:
                self._interpreter.resize_tensor_input(index, array.shape)
        self._interpreter.allocate_tensors()
        for alias, array in arrays.items():
            self._interpreter.set_tensor(inputs[alias]["index"], array)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(outputs[name]["index"]) for name in fetches]


def _dtype(detail: Mapping[str, Any]) -> Any:
    return by_numpy(np.dtype(detail["dtype"]))


def _interpreter_class() -> Any:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        import tensorflow as tf

        def deprecated(**options: Any) -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return tf.lite.Interpreter(**options)

        return deprecated
    return Interpreter
