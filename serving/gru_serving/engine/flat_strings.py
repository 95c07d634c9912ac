"""Strings that a graph answers with, fetched flat where they might have too many dimensions.

TensorFlow makes NumPy arrays of string tensors with an iterator that knows 32 dimensions; beyond
them it crashes the process. A graph that adds a dimension, or turns numbers into strings, reaches
that through a client's input. The graph often says how many dimensions an output has, but only for
inputs of the shapes that it states, which nobody checks. In doubt the elements and the shape are
fetched separately. Not always: TensorFlow does not optimize a graph of three nodes, but takes time
and a hundred megabytes to optimize a larger one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from gru_serving.codecs.dtypes import STRING
from gru_serving.codecs.tensor_shape import MAX_STRING_RANK, check_rank
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap

_Parts = Mapping[Any, tuple[Any, Any]]
_NONE: _Parts = {}


class FlatStrings:
    """The string outputs of a graph.

    Args:
        session: Of the graph; operations are added to it.
        signatures: Whose inputs may be fed and outputs fetched.
    """

    def __init__(self, session: Any, signatures: SignatureDefMap) -> None:
        self._parts: dict[Any, tuple[Any, Any]] = {}
        self._unsure: dict[Any, tuple[Any, Any]] = {}
        self._declared: dict[Any, list[int | None] | None] = {}
        graph = session.graph
        for signature in signatures.signature_def.values():
            for info in signature.outputs.values():
                if info.dtype == STRING.number:
                    self._add(_tensor(graph, info.name), graph)
            for info in signature.inputs.values():
                tensor = _tensor(graph, info.name)
                if tensor is not None:
                    known = tensor.shape.rank is not None
                    shape = tensor.shape.as_list() if known else None
                    self._declared[tensor._as_tf_output()] = shape
        if self._parts:
            session._extend_graph()

    def _add(self, tensor: Any, graph: Any) -> None:
        if tensor is None or tensor._as_tf_output() in self._parts:
            return
        with graph.as_default(), tf.name_scope("flat_strings"):
            parts = tf.reshape(tensor, [-1]), tf.shape(tensor, tf.int64)
        flat, shape = (part._as_tf_output() for part in parts)
        handle, rank = tensor._as_tf_output(), tensor.shape.rank
        self._parts[handle] = flat, shape
        if rank is None or rank > MAX_STRING_RANK:
            self._unsure[handle] = flat, shape

    def choose(self, feeds: Mapping[Any, np.ndarray]) -> _Parts:
        """The outputs to be fetched in parts in a run with these inputs."""
        if not self._parts:
            return _NONE
        as_declared = all(self._fits(handle, array.shape) for handle, array in feeds.items())
        return self._unsure if as_declared else self._parts

    def _fits(self, handle: Any, shape: tuple[int, ...]) -> bool:
        declared = self._declared.get(handle, ())
        if declared is None:
            return True
        return len(declared) == len(shape) and all(
            size is None or size == given for size, given in zip(declared, shape, strict=True)
        )


def _tensor(graph: Any, name: str) -> Any:
    try:
        return graph.get_tensor_by_name(name)
    except (KeyError, ValueError):
        return None  # sparse, or not there: the request that asks for it is told so


def split(wanted: Sequence[Any], parts: _Parts) -> list[Any]:
    """What to fetch for the handles wanted: themselves, or their parts."""
    if not parts:
        return list(wanted)
    return [part for one in wanted for part in parts.get(one, (one,))]


def join(wanted: Sequence[Any], fetched: Sequence[Any], parts: _Parts) -> list[np.ndarray]:
    """The arrays wanted, of what was fetched.

    Raises:
        TensorLimitError: One has more dimensions than this server takes.
    """
    if not parts:
        return [np.asarray(output) for output in fetched]
    rest = iter(fetched)
    return [
        _shaped(next(rest), next(rest)) if one in parts else np.asarray(next(rest))
        for one in wanted
    ]


def _shaped(flat: np.ndarray, shape: np.ndarray) -> np.ndarray:
    check_rank(len(shape), STRING)
    return flat.reshape(shape)
