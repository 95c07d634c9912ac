"""A version's graphs in ONNX Runtime as a session with the signatures of its SavedModel.

Signatures that no graph expresses are left to a TensorFlow session, if there is one.
"""

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnxruntime as ort

from gru_serving.codecs.dtypes import DTYPES, DType, by_number
from gru_serving.config.cpus import schedulable_cpus
from gru_serving.engine.model_session import ModelSession, missing_tensor
from gru_serving.engine.onnx.graph import (
    RunWatch,
    check_dtype,
    open_graph,
    size_of,
)
from gru_serving.errors import FailedPrecondition, InvalidArgument, ServingError
from gru_serving.preprocessing.description import FOLDER, Description, Signature, Values
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap

SECONDS = 300e-6
"""Three times the seconds in which a thread is given a run, wakes, and returns the answer."""


class Brevity:
    """Learns from the runs of one signature up to which size they are brief.

    A run of few rows in ONNX Runtime takes some 50 us, so the event loop performs it itself. The
    size shrinks after two runs that take longer. Processor time counts, because a run that only
    waited, for a processor or for the interpreter, would wait just as long in a thread.
    """

    def __init__(self) -> None:
        self._size = 0
        self._long = 0  # of a run that took longer; no run as large was brief since

    def expects(self, size: int) -> bool:
        """Tell whether a run with inputs of this size is expected to be brief."""
        return size <= self._size

    def note(self, size: int, seconds: float) -> None:
        """Learn from a run that took this many seconds of its thread's processor time."""
        if seconds <= SECONDS:
            self._size = max(size, self._size)
            if size >= self._long:
                self._long = 0
        elif size <= self._size:
            if self._long:
                self._size = min(size, self._long) // 2
            self._long = 0 if self._long else size


T = TypeVar("T")

LEAST_ROWS = 8
"""Fewest rows of a part; for fewer, a second thread costs more than it saves."""

CALM_SECONDS = 0.05
"""Seconds after two runs last overlapped during which runs are not divided."""

_lock = threading.Lock()
_running = 0
_met = -CALM_SECONDS


# A run with few rows stays in the calling thread and wakes no second core: the runtime's own
# threads are not used, since they would divide the small products inside a recurrent step. Rows are
# independent, so a large run is divided by rows instead, and each part is a run of its own in one
# thread. All models of a process share the threads.


class Running:
    """A run in progress; tells whether it likely has the process to itself.

    With several clients, there are moments at which one of their runs is alone although the others
    follow before it ends. What matters is therefore whether runs have overlapped lately.
    """

    def __enter__(self) -> bool:
        """Count the run."""
        global _running, _met  # noqa: PLW0603
        now = time.monotonic()
        with _lock:
            if _running:
                _met = now
            _running += 1
            return now - _met >= CALM_SECONDS

    def __exit__(self, *_: object) -> None:
        """Stop counting the run."""
        global _running  # noqa: PLW0603
        with _lock:
            _running -= 1


def parts_of(rows: int, most: int) -> list[slice]:
    """Divide the rows of a run into at most this many parts of about equal size."""
    count = max(1, min(most, rows // LEAST_ROWS))
    ends = [rows * i // count for i in range(count + 1)]
    return [slice(low, high) for low, high in itertools.pairwise(ends)]


def in_parts(call: Callable[[slice], T], parts: Sequence[slice]) -> list[T]:
    """Call a function on each part; the first part runs in this thread."""
    if len(parts) == 1:
        return [call(parts[0])]
    others = [_pool().submit(call, part) for part in parts[1:]]
    try:
        first = call(parts[0])
    finally:
        for other in others:
            other.exception()  # none may outlive this call
    return [first, *(other.result() for other in others)]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, schedulable_cpus() - 1), thread_name_prefix="rows")


class Answer:
    """The network of one signature with the steps around it.

    Args:
        signature: Signature of the description.
        graph: Network that the signature names, if any.

    Attributes:
        brevity: Brevity of its runs.
    """

    def __init__(self, signature: Signature, graph: ort.InferenceSession | None) -> None:
        self._graph = graph
        self._signature = signature
        self._inputs = [one.name for one in graph.get_inputs()] if graph else []
        self._outputs = [one.name for one in graph.get_outputs()] if graph else []
        self._rows_per_run = signature.rows_per_run
        self.brevity = Brevity()

    def close(self) -> None:
        """Free the graph."""
        self._graph = None

    def run(
        self,
        values: Values,
        aliases: Sequence[str],
        watch: RunWatch,
        deadline: float | None,
        threads: int,
    ) -> list[np.ndarray]:
        """Perform the steps and run the network.

        Args:
            values: The signature's inputs; what steps and network make is added.
            aliases: Aliases of the outputs wanted.
            watch: Watch of the model's runs.
            deadline: Deadline of `RunWatch.run`.
            threads: Number of threads among which rows may be divided.

        Raises:
            ServingError: The inputs are refused, or the run ends early or fails.
        """
        for step in self._signature.before:
            step.numpy(values)
        sources = [self._signature.outputs[alias] for alias in aliases]
        if self._outputs and not values.keys() >= {*sources}:
            feeds = {name: values[name] for name in self._inputs}
            rows = 1 if self._scalars(feeds) else _rows_of(feeds)
            with Running() as alone:
                many = alone and rows >= 2 * LEAST_ROWS
                found = self._in_parts(feeds, rows, watch, deadline, threads if many else 1)
            values.update(zip(self._outputs, found, strict=True))
            for step in self._signature.after:
                step.numpy(values)
        return [values[source] for source in sources]

    def _scalars(self, feeds: Mapping[str, np.ndarray]) -> bool:
        """Tell whether the graph is fed numbers instead of rows, which it may take or refuse."""
        return not self._rows_per_run and not any(array.ndim for array in feeds.values())

    def _in_parts(
        self,
        feeds: Mapping[str, np.ndarray],
        rows: int,
        watch: RunWatch,
        deadline: float | None,
        threads: int,
    ) -> list[np.ndarray]:
        """Run the network on all rows, whatever number of rows the graph takes at once.

        One array per output.
        """
        if rows == 0:  # a recurrent node takes no empty batch
            one = {name: np.zeros((1, *a.shape[1:]), a.dtype) for name, a in feeds.items()}
            return [output[:0] for output in self._run(one, None, watch, deadline)]
        if threads == 1 and not self._rows_per_run:
            return self._run(feeds, None, watch, deadline)
        if self._rows_per_run:
            size = self._rows_per_run
            parts = [slice(low, low + size) for low in range(0, rows, size)]
            outputs = [self._run(feeds, part, watch, deadline) for part in parts]
        else:
            parts = parts_of(rows, threads)
            if len(parts) == 1:
                return self._run(feeds, None, watch, deadline)
            outputs = in_parts(lambda part: self._run(feeds, part, watch, deadline), parts)
        return [np.concatenate(each) for each in zip(*outputs, strict=True)]

    def _run(
        self,
        feeds: Mapping[str, np.ndarray],
        part: slice | None,
        watch: RunWatch,
        deadline: float | None,
    ) -> list[np.ndarray]:
        if part is not None:
            feeds = {name: array[part] for name, array in feeds.items()}
        return watch.run(self._graph, self._outputs, feeds, deadline)


def _rows_of(feeds: Mapping[str, np.ndarray]) -> int:
    rows = {name: len(array) if array.ndim else -1 for name, array in feeds.items()}
    if len(set(rows.values())) > 1 or -1 in rows.values():
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in feeds.items())
        raise InvalidArgument(f"expected inputs of equally many rows, got {shapes}")
    return next(iter(rows.values()))


_NUMBERS = frozenset(dtype.number for dtype in DTYPES)


@dataclass(frozen=True, eq=False)  # by identity: a run looks its tensors up several times
class _Tensor:
    """An input or output of a signature; the handle of a tensor."""

    name: str
    signature: str
    alias: str
    dtype: DType


class OnnxSession:
    """The graphs of a version; its methods may be called from several threads.

    Args:
        version: Directory of the version.
        description: Description of the version's signatures.
        signatures: Signatures of the SavedModel.
        tensorflow: Opens what answers the signatures that are left, at the first request for one;
            None where nothing does.
        threads: Threads among which the rows of one run are divided; 0 for as many as CPUs.

    Attributes:
        signatures: Signatures as given.

    Raises:
        ServingError: A graph cannot be loaded.
    """

    def __init__(
        self,
        version: Path,
        description: Description,
        signatures: SignatureDefMap,
        tensorflow: Callable[[], ModelSession] | None = None,
        threads: int = 0,
    ) -> None:
        self.signatures = signatures
        self._open_tensorflow = tensorflow
        self._tensorflow: ModelSession | None = None
        self._opening = threading.Lock()
        self._left = dict(description.left)
        self._threads = threads or schedulable_cpus()
        self._watch = RunWatch()
        folder = version / FOLDER
        graphs = {
            name: open_graph(folder / f"{name}.onnx")
            for name in sorted({of.network for of in description.signatures.values() if of.network})
        }
        self._answers = {
            name: Answer(of, graphs[of.network] if of.network else None)
            for name, of in description.signatures.items()
        }
        self._tensors: dict[str, _Tensor] = {}
        for name, proto in signatures.signature_def.items():
            for infos in (proto.inputs, proto.outputs):
                for alias, info in infos.items():
                    if info.dtype in _NUMBERS:
                        dtype = by_number(info.dtype)
                        self._tensors[info.name] = _Tensor(info.name, name, alias, dtype)

    def tensor(self, name: str) -> Any:
        """Return the handle of a tensor that a signature has.

        Args:
            name: Tensor name in the SavedModel's graph, `x:0`; without a number its first output.

        Raises:
            NotFound: No signature has it.
        """
        full = name if ":" in name else f"{name}:0"
        try:
            return self._tensors[full]
        except KeyError:
            raise missing_tensor(full) from None

    def run(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], timeout_ms: int = 0
    ) -> list[np.ndarray]:
        """Run the graphs of the signatures whose outputs are fetched.

        Args:
            feeds: Arrays by the handle of the tensor they stand for.
            fetches: Handles of the tensors wanted.
            timeout_ms: Time allowed; 0 for no limit. A run ends between two nodes of its graph.

        Returns:
            One array per fetch.

        Raises:
            ServingError: The run fails; code and message are TensorFlow's.
        """
        deadline = time.monotonic() + timeout_ms * 1e-3 if timeout_ms > 0 else None
        names = {one.signature for one in fetches}
        if len(names) == 1:
            return self._run(names.pop(), feeds, fetches, timeout_ms, deadline)
        results: dict[Any, np.ndarray] = {}
        for name in names:  # of a MultiInference
            wanted = [one for one in fetches if one.signature == name]
            given = {one: array for one, array in feeds.items() if one.signature == name}
            outputs = self._run(name, given, wanted, timeout_ms, deadline)
            results.update(zip(wanted, outputs, strict=True))
        return [results[one] for one in fetches]

    def _run(
        self,
        name: str,
        feeds: Mapping[Any, np.ndarray],
        fetches: Sequence[Any],
        timeout_ms: int,
        deadline: float | None,
    ) -> list[np.ndarray]:
        answer = self._answers.get(name)
        if answer is None:
            return self._run_left(name, feeds, fetches, timeout_ms)
        values: Values = {}
        started = time.thread_time()
        # TensorFlow orders the inputs by their names.
        for place, tensor in enumerate(sorted(feeds, key=_name_of)):
            check_dtype(place, tensor.dtype, feeds[tensor])
            values[tensor.alias] = feeds[tensor]
        outputs = answer.run(
            values, [one.alias for one in fetches], self._watch, deadline, self._threads
        )
        answer.brevity.note(size_of(feeds.values()), time.thread_time() - started)
        return outputs

    def _run_left(
        self,
        name: str,
        feeds: Mapping[Any, np.ndarray],
        fetches: Sequence[Any],
        timeout_ms: int,
    ) -> list[np.ndarray]:
        """Run a signature that is left to TensorFlow."""
        if self._open_tensorflow is None:
            raise needs_tensorflow(f"signature {name!r}", self._left.get(name, "it has no graph"))
        with self._opening:
            if self._tensorflow is None:
                self._tensorflow = self._open_tensorflow()
        session = self._tensorflow
        given = {session.tensor(one.name): array for one, array in feeds.items()}
        return session.run(given, [session.tensor(one.name) for one in fetches], timeout_ms)

    def is_brief(self, feeds: Mapping[Any, np.ndarray]) -> bool:
        """Tell whether recent runs with inputs of this size were brief."""
        first = next(iter(feeds), None)
        answer = None if first is None else self._answers.get(first.signature)
        return answer is not None and answer.brevity.expects(size_of(feeds.values()))

    def interrupt(self) -> None:
        """End the runs in progress with the code CANCELLED; no other can start afterwards."""
        self._watch.interrupt()
        if self._tensorflow is not None:
            self._tensorflow.interrupt()

    def close(self) -> None:
        """Free the graphs; no run may be in progress."""
        self._watch.interrupt()
        for answer in self._answers.values():
            answer.close()
        if self._tensorflow is not None:
            self._tensorflow.close()


def needs_tensorflow(what: str, reason: str) -> ServingError:
    """Make the error for a signature that needs TensorFlow, which is not installed."""
    return FailedPrecondition(
        f"{what} needs TensorFlow, which this server is without ({reason}): use the image "
        "`engine`, or install TensorFlow with pip install 'keras-gru[serve]'"
    )


def _name_of(tensor: _Tensor) -> str:
    return tensor.name
