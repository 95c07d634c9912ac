"""REST bodies to NumPy and back, both directions, shared by server and client.

Requests come in two forms. Row: `{"instances": [...]}`, one element per example, answered by
`{"predictions": [...]}`. Column: `{"inputs": ...}`, one tensor per input, answered by
`{"outputs": ...}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from serving import json_writer
from serving.dtypes import by_number
from serving.errors import Code, InvalidArgument, ServingError, Unknown, from_code
from serving.json_parser import Document, debug_text, parse
from serving.json_tensor import Tensor, dense_shape, fast_array, is_base64
from serving.signature import Signature

if TYPE_CHECKING:
    from google.protobuf.message import Message

HTTP_STATUS = {
    Code.OK: 200,
    Code.CANCELLED: 499,
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 500,
    Code.UNAUTHENTICATED: 401,
}
# Back again one class of error has to stand for several.
_CODES = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    409: Code.ABORTED,
    429: Code.RESOURCE_EXHAUSTED,
    499: Code.CANCELLED,
    500: Code.INTERNAL,
    501: Code.UNIMPLEMENTED,
    502: Code.UNAVAILABLE,
    503: Code.UNAVAILABLE,
    504: Code.DEADLINE_EXCEEDED,
}


@dataclass(frozen=True)
class PredictBody:
    """A predict request, parsed but not yet fitted to a signature.

    Attributes:
        document: The JSON object.
        signature_name: As in the request; empty where it has none.
    """

    document: Document
    signature_name: str


def parse_predict(body: bytes) -> PredictBody:
    """Parse the JSON and the signature name.

    Raises:
        InvalidArgument: With TF Serving's text.
    """
    document = parse(body)
    return PredictBody(document, signature_name(document))


def signature_name(document: Document) -> str:
    """The `signature_name` of a request; empty where it has none.

    Raises:
        InvalidArgument: It is no string.
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
        if not isinstance(instances, list):
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


def _rows(instances: list[Any], signature: Signature, booleans: bool) -> dict[str, np.ndarray]:
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
    keys = inputs.keys()
    if all(isinstance(row, dict) and row.keys() == keys for row in instances):
        arrays = {
            name: fast_array([row[name] for row in instances], info.dtype, booleans)
            for name, info in inputs.items()
        }
        done = {name: array for name, array in arrays.items() if array is not None}
        if len(done) == len(arrays):
            return done
    return _walk_objects(instances, signature)


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


def _walk_plain(instances: list[Any], dtype: int) -> np.ndarray:
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


def _walk_objects(instances: list[Any], signature: Signature) -> dict[str, np.ndarray]:
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


def encode_outputs(outputs: Mapping[str, np.ndarray], row: bool) -> bytes:
    """The answer to a predict request.

    Raises:
        InvalidArgument: With TF Serving's text: outputs that JSON, or the row format, cannot hold.
    """
    if not outputs:
        raise InvalidArgument("Cannot convert empty tensor map to JSON")
    return json_writer.rows(outputs) if row else json_writer.columns(outputs)


def encode_error(error: ServingError) -> tuple[int, bytes]:
    """HTTP status and body of an error."""
    return HTTP_STATUS[error.code], json_writer.error(error.message)


def encode_status(response: Message) -> bytes:
    """The answer to a status request, from a GetModelStatusResponse."""
    return _message_json(response).encode()


def encode_metadata(model_spec: Message, signatures: Message) -> bytes:
    """The answer to a metadata request, from a ModelSpec and a SignatureDefMap."""
    # An Any printed as JSON would carry an "@type" here, which TF Serving's answer does not.
    text = (
        f'{{\n"model_spec":{_message_json(model_spec)},\n'
        f'"metadata": {{"signature_def": {_message_json(signatures)}}}\n}}\n'
    )
    return text.encode()


def _message_json(message: Message) -> str:
    from google.protobuf import json_format

    return json_format.MessageToJson(
        message,
        indent=1,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )


def encode_request(inputs: Mapping[str, np.ndarray], signature: Signature, name: str = "") -> bytes:
    """A predict request in column format, which unlike rows can hold any shapes.

    Args:
        inputs: Arrays of the signature's types.
        signature: Of the model.
        name: Of the signature; empty for the default one.

    Raises:
        InvalidArgument: A type that JSON has no form for.
    """
    columns = []
    for alias, array in inputs.items():
        if by_number(signature.inputs[alias].dtype).name == "string":
            text = json.dumps(_string_json(array.tolist()))
        else:
            text = json_writer.compact(alias, array)
        columns.append(f"{json.dumps(alias)}: {text}")
    head = f'"signature_name": {json.dumps(name)}, ' if name else ""
    return f'{{{head}"inputs": {{{", ".join(columns)}}}}}'.encode()


def _string_json(value: Any) -> Any:
    """Text as text, and bytes that are no text in base64."""
    if isinstance(value, list):
        return [_string_json(item) for item in value]
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        import base64

        return {"b64": base64.b64encode(value).decode("ascii")}


def decode_outputs(body: bytes, signature: Signature) -> dict[str, np.ndarray]:
    """The arrays of an answer in column format.

    Raises:
        Unknown: The answer is not what TF Serving's API promises.
    """
    try:
        document = parse(body)
        value = document.value["outputs"]
    except (ServingError, KeyError):
        raise Unknown(f"the server's answer is no column answer: {body[:200]!r}") from None
    names = list(signature.outputs)
    # With one output its tensor stands there bare; a tensor itself is never an object of that key.
    if len(names) == 1 and not (isinstance(value, dict) and value.keys() == {names[0]}):
        value = {names[0]: value}
    if not isinstance(value, dict) or not value.keys() <= set(names):
        raise Unknown(f"the server answers {debug_text(value)}, not the outputs {names}")
    arrays = {}
    for name, column in value.items():
        dtype = signature.outputs[name].dtype
        array = fast_array(column, dtype, document.has_booleans)
        if array is None:
            tensor = Tensor(dtype)
            tensor.add(column)
            array = tensor.array(dense_shape(column))
        arrays[name] = array
    return arrays


def decode_error(status: int, body: bytes) -> ServingError:
    """The error of an answer whose status is not 200."""
    try:
        text = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        text = body.decode("utf-8", "replace")[:500] or f"HTTP status {status}"
    return from_code(_CODES.get(status, Code.UNKNOWN), str(text))
