"""Strings that a graph answers with, fetched flat: their elements and their shape apart.

TensorFlow makes NumPy arrays of string tensors with an iterator that knows 32 dimensions; beyond
them it ends the process. A graph that adds a dimension, or makes strings of numbers, comes to that
by what a client sends, and what the graph says of its shapes holds only for inputs that have the
shapes it says, which nobody checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from serving.dtypes import STRING
from serving.protos.get_model_metadata_pb2 import SignatureDefMap
from serving.tensor_shape import check_rank


class FlatStrings:
    """The string outputs of a graph.

    Args:
        session: Of the graph; operations are added to it.
        signatures: Whose outputs may be fetched.
    """

    def __init__(self, session: Any, signatures: SignatureDefMap) -> None:
        self._parts: dict[Any, tuple[Any, Any]] = {}
        graph = session.graph
        names = {
            info.name
            for signature in signatures.signature_def.values()
            for info in signature.outputs.values()
            if info.dtype == STRING.number and info.name
        }
        for name in sorted(names):
            try:
                tensor = graph.get_tensor_by_name(name)
            except (KeyError, ValueError):
                continue  # the request that asks for it is told so
            with graph.as_default(), tf.name_scope("flat_strings"):
                parts = tf.reshape(tensor, [-1]), tf.shape(tensor, tf.int64)
            flat, shape = (part._as_tf_output() for part in parts)
            self._parts[tensor._as_tf_output()] = flat, shape
        if self._parts:
            session._extend_graph()

    def fetches(self, wanted: Sequence[Any]) -> list[Any]:
        """What to fetch instead: the handles wanted, one or two for each."""
        if not self._parts:
            return list(wanted)
        return [part for one in wanted for part in self._parts.get(one, (one,))]

    def join(self, wanted: Sequence[Any], fetched: Sequence[Any]) -> list[np.ndarray]:
        """The arrays wanted, of what `fetches` brought.

        Raises:
            TensorLimitError: One has more dimensions than this server takes.
        """
        if not self._parts:
            return [np.asarray(output) for output in fetched]
        rest = iter(fetched)
        return [
            _shaped(next(rest), next(rest)) if one in self._parts else np.asarray(next(rest))
            for one in wanted
        ]


def _shaped(flat: np.ndarray, shape: np.ndarray) -> np.ndarray:
    check_rank(len(shape), STRING)
    return flat.reshape(shape)
