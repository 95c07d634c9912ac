"""The signatures of a `.tflite` file: stored in its metadata, native, or made from its tensors.

TensorFlow's tools store SignatureDefs in the metadata entry `signature_defs_metadata`, a
FlexBuffer map from signature name to serialized SignatureDef. That is older than the format's own
("native") signatures, and all that TF Serving reads.
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from gru_serving.codecs.dtypes import DType, by_numpy
from gru_serving.codecs.signature import PREDICT_METHOD
from gru_serving.errors import Code, Internal, InvalidArgument, ServingError
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap
from gru_serving.protos.meta_graph_pb2 import SignatureDef

METADATA_ENTRY = b"signature_defs_metadata"
Details = Mapping[str, Any]  # of one tensor, as the interpreter gives them


def read_metadata(path: Path) -> SignatureDefMap:
    """The signatures in a file's metadata, as stored; empty where it has none.

    Args:
        path: Of a file that an interpreter has accepted.

    Raises:
        InvalidArgument: With TF Serving's text: the metadata cannot be read.
    """
    found = SignatureDefMap()
    try:
        for key, serialized in _entries(path):
            found.signature_def[key].CopyFrom(SignatureDef.FromString(serialized))
    except DecodeError:
        raise InvalidArgument(
            "Invalid SignatureDefs found in TfLite model: "
            "Cannot parse signature def found in flatbuffer."
        ) from None
    except Exception as error:
        # The readers of FlatBuffers check nothing, so broken bytes end in any kind of error.
        raise InvalidArgument(
            f"Invalid SignatureDefs found in TfLite model: Error reading signature def map: {error}"
        ) from error
    return found


def _entries(path: Path) -> Iterator[tuple[str, bytes]]:
    from flatbuffers import flexbuffers  # type: ignore[import-untyped]

    stored = _stored_map(path)
    if stored is None:
        return
    root = flexbuffers.GetRoot(stored)
    if not root.IsMap:
        raise ValueError("it is not a map")
    keys, values = root.AsMap.Keys, root.AsMap.Values
    # By index: an iteration would take the IndexError of broken bytes for the end.
    for i in range(len(keys)):
        if not values[i].IsString:
            raise ValueError(f"{keys[i].AsKey} is not a string")
        yield keys[i].AsKey, values[i].AsStringBytes


def _stored_map(path: Path) -> bytes | None:
    """The bytes of the metadata entry, None where the file has no such entry."""
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    model = _schema().Model.GetRootAs(content, 0)
    for i in range(model.MetadataLength()):
        entry = model.Metadata(i)
        if entry.Name() == METADATA_ENTRY:
            if entry.Buffer() >= model.BuffersLength():
                raise ValueError(f"there is no buffer {entry.Buffer()}")
            buffer = model.Buffers(entry.Buffer())
            if not buffer.DataLength():
                raise ValueError(f"buffer {entry.Buffer()} is empty")
            return bytes(buffer.DataAsNumpy())
    return None


def _schema() -> Any:
    try:
        from ai_edge_litert import schema_py_generated
    except ImportError:
        from tensorflow.lite.python import schema_py_generated
    return schema_py_generated


def repair_tensor_names(
    signatures: SignatureDefMap, inputs: Collection[str], outputs: Collection[str]
) -> None:
    """Make stored signatures name tensors that the file has.

    Args:
        signatures: Changed in place.
        inputs: Names of the file's input tensors.
        outputs: Names of its output tensors.

    Raises:
        Internal: With TF Serving's text: the file has no such tensor.
    """
    for _, signature in sorted(signatures.signature_def.items()):
        for kind, infos, known in (
            ("input", signature.inputs, inputs),
            ("output", signature.outputs, outputs),
        ):
            for alias, info in sorted(infos.items()):
                name = find_tensor_name(info.name, known)
                if name is None:
                    raise Internal(
                        f"Unknown tensor '{info.name}'.\n"
                        f"\tSignature {kind} {alias} references an unknown tensor"
                    )
                info.name = name


def find_tensor_name(name: str, known: Collection[str]) -> str | None:
    """A tensor's name in the file, which early converters wrote without `:0`."""
    return next((found for found in (name, _without_number(name)) if found in known), None)


def _without_number(name: str) -> str:
    return name.split(":", 1)[0]


def tensors_by_name(details: Sequence[Details], kind: str) -> dict[str, Details]:
    """The inputs or outputs of a file.

    Args:
        details: As the interpreter gives them.
        kind: `Input` or `Output`, for the error.

    Raises:
        ServingError: With TF Serving's text: two tensors have the same name.
    """
    tensors: dict[str, Details] = {}
    for detail in details:
        name = detail["name"]
        if tensors.setdefault(name, detail)["index"] != detail["index"]:
            raise ServingError(
                f"{kind} tensor name: {name} has multiple indices", Code.ALREADY_EXISTS
            )
    return tensors


def by_alias(tensors: Mapping[str, Details]) -> dict[str, Details]:
    """What a client calls the tensors of a file without signatures: their names without `:0`.

    Tensors that differ only in what follows the colon keep it.
    """
    uses = Counter(map(_without_number, tensors))
    return {
        short if uses[short := _without_number(name)] == 1 else name: detail
        for name, detail in tensors.items()
    }


def describe(inputs: Mapping[str, Details], outputs: Mapping[str, Details]) -> SignatureDef:
    """The SignatureDef for Predict of tensors by alias."""
    signature = SignatureDef(method_name=PREDICT_METHOD)
    for infos, details in ((signature.inputs, inputs), (signature.outputs, outputs)):
        for alias, detail in details.items():
            info = infos[alias]
            info.name = detail["name"]
            info.dtype = dtype_of(detail).number  # type: ignore[assignment]
            for size in detail.get("shape_signature", detail["shape"]):
                info.tensor_shape.dim.add(size=int(size))
    return signature


def dtype_of(detail: Details) -> DType:
    """The element type of a tensor.

    Raises:
        InvalidArgument: TensorFlow has no such type.
    """
    return by_numpy(np.dtype(detail["dtype"]))
