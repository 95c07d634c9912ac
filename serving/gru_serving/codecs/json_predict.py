"""Conversion between REST bodies and NumPy arrays, shared by server and client.

Requests come in two forms. Row: `{"instances": [...]}`, one element per example, answered by
`{"predictions": [...]}`. Column: `{"inputs": ...}`, one tensor per input, answered by
`{"outputs": ...}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gru_serving.codecs.dtypes import by_enum_name, by_number
from gru_serving.codecs.json_inputs import Tensor, dense_shape, fast_array
from gru_serving.codecs.rapidjson import writer as json_writer
from gru_serving.codecs.rapidjson.parser import debug_text, parse
from gru_serving.codecs.signature import Signature
from gru_serving.errors import Code, InvalidArgument, ServingError, Unknown, from_code

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
# The inverse: each status stands for one code, although several codes may lead to it.
_CODES = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    409: Code.ABORTED,
    413: Code.RESOURCE_EXHAUSTED,
    429: Code.RESOURCE_EXHAUSTED,
    499: Code.CANCELLED,
    500: Code.INTERNAL,
    501: Code.UNIMPLEMENTED,
    502: Code.UNAVAILABLE,
    503: Code.UNAVAILABLE,
    504: Code.DEADLINE_EXCEEDED,
}
# Greatest number of characters of an error's text.
_LONGEST_ERROR = 1 << 14


def encode_error(error: ServingError) -> tuple[int, bytes]:
    """Return HTTP status and body of an error whose text may quote the request."""
    text = error.message
    if len(text) > _LONGEST_ERROR:
        text = text[:_LONGEST_ERROR] + "...TRUNCATED"
    return HTTP_STATUS[error.code], json_writer.error(text)


def encode_status(response: Message) -> bytes:
    """Encode the answer to a status request from a GetModelStatusResponse."""
    return _message_json(response).encode()


def encode_metadata(model_spec: Message, signatures: Message) -> bytes:
    """Encode the answer to a metadata request from a ModelSpec and a SignatureDefMap."""
    # An Any printed as JSON would carry an "@type" here, which TF Serving's answer does not have.
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
    """Encode a predict request in column format, which unlike row format can hold any shapes.

    Args:
        inputs: Arrays of the signature's types.
        signature: Signature of the model.
        name: Name of the signature; empty for the default one.

    Raises:
        InvalidArgument: A type or a shape that JSON has no form for.
    """
    columns = []
    for alias, array in inputs.items():
        if 0 in array.shape[:-1]:
            raise InvalidArgument(
                f"input {alias}: JSON has no form for an array of shape {list(array.shape)}; "
                "leave the request out, or send it over gRPC"
            )
        if by_number(signature.inputs[alias].dtype).name == "string":
            text = json.dumps(string_json(array.tolist()))
        else:
            try:
                text = json_writer.compact(alias, array)
            except InvalidArgument:
                raise InvalidArgument(
                    f"input {alias}: JSON has no form for {array.dtype}; send it over gRPC"
                ) from None
        columns.append(f"{json.dumps(alias)}: {text}")
    head = f'"signature_name": {json.dumps(name)}, ' if name else ""
    return f'{{{head}"inputs": {{{", ".join(columns)}}}}}'.encode()


def string_json(value: Any) -> Any:
    """Encode text as a JSON string, and bytes that are not UTF-8 in base64."""
    if isinstance(value, list):
        return [string_json(item) for item in value]
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        import base64

        return {"b64": base64.b64encode(value).decode("ascii")}


def decode_outputs(body: bytes, signature: Signature) -> dict[str, np.ndarray]:
    """Decode the arrays of an answer in column format.

    Raises:
        Unknown: The answer is not what TF Serving's API promises.
    """
    try:
        document = parse(body)
        value = document.value["outputs"]
    except (ServingError, KeyError):
        raise Unknown(f"the server's answer is not in column format: {body[:200]!r}") from None
    names = list(signature.outputs)
    # The tensor of a single output stands there without a name; a tensor is never an object with
    # that key.
    if len(names) == 1 and not (isinstance(value, dict) and value.keys() == {names[0]}):
        value = {names[0]: value}
    if not isinstance(value, dict) or not value.keys() <= set(names):
        raise Unknown(f"the server answers {debug_text(value)}, not the outputs {names}")
    arrays = {}
    for name, column in value.items():
        dtype = signature.outputs[name].dtype
        array = fast_array(column, dtype, document.has_booleans, strict=True)
        if array is None:
            tensor = Tensor(dtype, strict=True)
            try:
                tensor.add(column)
                array = tensor.array(dense_shape(column))
            except ServingError as error:
                raise Unknown(f"the server's answer, output {name!r}: {error.message}") from None
        if array.dtype == np.float32 and np.isinf(array).any():
            _require_finite(name, column, array)
        arrays[name] = array
    return arrays


def _require_finite(name: str, column: Any, array: np.ndarray) -> None:
    """Check that infinite values of an answer are infinite in its JSON, not too large numbers.

    Raises:
        Unknown: A number of the answer is no float.
    """
    tensor = Tensor(by_enum_name("DT_DOUBLE").number)
    tensor.add(column)
    exact = tensor.array(array.shape)
    beyond = exact[np.isinf(array) & np.isfinite(exact)]
    if beyond.size:
        raise Unknown(
            f"the server's answer, output {name!r}: expected numbers of float; got {beyond[0]}"
        )


def read_json(text: str | bytes) -> Any:
    """Parse JSON from an untrusted source, like `json.loads`.

    Raises:
        ValueError: The text is no JSON, or is nested deeper than Python can read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def decode_error(status: int, body: bytes) -> ServingError:
    """Decode the error of an answer whose status is not 200."""
    try:
        text = read_json(body)["error"]
    except (ValueError, KeyError, TypeError):
        text = body.decode("utf-8", "replace")[:500] or f"HTTP status {status}"
    return from_code(_CODES.get(status, Code.UNKNOWN), str(text))
