"""The runtime of a version: a session of TensorFlow, TensorFlow Lite, or ONNX Runtime.

`auto` chooses ONNX Runtime for an export that holds graphs for it, once these have answered the
golden requests of the version as the Keras model did. For everything else it chooses TensorFlow,
which is imported when the first version needs it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.message import DecodeError

from gru_serving.engine.golden import GOLDEN, VerificationError, local_engine, read_golden, replay
from gru_serving.engine.imports import import_tensorflow
from gru_serving.engine.load_options import LoadOptions, SessionOptions
from gru_serving.engine.load_watch import LoadWatch
from gru_serving.engine.model_session import ModelSession
from gru_serving.errors import FailedPrecondition, Internal, InvalidArgument, ServingError
from gru_serving.preprocessing.description import FOLDER, Description
from gru_serving.protos.saved_model_config_pb2 import SavedModelConfig

if TYPE_CHECKING:
    from gru_serving.engine.onnx.session import OnnxSession

log = logging.getLogger(__name__)

FILE = Path("assets.extra", "saved_model_config.pb")


def check_saved_model_config(directory: Path) -> None:
    """Read `assets.extra/saved_model_config.pb`, the settings inside of a version.

    These settings are for parts that TensorFlow's Python packages lack: the rewriters of remote and
    batch operations, and the TFRT runtime. The file is checked as TF Serving checks it, and
    settings without effect are logged.

    Raises:
        Internal: The file does not parse; the message is TF Serving's.
    """
    path = directory / FILE
    if not path.exists():
        return
    try:
        config = SavedModelConfig.FromString(path.read_bytes())
    except DecodeError:
        raise Internal(f"Unable to parse SavedModelConfig: {path}") from None
    asked = [field.name for field, _ in config.session_overrides.ListFields()]
    asked += [field.name for field, _ in config.ListFields() if field.name != "session_overrides"]
    if asked:
        log.warning("%s: no effect in this server: %s", path, ", ".join(asked))


ONNX_FILE, MODEL_FILE = "model.onnx", "model.tflite"
# This signature cannot be requested: TensorFlow runs it when it loads the model.
_INITIALIZER = "__saved_model_init_op"


class Opened(NamedTuple):
    """A version in memory.

    Attributes:
        session: Session that runs it.
        runtime: Name of the runtime: `tensorflow`, `tflite` or `onnx`.
        left: Signatures for which TensorFlow would have to be loaded, by a request for one.
    """

    session: ModelSession
    runtime: str
    left: frozenset[str] = frozenset()


def open_graph_session(
    directory: Path,
    tags: Sequence[str] = ("serve",),
    options: SessionOptions | None = None,
    watch: LoadWatch | None = None,
) -> ModelSession:
    """Open a SavedModel in a TensorFlow session; TensorFlow is imported first.

    Raises:
        ServingError: TensorFlow is not installed, or refuses the SavedModel.
    """
    try:
        import_tensorflow()
    except FailedPrecondition as error:
        raise FailedPrecondition(f"{directory}: {error}") from None
    from gru_serving.engine.session import GraphSession

    if watch is None:
        return GraphSession(directory, tags, options)
    check_saved_model_config(directory)
    return GraphSession(directory, tags, options, watch.interrupting)


def open_version(directory: Path, options: LoadOptions, watch: LoadWatch | None = None) -> Opened:
    """Load a version into memory, in the runtime that suits it and the options.

    Args:
        directory: Directory of the version.
        options: Runtime, tags and threads.
        watch: Watch that can end the load.

    Raises:
        ServingError: The version cannot be loaded, or not by this runtime.
    """
    runtime, tags, session = options.runtime, options.tags, options.session
    if _prefers_tflite(directory, options):
        from gru_serving.engine.tflite.session import TfliteSession

        return Opened(TfliteSession(directory / MODEL_FILE, options.tflite_interpreters), "tflite")
    if runtime != "tensorflow":
        try:
            onnx = _open_onnx(directory, runtime, tags, session)
        except (ServingError, VerificationError) as error:
            if runtime == "onnx" or not _has("tensorflow") or not is_saved_model(directory):
                raise _refused(directory, error) from None
            log.warning("%s: served by TensorFlow, not by ONNX Runtime: %s", directory, error)
        else:
            if onnx is not None:
                return Opened(onnx, "onnx", _left(directory, onnx))
            if runtime == "onnx":
                raise FailedPrecondition(
                    f"{directory}: --runtime=onnx needs {FOLDER}, which `gru-serve export` writes, "
                    f"or {ONNX_FILE}; got neither"
                )
    return Opened(open_graph_session(directory, tags, session, watch), "tensorflow")


def import_runtime(directory: Path, options: LoadOptions) -> None:
    """Import the modules that `open_version` is going to need, as far as the files show."""
    onnx = options.runtime != "tensorflow" and (directory / FOLDER).exists()
    # If an import fails here, the load reports what is missing.
    with contextlib.suppress(FailedPrecondition, ImportError):
        if onnx or (directory / ONNX_FILE).exists():
            from gru_serving.engine.onnx import graph  # noqa: F401
        other = onnx or options.runtime == "onnx" or _prefers_tflite(directory, options)
        if is_saved_model(directory) and not other:
            import_tensorflow()
            from gru_serving.engine import session  # noqa: F401


def _prefers_tflite(directory: Path, options: LoadOptions) -> bool:
    return options.prefer_tflite and (directory / MODEL_FILE).exists()


def answered_by(directory: Path, runtime: str) -> Collection[str] | None:
    """Return the signatures of a version that a runtime can answer; None for all."""
    description = Description.read(directory) if runtime == "onnx" else None
    return None if description is None else description.signatures.keys()


def _left(directory: Path, session: ModelSession) -> frozenset[str]:
    description = Description.read(directory)
    names = session.signatures.signature_def.keys() - {_INITIALIZER}
    return frozenset() if description is None else frozenset(names - description.signatures.keys())


def _refused(directory: Path, error: Exception) -> ServingError:
    if isinstance(error, ServingError):
        return error
    return InvalidArgument(f"{directory}: {error}")


def _open_onnx(
    directory: Path,
    runtime: str,
    tags: Sequence[str],
    options: SessionOptions,
) -> ModelSession | None:
    """Open the version's ONNX graphs; None if it has none, or no runtime for them is installed."""
    description = Description.read(directory)
    alone = description is None and not is_saved_model(directory)
    plain = alone or (description is None and runtime == "onnx")
    if description is None and not (plain and (directory / ONNX_FILE).exists()):
        return None
    if not _has("onnxruntime"):
        if runtime == "onnx" or alone:
            raise FailedPrecondition(
                f"{directory}: needs ONNX Runtime, which is not installed; install it with "
                "pip install 'keras-gru[serve]'"
            )
        return None
    if description is None:
        from gru_serving.engine.onnx.graph import OnnxFileSession

        return OnnxFileSession(directory / ONNX_FILE)
    from gru_serving.engine.onnx.session import OnnxSession
    from gru_serving.storage.saved_model import read_signatures

    signatures = read_signatures(directory, tags)
    if signatures is None:
        return None  # TensorFlow has the words for what is wrong with it
    if not description.signatures:
        return None
    rest = None
    if runtime == "auto" and _has("tensorflow"):
        rest = partial(open_graph_session, directory, tags, options)
    threads = 1 if options.frugal else options.intra_op_threads
    session = OnnxSession(directory, description, signatures, rest, threads)
    try:
        _compare(directory, session, description, runtime)
    except BaseException:
        session.close()
        raise
    return session


def _compare(directory: Path, session: OnnxSession, description: Description, runtime: str) -> None:
    """Compare a session's answers to the golden requests of its version.

    A version without golden requests is accepted if there is no choice: with `--runtime=onnx`, or
    without TensorFlow.

    Raises:
        VerificationError: An answer differs.
    """
    from gru_serving.engine.predictor import Predictor

    if not (directory / GOLDEN).exists():
        if runtime == "auto" and _has("tensorflow"):
            raise VerificationError("it has no golden requests that its graphs could answer")
        return
    golden = [
        request
        for request in read_golden(directory)
        if request["signature_name"] in description.signatures
    ]
    verdict = replay(golden, local_engine(Predictor(session)))
    log.info(
        "%s: ONNX Runtime answers %d golden requests as the Keras model does, within %.1e",
        directory, verdict.requests, verdict.largest_difference,
    )  # fmt: skip


def is_saved_model(directory: Path) -> bool:
    """Tell whether a directory holds the graph of a SavedModel."""
    return any((directory / f"saved_model.{kind}").exists() for kind in ("pb", "pbtxt", "cpb"))


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
