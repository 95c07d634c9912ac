"""A version's graphs in ONNX Runtime as a session, beside the SavedModel whose signatures they are.

Whatever a graph cannot express is left to a session of TensorFlow, where there is one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gru_serving.codecs.dtypes import DTYPES, DType, by_number
from gru_serving.config.cpus import schedulable_cpus
from gru_serving.engine.model_session import ModelSession
from gru_serving.engine.native.answer import Answer
from gru_serving.engine.native.arrays import check_dtype, size_of
from gru_serving.engine.native.graph import open_graph
from gru_serving.engine.native.manifest import FOLDER, Manifest
from gru_serving.engine.native.run_watch import RunWatch
from gru_serving.engine.native.steps import Steps, Values
from gru_serving.errors import FailedPrecondition, NotFound, ServingError
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap

_NUMBERS = frozenset(dtype.number for dtype in DTYPES)


@dataclass(frozen=True, eq=False)  # by identity: a run looks its tensors up several times
class _Tensor:
    """An input or output of a signature; the handle of a tensor."""

    name: str
    signature: str
    alias: str
    dtype: DType


class NativeSession:
    """The graphs of a version; its methods may be called from several threads.

    Args:
        version: Its directory.
        manifest: Of the version.
        signatures: Of the SavedModel.
        tensorflow: Opens what answers the signatures that are left, at the first request for one;
            None where nothing does.
        threads: Threads among which the rows of one run are divided; 0 for as many as CPUs.

    Attributes:
        signatures: As given.

    Raises:
        ServingError: A graph cannot be loaded.
    """

    def __init__(
        self,
        version: Path,
        manifest: Manifest,
        signatures: SignatureDefMap,
        tensorflow: Callable[[], ModelSession] | None = None,
        threads: int = 0,
    ) -> None:
        self.signatures = signatures
        self._open_tensorflow = tensorflow
        self._tensorflow: ModelSession | None = None
        self._opening = threading.Lock()
        self._left = dict(manifest.left)
        self._threads = threads or schedulable_cpus()
        self._watch = RunWatch()
        folder = version / FOLDER
        steps = Steps(folder)
        graphs = {
            file: open_graph(folder / file)
            for file in sorted({call.graph for call in manifest.signatures.values() if call.graph})
        }
        self._answers = {
            name: Answer(call, graphs[call.graph] if call.graph else None, steps)
            for name, call in manifest.signatures.items()
        }
        self._tensors: dict[str, _Tensor] = {}
        for name, proto in signatures.signature_def.items():
            for infos in (proto.inputs, proto.outputs):
                for alias, info in infos.items():
                    if info.dtype in _NUMBERS:
                        dtype = by_number(info.dtype)
                        self._tensors[info.name] = _Tensor(info.name, name, alias, dtype)

    def tensor(self, name: str) -> Any:
        """The handle of a tensor that a signature has.

        Args:
            name: In the SavedModel's graph, `x:0`; without a number its first output.

        Raises:
            NotFound: No signature has it.
        """
        full = name if ":" in name else f"{name}:0"
        try:
            return self._tensors[full]
        except KeyError:
            raise NotFound(
                f"Tensor {full}, specified in either feed_devices or fetch_devices was not found "
                "in the Graph"
            ) from None

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
            ServingError: With TensorFlow's code and text.
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
        started = time.perf_counter()
        # TensorFlow counts the inputs in the order of their names.
        for place, tensor in enumerate(sorted(feeds, key=_name_of)):
            check_dtype(place, tensor.dtype, feeds[tensor])
            values[tensor.alias] = feeds[tensor]
        outputs = answer.run(
            values, [one.alias for one in fetches], self._watch, deadline, self._threads
        )
        answer.brevity.note(size_of(feeds.values()), time.perf_counter() - started)
        return outputs

    def _run_left(
        self,
        name: str,
        feeds: Mapping[Any, np.ndarray],
        fetches: Sequence[Any],
        timeout_ms: int,
    ) -> list[np.ndarray]:
        """A signature that is left to TensorFlow."""
        if self._open_tensorflow is None:
            raise needs_tensorflow(f"signature {name!r}", self._left.get(name, "it has no graph"))
        with self._opening:
            if self._tensorflow is None:
                self._tensorflow = self._open_tensorflow()
        session = self._tensorflow
        given = {session.tensor(one.name): array for one, array in feeds.items()}
        return session.run(given, [session.tensor(one.name) for one in fetches], timeout_ms)

    def is_brief(self, feeds: Mapping[Any, np.ndarray]) -> bool:
        """Whether runs with as large inputs were, lately."""
        first = next(iter(feeds), None)
        answer = None if first is None else self._answers.get(first.signature)
        return answer is not None and answer.brevity.expects(size_of(feeds.values()))

    def interrupt(self) -> None:
        """End the runs under way, with the code CANCELLED; there can be no others after it."""
        self._watch.interrupt()
        if self._tensorflow is not None:
            self._tensorflow.interrupt()

    def close(self) -> None:
        """Free the graphs; no run may be under way."""
        self._watch.interrupt()
        for answer in self._answers.values():
            answer.close()
        if self._tensorflow is not None:
            self._tensorflow.close()


def needs_tensorflow(what: str, reason: str) -> ServingError:
    """The error where TensorFlow would have to run something, and is not installed."""
    return FailedPrecondition(
        f"{what} needs TensorFlow, which this server is without ({reason}): use the image "
        "`engine`, or install TensorFlow with pip install 'keras-gru[serve]'"
    )


def _name_of(tensor: _Tensor) -> str:
    return tensor.name
