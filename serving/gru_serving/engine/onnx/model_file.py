"""A foreign `model.onnx` as a session, with its inputs and outputs as `serving_default`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from gru_serving.codecs.dtypes import by_number
from gru_serving.codecs.signature import DEFAULT_SIGNATURE, PREDICT_METHOD
from gru_serving.engine.model_session import ModelSession
from gru_serving.engine.onnx.graph import (
    RunWatch,
    as_bytes,
    as_texts,
    check_dtype,
    open_graph,
)
from gru_serving.errors import InvalidArgument, NotFound
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap

# Element types of ONNX by their names in the runtime, as DataType numbers.
_TYPES = {
    "tensor(float)": 1,
    "tensor(double)": 2,
    "tensor(int32)": 3,
    "tensor(uint8)": 4,
    "tensor(int16)": 5,
    "tensor(int8)": 6,
    "tensor(string)": 7,
    "tensor(int64)": 9,
    "tensor(bool)": 10,
    "tensor(uint16)": 17,
    "tensor(float16)": 19,
    "tensor(uint32)": 22,
    "tensor(uint64)": 23,
}


class OnnxFileSession(ModelSession):
    """One graph; its methods may be called from several threads.

    Args:
        path: Path of the file.

    Attributes:
        signatures: `serving_default`, with the graph's inputs and outputs under their own names.

    Raises:
        ServingError: The file holds no graph that can be run here.
    """

    def __init__(self, path: Path) -> None:
        self._graph: ort.InferenceSession | None = open_graph(path)
        self._watch = RunWatch()
        self.signatures = SignatureDefMap()
        signature = self.signatures.signature_def[DEFAULT_SIGNATURE]
        signature.method_name = PREDICT_METHOD
        self._inputs = {one.name: _number(path, one) for one in self._graph.get_inputs()}
        self._outputs = {one.name: _number(path, one) for one in self._graph.get_outputs()}
        for infos, given in (
            (signature.inputs, self._graph.get_inputs()),
            (signature.outputs, self._graph.get_outputs()),
        ):
            for one in given:
                info = infos[one.name]
                info.name = f"{one.name}:0"
                info.dtype = _TYPES[one.type]  # type: ignore[assignment]
                for size in one.shape:
                    info.tensor_shape.dim.add(size=size if isinstance(size, int) else -1)

    def tensor(self, name: str) -> str:
        """Return the handle of a tensor, its name in the file.

        Args:
            name: Tensor name as in the file, or with `:0` behind it.

        Raises:
            NotFound: The graph takes and gives no such tensor.
        """
        for found in (name, name.removesuffix(":0")):
            if found in self._inputs or found in self._outputs:
                return found
        raise NotFound(f"Tensor {name} is no input or output of the ONNX graph")

    def run(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], timeout_ms: int = 0
    ) -> list[np.ndarray]:
        """Run the graph; see `ModelSession.run`."""
        deadline = time.monotonic() + timeout_ms * 1e-3 if timeout_ms > 0 else None
        for place, (name, array) in enumerate(feeds.items()):
            check_dtype(place, by_number(self._inputs[name]), array)
        texts = {name: as_texts(array) for name, array in feeds.items()}
        outputs = self._watch.run(self._graph, list(fetches), texts, deadline)
        return [as_bytes(output) for output in outputs]

    def interrupt(self) -> None:
        """End the runs in progress with the code CANCELLED; no other can start afterwards."""
        self._watch.interrupt()

    def close(self) -> None:
        """Free the graph; no run may be in progress."""
        self._watch.interrupt()
        self._graph = None


def _number(path: Path, tensor: Any) -> int:
    try:
        return _TYPES[tensor.type]
    except KeyError:
        raise InvalidArgument(
            f"{path}: expected tensors of numbers or strings, got {tensor.name!r} of type "
            f"{tensor.type}"
        ) from None
