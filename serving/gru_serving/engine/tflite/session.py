"""A TensorFlow Lite model as a session: `model.tflite` in a version's directory.

It runs on LiteRT (`ai-edge-litert`), which continues TensorFlow Lite, if that is installed;
otherwise on the interpreter inside TensorFlow, which is deprecated but also has TensorFlow's own
operations.
"""

import mmap
import queue
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from gru_serving.codecs.dtypes import STRING, DType, by_numpy
from gru_serving.codecs.signature import DEFAULT_SIGNATURE, PREDICT_METHOD
from gru_serving.engine.model_session import ModelSession
from gru_serving.errors import (
    Code,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    ServingError,
)
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap
from gru_serving.protos.meta_graph_pb2 import SignatureDef

METADATA_ENTRY = b"signature_defs_metadata"
Details = Mapping[str, Any]  # of one tensor, as the interpreter gives them


def read_metadata(path: Path) -> SignatureDefMap:
    """Read the signatures in a file's metadata as stored; empty if it has none.

    Args:
        path: Path of a file that an interpreter has accepted.

    Raises:
        InvalidArgument: The metadata cannot be read; the message is TF Serving's.
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
        # The readers of FlatBuffers check nothing, so broken bytes can raise any error.
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
    # Access is by index: an iteration would treat the IndexError of broken bytes as the end.
    for i in range(len(keys)):
        if not values[i].IsString:
            raise ValueError(f"{keys[i].AsKey} is not a string")
        yield keys[i].AsKey, values[i].AsStringBytes


def _stored_map(path: Path) -> bytes | None:
    """Return the bytes of the metadata entry; None if the file has no such entry."""
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
    """Correct the tensor names of stored signatures to those in the file.

    Args:
        signatures: Stored signatures, changed in place.
        inputs: Names of the file's input tensors.
        outputs: Names of the file's output tensors.

    Raises:
        Internal: The file has no such tensor; the message is TF Serving's.
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
    """Find a tensor's name in the file, which early converters wrote without `:0`."""
    return next((found for found in (name, _without_number(name)) if found in known), None)


def _without_number(name: str) -> str:
    return name.split(":", 1)[0]


def tensors_by_name(details: Sequence[Details], kind: str) -> dict[str, Details]:
    """Return the inputs or outputs of a file by name.

    Args:
        details: Tensors as the interpreter gives them.
        kind: `Input` or `Output`, for the error.

    Raises:
        ServingError: Two tensors have the same name; the message is TF Serving's.
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
    """Name the tensors of a file without signatures for clients: their names without `:0`.

    Tensors whose names differ only after the colon keep their full names.
    """
    uses = Counter(map(_without_number, tensors))
    return {
        short if uses[short := _without_number(name)] == 1 else name: detail
        for name, detail in tensors.items()
    }


def describe(inputs: Mapping[str, Details], outputs: Mapping[str, Details]) -> SignatureDef:
    """Build the SignatureDef for Predict from tensors by alias."""
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
    """Return the element type of a tensor.

    Raises:
        InvalidArgument: TensorFlow has no such type.
    """
    return by_numpy(np.dtype(detail["dtype"]))


# An input of up to two dimensions may be fed with up to six, as in TF Serving, which resizes the
# tensor: the kernels for rows check what they need. Kernels end the process at seven or more
# dimensions, and kernels for pictures at fewer than they were built for.
_RESIZABLE_RANK, _MAX_RANK = 2, 6
_MAX_SIZE = 2**31 - 1


class TfliteSession(ModelSession):
    """A pool of interpreters of one model; its methods may be called from several threads.

    Args:
        path: Path of the `.tflite` file.
        interpreters: Number of runs at once.

    Attributes:
        signatures: Signatures in the file's metadata; else its native ones; else `serving_default`
            with all of its inputs and outputs.

    Raises:
        ServingError: The file holds no model that can be run, or signatures that do not fit it; or
            neither LiteRT nor TensorFlow is installed.
    """

    def __init__(self, path: Path, interpreters: int = 1) -> None:
        self._pool: queue.LifoQueue[_PrimarySubgraph | _NativeSignatures] = queue.LifoQueue()
        try:
            self.signatures = self._open(path, max(1, interpreters))
        except (ValueError, RuntimeError) as error:
            raise InvalidArgument(f"Cannot build Interpreter from {path}: {error}") from None
        self._names = {
            info.name
            for proto in self.signatures.signature_def.values()
            for infos in (proto.inputs, proto.outputs)
            for info in infos.values()
        }

    def _open(self, path: Path, interpreters: int) -> SignatureDefMap:
        """Fill the pool; returns the signatures."""
        interpreter = _interpreter(path)
        stored = read_metadata(path)
        kind: type[_PrimarySubgraph | _NativeSignatures] = _PrimarySubgraph
        if not stored.signature_def and interpreter.get_signature_list():
            kind = _NativeSignatures
        first = kind(interpreter)
        self._pool.put(first)
        for _ in range(1, interpreters):
            self._pool.put(kind(_interpreter(path)))
        return first.signatures(stored)

    def tensor(self, name: str) -> str:
        """Return the handle of a tensor, its name in the file.

        Args:
            name: Tensor name as in the file, or with `:0` behind it.

        Raises:
            NotFound: No signature has it.
        """
        found = find_tensor_name(name, self._names)
        if found is None:
            raise NotFound(f"Missing TFLite tensor: {name}")
        return found

    def run(
        self,
        feeds: Mapping[Any, np.ndarray],
        fetches: Sequence[Any],
        timeout_ms: int = 0,  # noqa: ARG002 (an interpreter cannot be stopped)
    ) -> list[np.ndarray]:
        """Run the model.

        Raises:
            InvalidArgument: Types are wrong, or the model does not take or give a tensor; of a file
                with native signatures, no signature has the tensors together.
            Internal: The interpreter failed.
        """
        interpreter = self._pool.get()
        try:
            return interpreter.run(feeds, fetches)
        except (ValueError, RuntimeError) as error:
            raise Internal(f"Failed to run interpreter. {error}") from None
        finally:
            self._pool.put(interpreter)

    def interrupt(self) -> None:
        """Do nothing: an interpreter cannot be stopped."""

    def close(self) -> None:
        """Free the interpreters; no run may be in progress."""
        while not self._pool.empty():
            self._pool.get()


class _PrimarySubgraph:
    """Runs the primary subgraph with tensors by name, whichever signatures they belong to."""

    def __init__(self, interpreter: Any) -> None:
        self._interpreter = interpreter
        self._inputs = tensors_by_name(interpreter.get_input_details(), "Input")
        self._outputs = tensors_by_name(interpreter.get_output_details(), "Output")

    def signatures(self, stored: SignatureDefMap) -> SignatureDefMap:
        """Return the signatures of the metadata, or one signature of all inputs and outputs."""
        if stored.signature_def:
            repair_tensor_names(stored, self._inputs, self._outputs)
            return stored
        generated = describe(by_alias(self._inputs), by_alias(self._outputs))
        return SignatureDefMap(signature_def={DEFAULT_SIGNATURE: generated})

    def run(self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any]) -> list[np.ndarray]:
        for name in [*(feeds.keys() - self._inputs), *(set(fetches) - self._outputs.keys())]:
            raise InvalidArgument(f"Missing TFLite tensor: {name}")
        _check(feeds, self._inputs)
        # Otherwise inputs that are not fed would keep the values of the last request.
        arrays = {
            detail["index"]: feeds[name] if name in feeds else _zeros(detail)
            for name, detail in self._inputs.items()
        }
        self._set(arrays)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(self._outputs[name]["index"]) for name in fetches]

    def _set(self, arrays: Mapping[int, np.ndarray]) -> None:
        for detail in self._interpreter.get_input_details():
            index = detail["index"]
            if tuple(detail["shape"]) != arrays[index].shape:
                self._interpreter.resize_tensor_input(index, arrays[index].shape)
        self._interpreter.allocate_tensors()
        for index, array in arrays.items():
            self._interpreter.set_tensor(index, array)


class _NativeSignatures:
    """Runs the native signature that has the requested tensors."""

    def __init__(self, interpreter: Any) -> None:
        self._runners = {
            key: interpreter.get_signature_runner(key) for key in interpreter.get_signature_list()
        }
        self._tensors: dict[str, tuple[dict[str, Details], dict[str, Details]]] = {
            key: (runner.get_input_details(), runner.get_output_details())
            for key, runner in self._runners.items()
        }

    def signatures(self, _stored: SignatureDefMap) -> SignatureDefMap:
        return SignatureDefMap(
            signature_def={key: describe(*tensors) for key, tensors in self._tensors.items()}
        )

    def run(self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any]) -> list[np.ndarray]:
        key = self._signature_of(feeds, fetches)
        inputs, outputs = self._tensors[key]
        aliases = {detail["name"]: alias for alias, detail in inputs.items()}
        answers = {detail["name"]: alias for alias, detail in outputs.items()}
        _check(feeds, {name: inputs[alias] for name, alias in aliases.items()})
        answer = self._runners[key](**{aliases[name]: array for name, array in feeds.items()})
        return [answer[answers[name]] for name in fetches]

    def _signature_of(self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any]) -> str:
        for key, (inputs, outputs) in self._tensors.items():
            taken = {detail["name"] for detail in inputs.values()}
            given = {detail["name"] for detail in outputs.values()}
            if taken == feeds.keys() and given >= set(fetches):
                return key
        raise InvalidArgument(
            f"Missing TFLite tensors: no signature takes {sorted(feeds)} and gives "
            f"{sorted(fetches)}"
        )


def _check(feeds: Mapping[Any, np.ndarray], tensors: Mapping[str, Details]) -> None:
    for i, (name, array) in enumerate(feeds.items()):
        expected, given = dtype_of(tensors[name]), by_numpy(array.dtype)
        if expected is not given:
            raise InvalidArgument(
                f"Expects arg[{i}] to be {expected.name} but {given.name} is provided"
            )
        rank = len(tensors[name]["shape"])
        if rank <= _RESIZABLE_RANK and array.ndim > _MAX_RANK:
            raise InvalidArgument(
                f"Expects arg[{i}] to have at most {_MAX_RANK} dimensions but {array.ndim} are "
                "provided"
            )
        if rank > _RESIZABLE_RANK and array.ndim != rank:
            raise InvalidArgument(
                f"Expects arg[{i}] to have {rank} dimensions but {array.ndim} are provided"
            )
        if max(array.shape, default=0) > _MAX_SIZE:  # of a tensor without any elements
            raise InvalidArgument(
                f"Expects arg[{i}] to have dimensions of at most {_MAX_SIZE} but its shape is "
                f"{list(array.shape)}"
            )


def _zeros(detail: Details) -> np.ndarray:
    if dtype_of(detail) is STRING:
        return np.full(detail["shape"], b"", object)
    return np.zeros(detail["shape"], detail["dtype"])


def _interpreter(path: Path) -> Any:
    interpreter = _interpreter_class()(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    return interpreter


def _interpreter_class() -> Any:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        try:
            import tensorflow as tf
        except ModuleNotFoundError as error:
            if error.name != "tensorflow":
                raise
            raise FailedPrecondition(
                "model.tflite needs LiteRT, which is not installed here: "
                "pip install 'keras-gru[tflite]'"
            ) from None

        def deprecated(**options: Any) -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return tf.lite.Interpreter(**options)

        return deprecated
    return Interpreter
