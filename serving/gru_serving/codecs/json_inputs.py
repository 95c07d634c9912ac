"""The inputs of a predict request: JSON to arrays, in row and in column format.

Rows are `{"instances": [...]}`, one element per example; columns are `{"inputs": ...}`, one tensor
per input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gru_serving.codecs.json_tensor import Tensor, fast_array, is_base64
from gru_serving.codecs.rapidjson.debug import debug_text
from gru_serving.codecs.rapidjson.long import LongList
from gru_serving.codecs.rapidjson.parser import Document, parse
from gru_serving.codecs.signature import Signature
from gru_serving.errors import InvalidArgument, ServingError


@dataclass(frozen=True)
class PredictBody:
    """A predict request, parsed but not yet fitted to a signature.

    Attributes:
        document: The JSON object.
        signature_name: As in the request; empty where it has none.
    """

    document: Document
    signature_name: str


def parse_predict(body: bytes | bytearray) -> PredictBody:
    """Parse the JSON and the signature name.

    Raises:
        InvalidArgument: With TF Serving's text.
    """
    document = parse(body)
    return PredictBody(document, signature_name(document))


def signature_name(document: Document) -> str:
    """The `signature_name` of a request; empty where it has none.

    Raises:
        InvalidArgument: It is not a string.
    """
    name = document.value.get("signature_name", "")
    if not isinstance(name, str):
        raise InvalidArgument(
            f"JSON Value: {debug_text(document.value)} not formatted correctly. "
            "'signature_name' key must be a string value."
        )
    return name


def decode_inputs(body: PredictBody, signature: Signature) -> tuple[dict[str, np.ndarray], bool]:
    """The input tensors of a predict request.

    Returns:
        Arrays by input name; and whether the request is in row format, as the answer has to be.

    Raises:
        InvalidArgument: With TF Serving's text.
        Unimplemented: An input of a type that JSON has no form for.
    """
    value = body.document.value
    if not signature.inputs:
        name = body.signature_name or "DEFAULT"
        raise InvalidArgument(f"Failed to get input map for signature: {name}")
    if "instances" in value and "inputs" in value:
        raise InvalidArgument(
            f"JSON Value: {debug_text(value)} Not formatted correctly expecting only one of "
            "'inputs' or 'instances' keys to exist "
        )
    if "instances" in value:
        instances = value["instances"]
        if not isinstance(instances, list | LongList):
            raise InvalidArgument(
                f"JSON Value: {debug_text(value)} Expecting 'instances' to be an list/array"
            )
        if not instances:
            raise InvalidArgument(f"JSON Value: {debug_text(value)} No values in 'instances' array")
        return _rows(instances, signature, body.document.has_booleans), True
    if "inputs" in value:
        return _columns(value["inputs"], signature, body.document.has_booleans), False
    raise InvalidArgument("Missing 'inputs' or 'instances' key")


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and not is_base64(value)


def _rows(instances: Sequence[Any], signature: Signature, booleans: bool) -> dict[str, np.ndarray]:
    inputs = signature.inputs
    if len(inputs) > 1 and not isinstance(instances[0], dict):
        raise InvalidArgument(
            "instances is a plain list, but expecting list of objects as multiple input tensors "
            "required as per tensorinfo_map"
        )
    if not _is_object(instances[0]):
        name = min(inputs)
        array = fast_array(instances, inputs[name].dtype, booleans)
        return {name: _walk_plain(instances, inputs[name].dtype) if array is None else array}
    done = _fast_objects(instances, signature, booleans)
    return _walk_objects(instances, signature) if done is None else done


def _fast_objects(
    instances: Sequence[Any], signature: Signature, booleans: bool
) -> dict[str, np.ndarray] | None:
    """The arrays of rows that are objects; None where only the walk can tell."""
    if isinstance(instances, LongList):
        parts = []
        for piece in instances.pieces():
            part = _fast_objects(list(piece), signature, booleans)
            if part is None:
                return None
            parts.append(part)
        try:
            return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        except ValueError:  # rows of different shapes
            return None
    keys = signature.inputs.keys()
    if not all(isinstance(row, dict) and row.keys() == keys for row in instances):
        return None
    done = {}
    for name, info in signature.inputs.items():
        array = fast_array([row[name] for row in instances], info.dtype, booleans)
        if array is None:
            return None
        done[name] = array
    return done


class _Batch:
    """One input of a row request: elements that must all have the shape of the first."""

    def __init__(self, dtype: int) -> None:
        self._tensor = Tensor(dtype)
        self._first: tuple[tuple[int, ...], int] | None = None

    def add(self, value: Any) -> None:
        shape, size = self._tensor.add(value)
        if self._first is None:
            self._first = shape, size
            return
        first_shape, first_size = self._first
        if size != first_size:
            raise InvalidArgument(f"Expecting tensor size: {first_size} but got: {size}")
        if shape != first_shape:
            raise InvalidArgument(
                f"Expecting shape {_shape_text(first_shape)} but got: {_shape_text(shape)}"
            )

    def array(self, count: int) -> np.ndarray:
        assert self._first is not None
        return self._tensor.array((count, *self._first[0]))


def _shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"


def _walk_plain(instances: Sequence[Any], dtype: int) -> np.ndarray:
    batch = _Batch(dtype)
    for i, value in enumerate(instances):
        if _is_object(value):
            raise InvalidArgument(f"Expecting value/list but got object at item {i} of input list")
        try:
            batch.add(value)
        except ServingError as error:
            raise InvalidArgument(
                f"Failed to process element: {i} of 'instances' list. Error: {error.status}"
            ) from None
    return batch.array(len(instances))


def _walk_objects(instances: Sequence[Any], signature: Signature) -> dict[str, np.ndarray]:
    batches = {name: _Batch(info.dtype) for name, info in signature.inputs.items()}
    for i, row in enumerate(instances):
        if not _is_object(row):
            raise InvalidArgument(f"Expecting object but got list at item {i} of input list")
        for key, value in row.items():
            try:
                if key not in batches:
                    raise InvalidArgument(f"JSON object: does not have named input: {key}")
                batches[key].add(value)
            except ServingError as error:
                raise InvalidArgument(
                    f"Failed to process element: {i} key: {key} of 'instances' list. "
                    f"Error: {error.status}"
                ) from None
        if row.keys() != batches.keys():
            raise InvalidArgument(
                f"Failed to process element: {i} of 'instances' list. JSON object: "
                f"{debug_text(row)} keys must be equal to: {','.join(sorted(batches))}"
            )
    return {name: batch.array(len(instances)) for name, batch in batches.items()}


def _columns(value: Any, signature: Signature, booleans: bool) -> dict[str, np.ndarray]:
    inputs = signature.inputs
    if not _is_object(value):
        if len(inputs) > 1:
            raise InvalidArgument(
                "inputs is a plain value/list, but expecting an object as multiple input tensors "
                "required as per tensorinfo_map"
            )
        value = {next(iter(inputs)): value}
    arrays = {}
    for name, info in inputs.items():
        if name not in value:
            raise InvalidArgument(f"Missing named input: {name} in 'inputs' object.")
        array = fast_array(value[name], info.dtype, booleans)
        if array is None:
            tensor = Tensor(info.dtype)
            shape, _ = tensor.add(value[name])
            array = tensor.array(shape)
        arrays[name] = array
    return arrays
