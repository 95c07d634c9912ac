"""The exportable parts of a trained model: signatures, and requests with the model's answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import tensorflow as tf

from gru_serving.preprocessing.description import Description, Signature
from keras_gru import portable

WARMUP_BATCHES = (1, 2)
"""Numbers of rows of the requests with which a server warms up an exported model.

A server whose batches are smaller does not load the model. After these sizes a first request of 32
rows takes 9 ms with a forecaster and 13 ms with a classifier in TensorFlow, and after the same one
6 and 8 ms, so that larger ones need not be warmed up.
"""


@dataclass(frozen=True)
class Request:
    """A request to one signature with its answer; arrays by name, (rows, ...) each.

    Texts are arrays of Python's `bytes`.
    """

    signature: str
    inputs: Mapping[str, np.ndarray]
    """Input arrays by name; for Classify or Regress the features of the examples."""
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    """The Keras model's answers; empty if they do not matter, as in a warmup request."""
    method: Literal["predict", "classify", "regress"] = "predict"
    """The API of the signature; for Classify the outputs are `classes` and `scores`, for Regress
    `outputs`.
    """


class Network(NamedTuple):
    """A network in TensorFlow, from numbers to numbers."""

    function: Callable[..., Mapping[str, Any]]
    """Function of the inputs, in their order, to the outputs by name."""
    inputs: Sequence[str]
    """Names of the inputs."""


class DescribedModule(tf.Module):
    """Signatures as TensorFlow functions: steps around networks.

    Args:
        name: Name of the module.
        signatures: Signatures by name.
        inputs: Inputs of each signature by name.
        networks: Networks by name.
        weights: Variables of the networks.
    """

    def __init__(
        self,
        name: str,
        signatures: Mapping[str, Signature],
        inputs: Mapping[str, Mapping[str, tf.TensorSpec]],
        networks: Mapping[str, Network],
        weights: Sequence[Any],
    ) -> None:
        super().__init__(name=name)
        # These are bare functions: for a model, the writer would save everything it can reach,
        # including Keras' own graphs.
        self._functions: Callable[[], dict[str, Any]] = partial(
            dict, {each: partial(_answer, of, networks) for each, of in signatures.items()}
        )
        self.described: Callable[[], dict[str, Signature]] = partial(dict, signatures)
        """The signatures by name."""
        self._inputs: Callable[[], dict[str, Any]] = partial(dict, inputs)
        self._weights = list(weights)
        self._tables = [
            table for of in signatures.values() for step in of.steps for table in step.resources()
        ]

    def concrete(self) -> dict[str, Any]:
        """Return the concrete functions by signature name."""
        # They are not attributes of the module, as the writer would trace and save them a second
        # time.
        with portable():
            return {
                name: tf.function(function, autograph=False).get_concrete_function(
                    **self._inputs()[name]
                )
                for name, function in self._functions().items()
            }


def _answer(of: Signature, networks: Mapping[str, Network], **inputs: Any) -> dict[str, Any]:
    values = dict(inputs)
    for step in of.before:
        step.graph(values)
    if of.network is not None:
        network = networks[of.network]
        values |= network.function(*(values[name] for name in network.inputs))
    for step in of.after:
        step.graph(values)
    return {name: values[value] for name, value in of.outputs.items()}


class OnnxModel(NamedTuple):
    """Everything that servers without TensorFlow need from a model."""

    description: Description
    graphs: Mapping[str, Any] = {}
    """Networks of the description as `onnx.ModelProto`, by name."""


def written(signatures: Mapping[str, Signature], writers: Any) -> OnnxModel:
    """Convert the networks of signatures to ONNX graphs, as far as ONNX can express them.

    Args:
        signatures: Signatures by name.
        writers: Object with a method for each network, by its name, that returns an
            `onnx.ModelProto` or raises ValueError with what has no equivalent; a text in place of
            the method says why there is none.
    """
    graphs: dict[str, Any] = {}
    left: dict[str, str] = {}
    for name, signature in signatures.items():
        network = signature.network
        if network is None or network in graphs:
            continue
        write = getattr(writers, network)
        try:
            if isinstance(write, str):
                raise ValueError(write)
            graphs[network] = write()
        except ValueError as error:
            left[name] = str(error)
    return OnnxModel(Description(signatures).without(left), graphs)


class Servable(ABC):
    """The parts of a run for its export.

    Args:
        module: Module to save; holds all that the signatures use.
        signatures: Concrete functions by signature name.
    """

    def __init__(self, module: tf.Module, signatures: Mapping[str, Any]):
        self.module, self.signatures = module, dict(signatures)

    @abstractmethod
    def golden(self) -> Sequence[Request]:
        """Return requests to every signature on held-out data with the answers of the Keras model.

        They are stored with the exported model, which must give these answers in a fresh process;
        any engine can be tested with them.
        """

    def warmup(self, golden: Sequence[Request]) -> Sequence[Request]:
        """Return requests to every signature in the sizes in use.

        By default from the rows of golden ones.

        Args:
            golden: Requests from `golden`, of which the largest one of each signature is taken.
        """
        by_size = sorted(golden, key=lambda each: sum(map(np.size, each.inputs.values())))
        largest = {request.signature: request for request in by_size}
        return [
            replace(
                request,
                inputs={
                    name: np.resize(array, (size, *array.shape[1:]))
                    for name, array in request.inputs.items()
                },
                outputs={},
            )
            for request in largest.values()
            for size in WARMUP_BATCHES
        ]

    def streamed(self) -> Iterator[tuple[np.ndarray, np.ndarray]] | None:
        """Answer held-out rows step by step: by the sequence so far, and by the step signature.

        None, the default, for a model without a signature that continues from a state.
        """
        return None

    def reference(self) -> Request | None:
        """Return held-out rows with answers, by which a server knows usual requests.

        None, the default, if there is nothing to compare later requests with. The export stores
        counts of them, and no row.
        """
        return None

    def onnx(self) -> OnnxModel:
        """Return the networks as ONNX graphs, as far as ONNX can express them; by default none."""
        reason = "its task writes no graph of ONNX"
        return OnnxModel(Description(left=dict.fromkeys(self.signatures, reason)))

    def columns(self) -> Mapping[str, Sequence[str]]:
        """Return the names of the columns of series, by input or output name."""
        return {}

    def card(self) -> dict[str, Any]:
        """Return the entries of this task on the model card, as JSON values."""
        return {}

    def notes(self) -> Sequence[str]:
        """Return sentences that users of the export should know."""
        return ()
