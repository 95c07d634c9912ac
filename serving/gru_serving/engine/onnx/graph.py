"""An ONNX graph in the runtime: opened, run until a deadline, and a foreign one as a session."""

import math
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from gru_serving.codecs.dtypes import DType, by_number, by_numpy
from gru_serving.codecs.signature import DEFAULT_SIGNATURE, PREDICT_METHOD
from gru_serving.engine.model_session import ModelSession
from gru_serving.errors import (
    Code,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    NotFound,
    ServingError,
)
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap


def check_dtype(place: int, wanted: DType, array: np.ndarray) -> None:
    """Check that an array has the element type of its input.

    Args:
        place: Place of the input among those that are fed.
        wanted: Type of the input.
        array: Array for the input.

    Raises:
        InvalidArgument: The array has another type; the message is TensorFlow's.
    """
    given = by_numpy(array.dtype)
    if given is not wanted:
        raise InvalidArgument(
            f"Expects arg[{place}] to be {wanted.name} but {given.name} is provided"
        )


def size_of(arrays: Collection[np.ndarray]) -> int:
    """Count the numbers and the characters of texts in arrays."""
    return sum(
        sum(map(len, array.ravel().tolist())) + array.size
        if array.dtype.kind == "O"
        else array.size
        for array in arrays
    )


_TOLERANCE_SECONDS = 0.02


class RunWatch:
    """The runs of one model in progress, which can be ended from outside.

    The runtime checks a run's flag between two nodes. One thread of the process watches the
    deadlines of all runs.
    """

    def __init__(self) -> None:
        self._flags: set[Any] = set()
        self._interrupted = False

    def run(
        self,
        graph: ort.InferenceSession | None,
        wanted: Sequence[str],
        feeds: Mapping[str, np.ndarray],
        deadline: float | None,
    ) -> list[np.ndarray]:
        """Run a graph until it ends, its time is over, or the model is interrupted.

        Args:
            graph: Graph to run; None once the model is interrupted and closed.
            wanted: Names of the outputs wanted.
            feeds: Arrays by input name.
            deadline: Deadline, as `time.monotonic` counts; None for none.

        Raises:
            ServingError: The model was interrupted (CANCELLED), the time is over
                (DEADLINE_EXCEEDED), or the run fails.
        """
        flags = ort.RunOptions()
        self._flags.add(flags)
        if deadline is not None:
            _DEADLINES.add(flags, deadline)
        try:
            self._check(deadline)
            assert graph is not None
            outputs: list[np.ndarray] = graph.run(wanted, feeds, flags)
        except ServingError:
            raise
        except Exception as error:
            self._check(deadline)  # it failed because it was ended
            raise _refused(error) from None
        finally:
            _DEADLINES.discard(flags)
            self._flags.discard(flags)
        self._check(deadline)
        return outputs

    def interrupt(self) -> None:
        """End all runs, and any that starts later."""
        self._interrupted = True
        for flags in self._flags.copy():
            flags.terminate = True

    def _check(self, deadline: float | None) -> None:
        if self._interrupted:
            raise ServingError("Session has been closed.", Code.CANCELLED)
        if deadline is not None and time.monotonic() > deadline:
            raise DeadlineExceeded("Timed out waiting for notification")


class _Deadlines:
    """Sets the flags of overdue runs, in a thread that sleeps until the next deadline.

    Most runs end long before their deadline and have a later one than those before; they do not
    wake the thread.
    """

    def __init__(self) -> None:
        self._ends: dict[Any, float] = {}
        self._next = math.inf
        self._earlier = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, flags: Any, deadline: float) -> None:
        self._ends[flags] = deadline
        if deadline + _TOLERANCE_SECONDS < self._next:
            self._earlier.set()
            if self._thread is None:
                self._start()

    def discard(self, flags: Any) -> None:
        self._ends.pop(flags, None)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="deadlines", daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        while True:
            left = self._next - time.monotonic()
            self._earlier.wait(None if left == math.inf else max(0.0, left))
            self._earlier.clear()
            self._next = math.inf  # whatever is added from here on sets the event
            now = time.monotonic()
            for flags, deadline in self._ends.copy().items():
                if now >= deadline:
                    flags.terminate = True
                else:
                    self._next = min(self._next, max(deadline, now + _TOLERANCE_SECONDS))


_DEADLINES = _Deadlines()


def open_graph(path: Path) -> ort.InferenceSession:
    """Open a graph whose runs use only the calling thread.

    Raises:
        InvalidArgument: The file holds no graph that can be run.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong is raised
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise InvalidArgument(f"cannot load the ONNX graph {path}: {error}") from None


def _refused(error: Exception) -> ServingError:
    """Convert the error of a run: to an invalid argument, or to a failure of the runtime."""
    # The runtime's classes of errors have no public names. A `Fail` is a kernel's, about shapes.
    refusals = ("InvalidArgument", "Fail")
    input_is_wrong = type(error).__name__ in refusals or isinstance(error, ValueError)
    kind = InvalidArgument if input_is_wrong else Internal
    return kind(f"ONNX Runtime: {error}")


# Element types of ONNX by their names in the runtime, as DataType numbers.
_TYPES = {
    "tensor(float)": 1,
    "tensor(double)": 2,
    "tensor(int32)": 3,
    "tensor(uint8)": 4,
    "tensor(int16)": 5,
    "tensor(int8)": 6,
    "tensor(string)": 7,
    "tensor(int64)": 9,
    "tensor(bool)": 10,
    "tensor(uint16)": 17,
    "tensor(float16)": 19,
    "tensor(uint32)": 22,
    "tensor(uint64)": 23,
}


class OnnxFileSession(ModelSession):
    """One graph; its methods may be called from several threads.

    Args:
        path: Path of the file.

    Attributes:
        signatures: `serving_default`, with the graph's inputs and outputs under their own names.

    Raises:
        ServingError: The file holds no graph that can be run here.
    """

    def __init__(self, path: Path) -> None:
        self._graph: ort.InferenceSession | None = open_graph(path)
        self._watch = RunWatch()
        self.signatures = SignatureDefMap()
        signature = self.signatures.signature_def[DEFAULT_SIGNATURE]
        signature.method_name = PREDICT_METHOD
        self._inputs = {one.name: _number(path, one) for one in self._graph.get_inputs()}
        self._outputs = {one.name: _number(path, one) for one in self._graph.get_outputs()}
        for infos, given in (
            (signature.inputs, self._graph.get_inputs()),
            (signature.outputs, self._graph.get_outputs()),
        ):
            for one in given:
                info = infos[one.name]
                info.name = f"{one.name}:0"
                info.dtype = _TYPES[one.type]  # type: ignore[assignment]
                for size in one.shape:
                    info.tensor_shape.dim.add(size=size if isinstance(size, int) else -1)

    def tensor(self, name: str) -> str:
        """Return the handle of a tensor, its name in the file.

        Args:
            name: Tensor name as in the file, or with `:0` behind it.

        Raises:
            NotFound: The graph takes and gives no such tensor.
        """
        for found in (name, name.removesuffix(":0")):
            if found in self._inputs or found in self._outputs:
                return found
        raise NotFound(f"Tensor {name} is no input or output of the ONNX graph")

    def run(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], timeout_ms: int = 0
    ) -> list[np.ndarray]:
        """Run the graph; see `ModelSession.run`."""
        deadline = time.monotonic() + timeout_ms * 1e-3 if timeout_ms > 0 else None
        for place, (name, array) in enumerate(feeds.items()):
            check_dtype(place, by_number(self._inputs[name]), array)
        texts = {name: _as_texts(array) for name, array in feeds.items()}
        outputs = self._watch.run(self._graph, list(fetches), texts, deadline)
        return [_as_bytes(output) for output in outputs]

    def interrupt(self) -> None:
        """End the runs in progress with the code CANCELLED; no other can start afterwards."""
        self._watch.interrupt()

    def close(self) -> None:
        """Free the graph; no run may be in progress."""
        self._watch.interrupt()
        self._graph = None


def _number(path: Path, tensor: Any) -> int:
    try:
        return _TYPES[tensor.type]
    except KeyError:
        raise InvalidArgument(
            f"{path}: expected tensors of numbers or strings, got {tensor.name!r} of type "
            f"{tensor.type}"
        ) from None


def _as_bytes(array: np.ndarray) -> np.ndarray:
    """Convert the runtime's `str` elements to this server's `bytes`."""
    if array.dtype.kind not in "OU":
        return array
    flat = np.empty(array.size, object)
    flat[:] = [text.encode() for text in array.ravel().tolist()]
    return flat.reshape(array.shape)


def _as_texts(array: np.ndarray) -> np.ndarray:
    """Convert `bytes` elements to `str`, with U+FFFD for bytes that are not UTF-8."""
    if array.dtype.kind != "O":
        return array
    flat = np.empty(array.size, object)
    flat[:] = [text.decode("utf-8", "replace") for text in array.ravel().tolist()]
    return flat.reshape(array.shape)
