"""From a SavedModel's directory to a graph in a session, with the errors of TF Serving's loader.

TensorFlow's Python loader has its own error texts. When it has failed, the file is examined here,
and the texts of the C++ loader are given.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from gru_serving.codecs.varint import read_varint
from gru_serving.errors import Code, InvalidArgument, NotFound, ServingError, from_code
from gru_serving.graph_names import without_node_names

# Bytes after the key, by wire type; None for those with a number of their own.
_SIZES = {0: None, 1: 8, 2: None, 5: 4}


Guard = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Of `LoadWatch.interrupting`."""


def unguarded(_: Callable[[], None]) -> AbstractContextManager[None]:
    """Nothing interrupts the load."""
    return contextlib.nullcontext()


def load(
    directory: Path, tags: Sequence[str], config: Any, guard: Guard = unguarded
) -> tuple[Any, Any]:
    """Load a MetaGraph.

    Args:
        directory: Of the SavedModel.
        tags: Of the MetaGraph.
        config: The session's ConfigProto.
        guard: Given what interrupts the load; entered for as long as that can be needed.

    Returns:
        A session of its own, to be closed, and the MetaGraph.

    Raises:
        ServingError: The directory holds no SavedModel, not one with these tags, or a broken one.
    """
    try:
        return _load_with_text_ops(directory, tags, config, guard)
    except ServingError:
        raise
    except Exception as error:
        # Nothing that a broken file does to the importer may end the server.
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
    """Make TensorFlow Text's operations known, which TF Serving's binary has linked in.

    Its libraries load in a tenth of a second; importing the package takes seconds and brings Keras.

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
    """The error as TensorFlow's C++ raised it, before Python wrapped it; None if it did not."""
    found = None
    while error is not None:
        if isinstance(error, tf.errors.OpError):
            found = error
        error = error.__context__
    return found


def _check_file(directory: Path, tags: Sequence[str]) -> None:
    """Refuse a SavedModel whose file cannot be read, or has no such MetaGraph."""
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
    """Whether the last field of a serialized message is not all there, as in a half-made copy."""
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
    """Whether the parser had come to the end: it reads one token more than the one it refuses."""
    if not isinstance(error, text_format.ParseError):
        return False
    line, column = error.GetLine() or 1, error.GetColumn() or 1
    rest = "\n".join(content.decode().split("\n")[line - 1 :])[column - 1 :]
    return len(re.findall(r"\w+|\S", rest)) <= 2
