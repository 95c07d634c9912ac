"""A trained model as an export needs it: signatures, and requests with the model's answers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from gru_training.onnx.signatures import OnnxModel

WARMUP_BATCHES = (1, 2, 8, 32)
"""Rows of the requests with which a server of an exported model warms up."""


@dataclass(frozen=True)
class Request:
    """A request to one signature, and the answer to it; arrays by name, (rows, ...) each.

    Texts are arrays of Python's `bytes`.
    """

    signature: str
    inputs: Mapping[str, np.ndarray]
    """Input arrays by name; for Classify or Regress the features of the examples."""
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    """The Keras model's answers; none where they do not matter, as in a warmup request."""
    method: Literal["predict", "classify", "regress"] = "predict"
    """The API that the signature is for; of Classify the outputs are `classes` and `scores`,
    of Regress `outputs`."""


def encoded(texts: Sequence[str]) -> np.ndarray:
    """Texts as requests have them, (N,)."""
    array = np.empty(len(texts), object)
    array[:] = [text.encode() for text in texts]
    return array


class Servable(ABC):
    """The parts of a run that are exported.

    Args:
        module: Module to save; holds all that the signatures use.
        signatures: Concrete functions by signature name.
    """

    def __init__(self, module: tf.Module, signatures: Mapping[str, Any]):
        self.module, self.signatures = module, dict(signatures)

    @abstractmethod
    def golden(self) -> Sequence[Request]:
        """Requests to every signature, on held-out data, with the answers of the Keras model.

        They travel with the exported model: it must give these answers in a fresh process, and
        any engine can be asked them again.
        """

    def warmup(self) -> Sequence[Request]:
        """Requests to every signature in the sizes in use; by default of the golden ones' rows."""
        first = {request.signature: request for request in reversed(self.golden())}
        return [
            replace(
                request,
                inputs={
                    name: np.resize(array, (size, *array.shape[1:]))
                    for name, array in request.inputs.items()
                },
                outputs={},
            )
            for request in first.values()
            for size in WARMUP_BATCHES
        ]

    def streamed(self) -> Iterator[tuple[np.ndarray, np.ndarray]] | None:
        """Held-out rows step by step: the answer to the sequence so far, and that of the step.

        None, the default, where the model has no signature that reads on from a state.
        """
        return None

    def reference(self) -> Request | None:
        """Held-out rows with answers, from which a server learns what usual requests are like.

        None, the default, where there is nothing to compare later requests with. The export keeps
        counts of them, and no row.
        """
        return None

    def onnx(self) -> OnnxModel:
        """The signatures as graphs of ONNX, those that ONNX can express; by default none."""
        reason = "its task writes no graph of ONNX"
        return OnnxModel(left=dict.fromkeys(self.signatures, reason))

    def columns(self) -> Mapping[str, Sequence[str]]:
        """Names of the columns of series, by the name of the input or output that holds them."""
        return {}

    def card(self) -> dict[str, Any]:
        """Return the entries of this task on the model card, as JSON values."""
        return {}
