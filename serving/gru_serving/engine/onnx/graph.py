"""A graph of ONNX in the runtime: opened, run until a deadline, with arrays in and out."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from gru_serving.codecs.dtypes import DType, by_numpy
from gru_serving.errors import Code, DeadlineExceeded, Internal, InvalidArgument, ServingError


def check_dtype(place: int, wanted: DType, array: np.ndarray) -> None:
    """Check that an array has the type of the input that it is for.

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


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The runtime gives `str` where this server has `bytes`."""
    if array.dtype.kind not in "OU":
        return array
    flat = np.empty(array.size, object)
    flat[:] = [text.encode() for text in array.ravel().tolist()]
    return flat.reshape(array.shape)


def as_texts(array: np.ndarray) -> np.ndarray:
    """The other way: `str`, with U+FFFD for bytes that are no UTF-8."""
    if array.dtype.kind != "O":
        return array
    flat = np.empty(array.size, object)
    flat[:] = [text.decode("utf-8", "replace") for text in array.ravel().tolist()]
    return flat.reshape(array.shape)


def size_of(arrays: Collection[np.ndarray]) -> int:
    """Count what there is to read in arrays: numbers, and characters of texts."""
    return sum(
        sum(map(len, array.ravel().tolist())) + array.size
        if array.dtype.kind == "O"
        else array.size
        for array in arrays
    )


_POLL_SECONDS = 0.02


class RunWatch:
    """The runs of one model that are under way, to be ended from outside.

    The runtime looks at a run's flag between two nodes. One thread of the process watches the
    deadlines of all runs.
    """

    def __init__(self) -> None:
        self._flags: set[Any] = set()
        self._lock = threading.Lock()
        self._interrupted = False

    def run(
        self,
        graph: ort.InferenceSession,
        outputs: Sequence[str],
        feeds: Mapping[str, np.ndarray],
        deadline: float | None,
    ) -> list[np.ndarray]:
        """Run a graph until the deadline (`time.monotonic`).

        Raises:
            ServingError: The model was interrupted (CANCELLED), the time is over
                (DEADLINE_EXCEEDED), or the run fails.
        """
        flags = ort.RunOptions()
        with self._lock:
            self._flags.add(flags)
        self._check(deadline)
        if deadline is not None:
            _deadlines().add(flags, deadline)
        try:
            found: list[np.ndarray] = graph.run(outputs, feeds, flags)
        except Exception as error:
            self._check(deadline)  # it failed because it was ended
            raise refused(error) from None
        finally:
            if deadline is not None:
                _deadlines().discard(flags)
            with self._lock:
                self._flags.discard(flags)
        self._check(deadline)
        return found

    def interrupt(self) -> None:
        """End all runs, and any that is begun after this."""
        with self._lock:
            self._interrupted = True
            under_way = list(self._flags)
        for flags in under_way:
            flags.terminate = True

    def _check(self, deadline: float | None) -> None:
        if self._interrupted:
            raise ServingError("Session has been closed.", Code.CANCELLED)
        if deadline is not None and time.monotonic() > deadline:
            raise DeadlineExceeded("Timed out waiting for notification")


class _Deadlines:
    """Sets the flags of runs whose time is over, in a thread that sleeps while there are none."""

    def __init__(self) -> None:
        self._ends: dict[Any, float] = {}
        self._some = threading.Event()
        threading.Thread(target=self._watch, name="deadlines", daemon=True).start()

    def add(self, flags: Any, deadline: float) -> None:
        self._ends[flags] = deadline
        if not self._some.is_set():
            self._some.set()

    def discard(self, flags: Any) -> None:
        self._ends.pop(flags, None)

    def _watch(self) -> None:
        while True:
            self._some.wait()
            time.sleep(_POLL_SECONDS)
            if not self._ends:
                self._some.clear()
                if not self._ends:
                    continue
                self._some.set()
            now = time.monotonic()
            for flags, deadline in list(self._ends.items()):
                if now > deadline:
                    flags.terminate = True


@cache
def _deadlines() -> _Deadlines:
    return _Deadlines()


def open_graph(path: Path) -> ort.InferenceSession:
    """A graph, whose runs stay in the thread that asks for them.

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


def refused(error: Exception) -> ServingError:
    """The error of a run: the input's fault, or the runtime's."""
    # The runtime's classes of errors have no public names.
    input_is_wrong = type(error).__name__ == "InvalidArgument" or isinstance(error, ValueError)
    kind = InvalidArgument if input_is_wrong else Internal
    return kind(f"ONNX Runtime: {error}")
