"""Classify, Regress and MultiInference: from serialized tf.Examples to scores or values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from google.protobuf.text_format import MessageToString

from gru_serving.codecs.dtypes import by_numpy
from gru_serving.codecs.signature import (
    CLASSIFY_METHOD,
    DEFAULT_SIGNATURE,
    REGRESS_METHOD,
    Signature,
    sizes_text,
)
from gru_serving.engine.predictor import Predictor, PreparedRun
from gru_serving.errors import InvalidArgument, Unimplemented

if TYPE_CHECKING:
    from gru_serving.protos.inference_pb2 import MultiInferenceRequest

INPUTS = "inputs"
CLASSES = "classes"
SCORES = "scores"
VALUES = "outputs"


@dataclass(frozen=True)
class Classification:
    """The answer to Classify.

    Attributes:
        labels: Shape (B, C), bytes; None where the signature has no classes.
        scores: Shape (B, C), float32; None where the signature has no scores.
    """

    labels: np.ndarray | None
    scores: np.ndarray | None

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what the signature has of `classes` and `scores`."""
        both = {CLASSES: self.labels, SCORES: self.scores}
        return {name: array for name, array in both.items() if array is not None}

    def rows(self) -> list[list[tuple[bytes, float]]]:
        """(label, score) per class, per example."""
        known = self.labels if self.labels is not None else self.scores
        assert known is not None
        labels = np.full(known.shape, b"", object) if self.labels is None else self.labels
        scores = np.zeros(known.shape, np.float32) if self.scores is None else self.scores
        return [
            list(zip(label_row.tolist(), score_row.tolist(), strict=True))
            for label_row, score_row in zip(labels, scores, strict=True)
        ]


def classify(
    predictor: Predictor, signature_name: str, examples: Sequence[bytes]
) -> PreparedRun[Classification]:
    """Prepare the run of a classification signature.

    Args:
        predictor: The loaded model.
        signature_name: Name of the signature; empty for `serving_default`.
        examples: Serialized tf.Examples.

    Raises:
        ServingError: The signature cannot run; the message is TF Serving's.
    """
    wanted = classification_outputs(predictor, signature_name)
    run = predictor.prepare({INPUTS: _batch(examples)}, signature_name, wanted)
    return run.then(lambda outputs: read_classification(outputs, len(examples)))


def regress(
    predictor: Predictor, signature_name: str, examples: Sequence[bytes]
) -> PreparedRun[np.ndarray]:
    """Prepare the run of a regression signature, which answers (B,) float32.

    Arguments as in `classify`.
    """
    wanted = regression_outputs(predictor, signature_name)
    run = predictor.prepare({INPUTS: _batch(examples)}, signature_name, wanted)
    return run.then(lambda outputs: read_regression(outputs, len(examples)))


class Task(NamedTuple):
    """One task of a MultiInference.

    Attributes:
        model: Name of the model.
        signature_name: Name of the signature; empty for `serving_default`.
        method: `CLASSIFY_METHOD` or `REGRESS_METHOD`.
    """

    model: str
    signature_name: str
    method: str

    @classmethod
    def listed_in(cls, request: MultiInferenceRequest) -> list[Task]:
        """Return the tasks of a request, in its order."""
        return [
            cls(task.model_spec.name, task.model_spec.signature_name, task.method_name)
            for task in request.tasks
        ]


def infer(
    predictor: Predictor, tasks: Sequence[Task], examples: Sequence[bytes]
) -> PreparedRun[list[Classification | np.ndarray]]:
    """Prepare the run of several signatures over the same examples.

    Args:
        predictor: The loaded model.
        tasks: Tasks of one model, each with a signature of its own.
        examples: Serialized tf.Examples.

    Returns:
        One run of the graph, which gives the answer of `classify` or `regress` per task.

    Raises:
        ServingError: The tasks cannot run together; the message is TF Serving's.
    """
    inputs: set[str] = set()  # those of a TF2 export differ; each gets the same examples
    wanted: dict[str, dict[str, str]] = {}
    for task in tasks:
        name = task.signature_name or DEFAULT_SIGNATURE
        if not task.model:
            raise InvalidArgument("Found ModelSpec with an empty model name.")
        if task.model != tasks[0].model:
            raise InvalidArgument(
                "All ModelSpecs in a MultiInferenceRequest must access the same model name."
            )
        if name in wanted:
            raise InvalidArgument(f"Duplicate evaluation of signature: {name}")
        outputs = _task_outputs(predictor, name, task.method)
        signature = predictor.signatures[name]
        inputs.add(signature.inputs[INPUTS].name)
        wanted[name] = {alias: signature.outputs[alias].name for alias in outputs}
    batch = _batch(examples)
    fetches = [tensor for outputs in wanted.values() for tensor in outputs.values()]
    if not fetches:
        raise InvalidArgument("Must specify at least one target to fetch or execute.")

    def read(tensors: Mapping[str, np.ndarray]) -> list[Classification | np.ndarray]:
        results: list[Classification | np.ndarray] = []
        for task, names in zip(tasks, wanted.values(), strict=True):
            answer = {alias: tensors[tensor] for alias, tensor in names.items()}
            read_task = read_classification if task.method == CLASSIFY_METHOD else read_regression
            results.append(read_task(answer, len(examples)))
        return results

    return predictor.prepare_graph(dict.fromkeys(inputs, batch), fetches).then(read)


def _task_outputs(predictor: Predictor, signature_name: str, method: str) -> list[str]:
    if signature_name not in predictor.signatures:
        raise InvalidArgument(f"Requested signature not found in model graph: {signature_name}")
    if method == CLASSIFY_METHOD:
        return classification_outputs(predictor, signature_name)
    if method == REGRESS_METHOD:
        return regression_outputs(predictor, signature_name)
    raise Unimplemented(f"Unsupported signature method_name: {method}")


def classification_outputs(predictor: Predictor, signature_name: str) -> list[str]:
    """Return the outputs that Classify fetches.

    Raises:
        InvalidArgument: The signature does not classify; the message is TF Serving's.
    """
    signature = _signature(predictor, signature_name, "classification", CLASSIFY_METHOD)
    if len(signature.outputs) not in (1, 2):
        raise InvalidArgument(f"Expected one or two output Tensors, found {len(signature.outputs)}")
    _check_input(predictor, signature_name, "classification")
    wanted = [name for name in (CLASSES, SCORES) if name in signature.outputs]
    if not wanted:
        raise InvalidArgument(
            'Expected classification signature outputs to contain at least one of "classes" or '
            f'"scores". Signature was: {_debug(predictor, signature_name)}'
        )
    return wanted


def read_classification(outputs: Mapping[str, np.ndarray], count: int) -> Classification:
    """Check the outputs of a classification of this many examples, and read them.

    Raises:
        InvalidArgument: An output has a wrong shape or type; the message is TF Serving's.
    """
    for name, array in outputs.items():
        if array.ndim != 2:
            raise InvalidArgument(
                f"Expected Tensor shape: [batch_size num_classes] but got {sizes_text(array.shape)}"
            )
        _check_type(name, array, "DT_STRING" if name == CLASSES else "DT_FLOAT")
        if len(array) != count:
            raise InvalidArgument(
                f"Expected {name} output batch size of {count}. Got: {len(array)}"
            )
    labels, scores = outputs.get(CLASSES), outputs.get(SCORES)
    if labels is not None and scores is not None and labels.shape != scores.shape:
        raise InvalidArgument(
            "Tensors class and score should match in dim_size(1). Got "
            f"{labels.shape[1]} vs. {scores.shape[1]}"
        )
    return Classification(labels, scores)


def regression_outputs(predictor: Predictor, signature_name: str) -> list[str]:
    """Return the outputs that Regress fetches.

    Raises:
        InvalidArgument: The signature does no regression; the message is TF Serving's.
    """
    signature = _signature(predictor, signature_name, "regression", REGRESS_METHOD)
    if len(signature.outputs) != 1:
        raise InvalidArgument("Expected one output Tensor.")
    _check_input(predictor, signature_name, "regression")
    if VALUES not in signature.outputs:
        raise InvalidArgument(
            f"No regression outputs found in SignatureDef: {_debug(predictor, signature_name)}"
        )
    return [VALUES]


def read_regression(outputs: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    """Check the output of a regression of this many examples, and read it, (B,).

    Raises:
        InvalidArgument: The output has a wrong shape or type; the message is TF Serving's.
    """
    values = outputs[VALUES]
    if values.ndim not in (1, 2) or (values.ndim == 2 and values.shape[1] != 1):
        raise InvalidArgument(
            "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got "
            f"{sizes_text(values.shape)}"
        )
    if len(values) != count:
        raise InvalidArgument(
            f"Input batch size did not match output batch size: {count} vs. {len(values)}"
        )
    found = by_numpy(values.dtype).enum_name
    if found != "DT_FLOAT":
        raise InvalidArgument(f"Expected output Tensor of DT_FLOAT.  Got: {found}")
    return values.reshape(-1)


def _signature(predictor: Predictor, name: str, kind: str, method: str) -> Signature:
    signature = predictor.signatures.get(name or DEFAULT_SIGNATURE)
    if signature is None:
        raise InvalidArgument(f"No signature was found with the name: {name or DEFAULT_SIGNATURE}")
    if predictor.check_method_names and signature.method_name != method:
        raise InvalidArgument(
            f"Expected {kind} signature method_name to be {method}. Was: {signature.method_name}"
        )
    if len(signature.inputs) != 1:
        raise InvalidArgument("Expected one input Tensor.")
    return signature


def _check_input(predictor: Predictor, name: str, kind: str) -> None:
    if INPUTS not in predictor.signatures[name or DEFAULT_SIGNATURE].inputs:
        raise InvalidArgument(f"No {kind} inputs found in SignatureDef: {_debug(predictor, name)}")


def _batch(examples: Sequence[bytes]) -> np.ndarray:
    if not examples:
        raise InvalidArgument("Input is empty.")
    batch = np.empty(len(examples), object)
    batch[:] = examples
    return batch


def _check_type(name: str, array: np.ndarray, expected: str) -> None:
    found = by_numpy(array.dtype).enum_name
    if found != expected:
        raise InvalidArgument(f"Expected {name} Tensor of {expected}. Got: {found}")


def _debug(predictor: Predictor, name: str) -> str:
    """Write the signature as C++ prints a message: as text, maps in order, ASCII only."""
    proto = predictor.signature_defs.signature_def[name or DEFAULT_SIGNATURE]
    text: str = MessageToString(proto, as_utf8=False)
    return text
