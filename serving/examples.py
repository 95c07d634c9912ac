"""Classify and Regress: serialized tf.Examples in, labels with scores or values out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from serving.dtypes import by_numpy
from serving.errors import InvalidArgument
from serving.predictor import Predictor
from serving.signature import DEFAULT_SIGNATURE, Signature

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
    predictor: Predictor, signature_name: str, examples: Sequence[bytes], timeout_ms: int = 0
) -> Classification:
    """Run a classification signature.

    Args:
        predictor: The loaded model.
        signature_name: Empty for `serving_default`.
        examples: Serialized tf.Examples.
        timeout_ms: Time allowed; 0 for no limit.

    Raises:
        ServingError: With TF Serving's text.
    """
    signature = _signature(predictor, signature_name)
    if len(signature.outputs) not in (1, 2):
        raise InvalidArgument(f"Expected one or two output Tensors, found {len(signature.outputs)}")
    _check_input(signature, "classification")
    wanted = [name for name in (CLASSES, SCORES) if name in signature.outputs]
    if not wanted:
        raise InvalidArgument(
            'Expected classification signature outputs to contain at least one of "classes" or '
            f'"scores". Signature was: {_debug(signature)}'
        )
    outputs = _run(predictor, signature_name, examples, wanted, timeout_ms)
    for name, array in outputs.items():
        if array.ndim != 2:
            raise InvalidArgument(
                "Expected Tensor shape: [batch_size num_classes] but got "
                f"{_shape_text(array.shape)}"
            )
        _check_type(name, array, "DT_STRING" if name == CLASSES else "DT_FLOAT")
        if len(array) != len(examples):
            raise InvalidArgument(
                f"Expected {name} output batch size of {len(examples)}. Got: {len(array)}"
            )
    labels, scores = outputs.get(CLASSES), outputs.get(SCORES)
    if labels is not None and scores is not None and labels.shape != scores.shape:
        raise InvalidArgument(
            "Tensors class and score should match in dim_size(1). Got "
            f"{labels.shape[1]} vs. {scores.shape[1]}"
        )
    return Classification(labels, scores)


def regress(
    predictor: Predictor, signature_name: str, examples: Sequence[bytes], timeout_ms: int = 0
) -> np.ndarray:
    """Run a regression signature; as `classify`.

    Returns:
        Shape (B,), float32.
    """
    signature = _signature(predictor, signature_name)
    if len(signature.outputs) != 1:
        raise InvalidArgument("Expected one output Tensor.")
    _check_input(signature, "regression")
    if VALUES not in signature.outputs:
        raise InvalidArgument(f"No regression outputs found in SignatureDef: {_debug(signature)}")
    values = _run(predictor, signature_name, examples, [VALUES], timeout_ms)[VALUES]
    if values.ndim not in (1, 2) or (values.ndim == 2 and values.shape[1] != 1):
        raise InvalidArgument(
            "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got "
            f"{_shape_text(values.shape)}"
        )
    if len(values) != len(examples):
        raise InvalidArgument(
            f"Expected output batch size to be {len(examples)} but got {len(values)}"
        )
    _check_type(VALUES, values, "DT_FLOAT")
    return values.reshape(-1)


def _signature(predictor: Predictor, name: str) -> Signature:
    signature = predictor.signatures.get(name or DEFAULT_SIGNATURE)
    if signature is None:
        raise InvalidArgument(f"No signature was found with the name: {name or DEFAULT_SIGNATURE}")
    if len(signature.inputs) != 1:
        raise InvalidArgument("Expected one input Tensor.")
    return signature


def _check_input(signature: Signature, kind: str) -> None:
    if INPUTS not in signature.inputs:
        raise InvalidArgument(f"No {kind} inputs found in SignatureDef: {_debug(signature)}")


def _run(
    predictor: Predictor,
    signature_name: str,
    examples: Sequence[bytes],
    wanted: Sequence[str],
    timeout_ms: int,
) -> dict[str, np.ndarray]:
    if not examples:
        raise InvalidArgument("Input is empty.")
    batch = np.empty(len(examples), object)
    batch[:] = examples
    return predictor.predict({INPUTS: batch}, signature_name, wanted, timeout_ms)


def _check_type(name: str, array: np.ndarray, expected: str) -> None:
    dtype = by_numpy(array.dtype)
    if dtype.enum_name != expected:
        which = "output" if name == VALUES else name
        raise InvalidArgument(f"Expected {which} Tensor of {expected}. Got: {dtype.enum_name}")


def _shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"


def _debug(signature: Signature) -> str:
    return (
        f"inputs {sorted(signature.inputs)}, outputs {sorted(signature.outputs)}, "
        f"method_name {signature.method_name}"
    )
