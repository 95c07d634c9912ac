"""A SavedModel's graph in a TensorFlow session, run as TF Serving runs it.

`Session.run` compares fed shapes with static ones and casts dtypes, and
`tf.saved_model.load(...).signatures` refuses some valid TF1 SavedModels; TF Serving's C++ does
neither. The call below `Session.run` behaves as TF Serving does, error texts included. It is
private to TensorFlow, so all private names are in this file and in `saved_model_loader`, pinned by
their test.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.client import pywrap_tf_session

from gru_serving.config.cpus import schedulable_cpus
from gru_serving.engine.flat_strings import FlatStrings, join, split
from gru_serving.engine.saved_model_loader import Guard, load, unguarded
from gru_serving.engine.session_options import SessionOptions
from gru_serving.errors import FailedPrecondition, InvalidArgument, NotFound, from_code
from gru_serving.graph_names import without_node_names
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap

_POOLS_PER_CPU = 4
_MANY_ROWS = 8
# TensorFlow's words for an output with more dimensions than NumPy has.
_NO_ARRAY = "Could not allocate ndarray"


class _RunPools:
    """The thread pools of a session, and which of them a run is to use.

    A recurrent graph is one long chain. TensorFlow's own pool passes it from thread to thread, and
    the others spin meanwhile: twice the CPU time and a longer run than in a single thread. So runs
    get a pool of one thread each, unless they have the machine to themselves and rows enough to
    keep several threads busy. Unlike with a run in the calling thread, deadlines hold.

    Args:
        config: Gets the pools, unless it says itself how many threads there are to be.
        frugal: See `SessionOptions`.
    """

    def __init__(self, config: Any, frugal: bool) -> None:
        self._frugal = frugal
        self._free: deque[int] = deque()
        self._running: set[object] = set()
        if config.inter_op_parallelism_threads or config.session_inter_op_thread_pool:
            return
        config.session_inter_op_thread_pool.add()  # the default one, for loading as well
        count = _POOLS_PER_CPU * schedulable_cpus()
        for number in range(1, count + 1):
            # A name makes it one pool for all sessions of the process.
            config.session_inter_op_thread_pool.add(num_threads=1, global_name=f"run_{number}")
            self._free.append(number)

    @contextlib.contextmanager
    def choose(self, arrays: Collection[np.ndarray]) -> Iterator[int]:
        """The number of the pool for a run with these inputs, for as long as it runs."""
        run = object()
        alone = not self._running
        self._running.add(run)
        rows = max((len(array) for array in arrays if array.ndim), default=0)
        number = 0
        if self._frugal or not alone or rows < _MANY_ROWS:
            with contextlib.suppress(IndexError):
                number = self._free.pop()
        try:
            yield number
        finally:
            self._running.discard(run)
            if number:
                self._free.append(number)


class GraphSession:
    """One loaded MetaGraph; its methods may be called from several threads.

    Args:
        directory: Of the SavedModel.
        tags: Of the MetaGraph.
        options: Threads.
        guard: See `gru_serving.engine.saved_model_loader.load`.

    Attributes:
        signatures: As stored in the SavedModel.

    Raises:
        ServingError: The directory holds no SavedModel, not one with these tags, or a broken one.
    """

    def __init__(
        self,
        directory: Path,
        tags: Sequence[str] = ("serve",),
        options: SessionOptions | None = None,
        guard: Guard = unguarded,
    ) -> None:
        options = options or SessionOptions()
        config = options.config_proto()
        self._pools = _RunPools(config, options.frugal)
        self._session, meta_graph = load(directory, tags, config, guard)
        self._graph = self._session.graph
        self.signatures = SignatureDefMap()
        for name in meta_graph.signature_def:
            serialized = meta_graph.signature_def[name].SerializeToString()
            self.signatures.signature_def[name].MergeFromString(serialized)
        self._flat = FlatStrings(self._session, self.signatures)

    def tensor(self, name: str) -> Any:
        """A handle of a graph tensor for `run`.

        Args:
            name: `x:0`; without a number its first output.

        Raises:
            NotFound: No such tensor.
        """
        full = name if ":" in name else f"{name}:0"
        try:
            return self._graph.get_tensor_by_name(full)._as_tf_output()
        except (KeyError, ValueError, TypeError):
            raise NotFound(
                f"Tensor {full}, specified in either feed_devices or fetch_devices was not found "
                "in the Graph"
            ) from None

    def run(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], timeout_ms: int = 0
    ) -> list[np.ndarray]:
        """Run the graph.

        Args:
            feeds: Arrays by the handle of the tensor they stand for.
            fetches: Handles of the tensors wanted.
            timeout_ms: Time allowed; 0 for no limit.

        Returns:
            One array per fetch.

        Raises:
            ServingError: With TensorFlow's code and text.
        """
        with self._pools.choose(feeds.values()) as pool:
            return self._run(feeds, fetches, _run_options(timeout_ms, pool))

    def _run(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], options: Any
    ) -> list[np.ndarray]:
        parts = self._flat.choose(feeds)
        try:
            outputs = self._session._call_tf_sessionrun(
                options, dict(feeds), split(fetches, parts), [], None
            )
        except tf.errors.InternalError as error:
            # More dimensions than NumPy supports are an error of the request.
            code = InvalidArgument.code if _NO_ARRAY in error.message else error.error_code
            raise from_code(code, error.message) from None
        except tf.errors.OpError as error:
            raise from_code(error.error_code, error.message) from None
        except (UnicodeDecodeError, ValueError, TypeError) as error:
            # Texts that quote bytes of the input which are not UTF-8 fail on their way up here.
            said = without_node_names(str(error))
            raise InvalidArgument(f"the graph refused its input: {said}") from None
        except RuntimeError as error:
            raise FailedPrecondition(without_node_names(str(error))) from None
        finally:
            if options is not None:
                pywrap_tf_session.TF_DeleteBuffer(options)
        return join(fetches, outputs, parts)

    def is_brief(self, feeds: Mapping[Any, np.ndarray]) -> bool:  # noqa: ARG002
        """Never: a graph of TensorFlow takes its time."""
        return False

    def interrupt(self) -> None:
        """End the runs under way, with the code CANCELLED; there can be no others after it."""
        self._session.close()

    def close(self) -> None:
        """Free the graph and its variables; no run may be under way."""
        self._session.close()


def _run_options(timeout_ms: int, pool: int) -> Any:
    """A buffer to be freed after the run; None for the defaults."""
    if timeout_ms <= 0 and not pool:
        return None
    options = tf.compat.v1.RunOptions(timeout_in_ms=max(0, timeout_ms), inter_op_thread_pool=pool)
    return pywrap_tf_session.TF_NewBufferFromString(options.SerializeToString())
