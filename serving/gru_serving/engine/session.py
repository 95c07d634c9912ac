"""A SavedModel's graph in a TensorFlow session, run as TF Serving runs it.

`Session.run` compares fed shapes with static ones and casts dtypes, and
`tf.saved_model.load(...).signatures` refuses some valid TF1 SavedModels; TF Serving's C++ does
neither. The call below `Session.run` behaves as TF Serving does, error texts included. It is
private to TensorFlow, so all private names are in this file, pinned by its test.
"""

import contextlib
import importlib.util
import logging
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow.python.client import pywrap_tf_session

from gru_serving.codecs.dtypes import MAX_STRING_RANK, STRING, check_rank
from gru_serving.codecs.wire import read_varint
from gru_serving.config.cpus import schedulable_cpus
from gru_serving.engine.load_options import SessionOptions
from gru_serving.engine.model_session import ModelSession, missing_tensor
from gru_serving.errors import (
    Code,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ServingError,
    from_code,
    without_node_names,
)
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap

_Parts = Mapping[Any, tuple[Any, Any]]
_NO_PARTS: _Parts = {}


class FlatStrings:
    """The string outputs of a graph, fetched as flat arrays if they might have too many dimensions.

    TensorFlow converts string tensors to NumPy arrays with an iterator for at most 32 dimensions,
    and crashes the process beyond. A graph that adds a dimension, or turns numbers into strings,
    can get there through a client's input. The graph often states how many dimensions an output
    has, but only for inputs of the stated shapes, which nothing checks. In doubt the elements and
    the shape are fetched separately, but not always: TensorFlow optimizes a graph only above three
    nodes, which takes time and a hundred megabytes.

    Args:
        session: Session of the graph; operations are added to it.
        signatures: Signatures whose inputs may be fed and outputs fetched.
    """

    def __init__(self, session: Any, signatures: SignatureDefMap) -> None:
        self._parts: dict[Any, tuple[Any, Any]] = {}
        self._unsure: dict[Any, tuple[Any, Any]] = {}
        self._declared: dict[Any, list[int | None] | None] = {}
        graph = session.graph
        for signature in signatures.signature_def.values():
            for info in signature.outputs.values():
                if info.dtype == STRING.number:
                    self._add(_tensor(graph, info.name), graph)
            for info in signature.inputs.values():
                tensor = _tensor(graph, info.name)
                if tensor is not None:
                    known = tensor.shape.rank is not None
                    shape = tensor.shape.as_list() if known else None
                    self._declared[tensor._as_tf_output()] = shape
        if self._parts:
            session._extend_graph()

    def _add(self, tensor: Any, graph: Any) -> None:
        if tensor is None or tensor._as_tf_output() in self._parts:
            return
        with graph.as_default(), tf.name_scope("flat_strings"):
            parts = tf.reshape(tensor, [-1]), tf.shape(tensor, tf.int64)
        flat, shape = (part._as_tf_output() for part in parts)
        handle, rank = tensor._as_tf_output(), tensor.shape.rank
        self._parts[handle] = flat, shape
        if rank is None or rank > MAX_STRING_RANK:
            self._unsure[handle] = flat, shape

    def choose(self, feeds: Mapping[Any, np.ndarray]) -> _Parts:
        """Choose the outputs to fetch in parts for these inputs."""
        if not self._parts:
            return _NO_PARTS
        as_declared = all(self._fits(handle, array.shape) for handle, array in feeds.items())
        return self._unsure if as_declared else self._parts

    def _fits(self, handle: Any, shape: tuple[int, ...]) -> bool:
        declared = self._declared.get(handle, ())
        if declared is None:
            return True
        return len(declared) == len(shape) and all(
            size is None or size == given for size, given in zip(declared, shape, strict=True)
        )


def _tensor(graph: Any, name: str) -> Any:
    try:
        return graph.get_tensor_by_name(name)
    except (KeyError, ValueError):
        return None  # sparse, or not there: the request that asks for it is told so


def split(wanted: Sequence[Any], parts: _Parts) -> list[Any]:
    """List what to fetch for the requested handles: themselves, or their parts."""
    return [part for one in wanted for part in parts.get(one, (one,))]


def join(wanted: Sequence[Any], fetched: Sequence[Any], parts: _Parts) -> list[np.ndarray]:
    """Assemble the requested arrays from what was fetched.

    Raises:
        TensorLimitError: A tensor has more dimensions than this server takes.
    """
    rest = iter(fetched)
    return [
        _shaped(next(rest), next(rest)) if one in parts else np.asarray(next(rest))
        for one in wanted
    ]


def _shaped(flat: np.ndarray, shape: np.ndarray) -> np.ndarray:
    check_rank(len(shape), STRING)
    return flat.reshape(shape)


# Bytes after the key by wire type; None for wire types that state their length.
_SIZES = {0: None, 1: 8, 2: None, 5: 4}


Guard = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Type of `LoadWatch.interrupting`."""


def unguarded(_: Callable[[], None]) -> AbstractContextManager[None]:
    """Do nothing: the load is not interrupted."""
    return contextlib.nullcontext()


def load(
    directory: Path, tags: Sequence[str], config: Any, guard: Guard = unguarded
) -> tuple[Any, Any]:
    """Load a MetaGraph, with the errors of TF Serving's loader.

    TensorFlow's Python loader has its own error texts. When it has failed, the file is examined
    here to give the texts of the C++ loader.

    Args:
        directory: Directory of the SavedModel.
        tags: Tags of the MetaGraph.
        config: The session's ConfigProto.
        guard: Function that gets what interrupts the load; entered while that can be needed.

    Returns:
        A session, to be closed by the caller, and the MetaGraph.

    Raises:
        ServingError: The directory holds no SavedModel, not one with these tags, or a broken one.
    """
    try:
        return _load_with_text_ops(directory, tags, config, guard)
    except ServingError:
        raise
    except Exception as error:
        # Whatever a broken file does to the importer, the server must survive.
        original = _original(error)
        if original is not None:
            raise from_code(original.error_code, original.message) from None
        with contextlib.suppress(OSError):
            _check_file(directory, tags)
        said = without_node_names(str(error))
        raise InvalidArgument(f"cannot load the SavedModel in {directory}: {said}") from error


def _load_with_text_ops(
    directory: Path, tags: Sequence[str], config: Any, guard: Guard
) -> tuple[Any, Any]:
    try:
        return _load(directory, tags, config, guard)
    except tf.errors.NotFoundError as error:
        missing = error.message
        if "Op type not registered 'TFText>" not in missing:
            raise
    if not _register_text_ops():
        raise NotFound(f"{missing} It belongs to TensorFlow Text: pip install 'keras-gru[text]'")
    return _load(directory, tags, config, guard)


def _load(directory: Path, tags: Sequence[str], config: Any, guard: Guard) -> tuple[Any, Any]:
    # The call is deprecated in favour of the loader that refuses TF1 SavedModels.
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.ERROR)
    graph = tf.Graph()
    session = tf.compat.v1.Session(graph=graph, config=config)
    try:
        # A graph that initialises tables may already run forever here.
        with graph.as_default(), guard(session.close):
            meta_graph = tf.compat.v1.saved_model.load(session, list(tags), str(directory))
        session._extend_graph()
        return session, meta_graph
    except BaseException:
        session.close()
        raise
    finally:
        logger.setLevel(level)


def _register_text_ops() -> bool:
    """Register TensorFlow Text's operations, which TF Serving's binary includes.

    The libraries load in a tenth of a second; importing the package takes seconds and imports
    Keras.

    Returns:
        Whether the package is installed.
    """
    package = importlib.util.find_spec("tensorflow_text")
    if package is None:
        return False
    for folder in package.submodule_search_locations or ():
        for library in sorted(Path(folder).glob("python/*/*.so")):
            tf.load_op_library(str(library))
    return True


def _original(error: BaseException | None) -> Any:
    """Find the error that TensorFlow's C++ raised before Python wrapped it.

    None if there is none.
    """
    found = None
    while error is not None:
        if isinstance(error, tf.errors.OpError):
            found = error
        error = error.__context__
    return found


def _check_file(directory: Path, tags: Sequence[str]) -> None:
    """Refuse a SavedModel whose file cannot be read or lacks this MetaGraph."""
    saved_model = _read_file(directory)
    if not any(set(graph.meta_info_def.tags) == set(tags) for graph in saved_model.meta_graphs):
        shown = " ".join(reversed(dict.fromkeys(tags)))  # the order of a hash set in C++
        raise NotFound(
            f"Could not find meta graph def matching supplied tags: {{ {shown} }}. To "
            "inspect available tag-sets in the SavedModel, please use the SavedModel CLI: "
            "`saved_model_cli`"
        )


def _read_file(directory: Path) -> Any:
    binary, text = directory / "saved_model.pb", directory / "saved_model.pbtxt"
    if binary.exists():
        content = binary.read_bytes()
        try:
            return SavedModel.FromString(content)
        except Exception:
            raise _unreadable(binary, "binary", _is_cut(content)) from None
    if text.exists():
        content = text.read_bytes()
        try:
            return text_format.Parse(content.decode(), SavedModel())
        except Exception as error:
            raise _unreadable(text, "text", _is_cut_text(content, error)) from None
    raise NotFound(
        f"Could not find SavedModel .pb or .pbtxt at supplied export directory path: {directory}. "
        "Check that the directory exists and that you have the right permissions for accessing it."
    )


def _unreadable(path: Path, form: str, cut: bool) -> ServingError:
    if cut:
        return ServingError("Read less bytes than requested", Code.OUT_OF_RANGE)
    return ServingError(f"Can't parse {path} as {form} proto", Code.DATA_LOSS)


def _is_cut(content: bytes) -> bool:
    """Tell whether the last field of a serialized message is incomplete."""
    position = 0
    try:
        while position < len(content):
            key, position = read_varint(content, position)
            wire_type = key & 7
            if key < 8 or wire_type not in _SIZES:  # no field has the number 0
                return False
            size = _SIZES[wire_type]
            if size is None:
                number, position = read_varint(content, position)
                size = number if wire_type else 0
            position += size
    except IndexError:
        return True
    except ValueError:
        return False
    return position > len(content)


def _is_cut_text(content: bytes, error: Exception) -> bool:
    """Tell whether the parser had reached the end.

    It reads one token more than the one it refuses.
    """
    if not isinstance(error, text_format.ParseError):
        return False
    line, column = error.GetLine() or 1, error.GetColumn() or 1
    rest = "\n".join(content.decode().split("\n")[line - 1 :])[column - 1 :]
    return len(re.findall(r"\w+|\S", rest)) <= 2


_POOLS_PER_CPU = 4
_MIN_SPLIT_ROWS = 8
# TensorFlow's text for an output with more dimensions than NumPy supports.
_NO_ARRAY = "Could not allocate ndarray"


class _RunPools:
    """The thread pools of a session, and the choice between them for each run.

    A recurrent graph is one long chain. TensorFlow's own pool passes it from thread to thread while
    the others spin, which takes twice the processor time and longer than a single thread. So runs
    get a pool of one thread each, unless they have the machine to themselves and enough rows to
    keep several threads busy. Unlike runs in the calling thread, these respect deadlines.

    Args:
        config: Configuration that receives the pools, unless it sets the number of threads itself.
        frugal: Whether never to spend several threads on one run, see `SessionOptions`.
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
        """Choose the number of the pool for a run with these inputs, for its duration."""
        run = object()
        alone = not self._running
        self._running.add(run)
        rows = 0
        for array in arrays:
            if array.ndim:
                rows = max(rows, len(array))
        number = 0
        if self._frugal or not alone or rows < _MIN_SPLIT_ROWS:
            with contextlib.suppress(IndexError):
                number = self._free.pop()
        try:
            yield number
        finally:
            self._running.discard(run)
            if number:
                self._free.append(number)


class GraphSession(ModelSession):
    """One loaded MetaGraph; its methods may be called from several threads.

    Args:
        directory: Directory of the SavedModel.
        tags: Tags of the MetaGraph.
        options: Threads.
        guard: Function that gets what interrupts the load, see `gru_serving.engine.session.load`.

    Attributes:
        signatures: Signatures as stored in the SavedModel.

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
        """Return the handle of a graph tensor for `run`.

        Args:
            name: `x:0`; without a number its first output.

        Raises:
            NotFound: No such tensor.
        """
        full = name if ":" in name else f"{name}:0"
        try:
            return self._graph.get_tensor_by_name(full)._as_tf_output()
        except (KeyError, ValueError, TypeError):
            raise missing_tensor(full) from None

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
            ServingError: The run fails; code and message are TensorFlow's.
        """
        parts = self._flat.choose(feeds)
        wanted = split(fetches, parts) if parts else list(fetches)
        options = None
        try:
            with self._pools.choose(feeds.values()) as pool:
                if timeout_ms > 0 or pool:
                    run_options = tf.compat.v1.RunOptions(
                        timeout_in_ms=max(0, timeout_ms), inter_op_thread_pool=pool
                    ).SerializeToString()
                    options = pywrap_tf_session.TF_NewBufferFromString(run_options)
                outputs = self._session._call_tf_sessionrun(options, dict(feeds), wanted, [], None)
        except tf.errors.InternalError as error:
            # More dimensions than NumPy supports are an error of the request.
            code = InvalidArgument.code if _NO_ARRAY in error.message else error.error_code
            raise from_code(code, error.message) from None
        except tf.errors.OpError as error:
            raise from_code(error.error_code, error.message) from None
        except (UnicodeDecodeError, ValueError, TypeError) as error:
            # Error texts that quote bytes of the input which are not UTF-8 fail when they are
            # converted.
            said = without_node_names(str(error))
            raise InvalidArgument(f"the graph refused its input: {said}") from None
        except RuntimeError as error:
            raise FailedPrecondition(without_node_names(str(error))) from None
        finally:
            if options is not None:
                pywrap_tf_session.TF_DeleteBuffer(options)
        if parts:
            return join(fetches, outputs, parts)
        return list(map(np.asarray, outputs))

    def is_brief(self, feeds: Mapping[Any, np.ndarray]) -> bool:  # noqa: ARG002
        """Return False: a graph of TensorFlow is never brief."""
        return False

    def interrupt(self) -> None:
        """End the runs in progress with the code CANCELLED; no other can start afterwards."""
        self._session.close()

    def close(self) -> None:
        """Free the graph and its variables; no run may be in progress."""
        self._session.close()
