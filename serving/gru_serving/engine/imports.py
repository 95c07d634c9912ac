"""The import of TensorFlow: without Keras, hidden from garbage collection, quietly."""

import contextlib
import gc
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

from gru_serving.errors import FailedPrecondition
from gru_serving.telemetry.server_log import still

log = logging.getLogger(__name__)

_importing = threading.Lock()


def import_tensorflow() -> None:
    """Import TensorFlow for a version that needs it; may be called from several threads.

    Raises:
        FailedPrecondition: TensorFlow is not installed, as in the light image.
    """
    with _importing:
        if "tensorflow" in sys.modules:
            return
        log.info("Importing TensorFlow ...")
        try:
            with still("importing TensorFlow"), for_good(), without_keras():
                import tensorflow  # noqa: F401
        except ModuleNotFoundError as error:
            if error.name != "tensorflow":
                raise
            raise FailedPrecondition(
                "needs TensorFlow, which is not installed here: use the image `engine` in place "
                "of `engine-light`, or pip install 'keras-gru[serve]'"
            ) from None


@contextlib.contextmanager
def for_good() -> Iterator[None]:
    """Exempt the objects created by `import tensorflow` from garbage collection.

    Its modules are a quarter of a million objects. Scanning them takes some 150 ms, during which no
    request is answered; under load that happened every few seconds.
    """
    if "tensorflow" in sys.modules:  # freezing would keep garbage from that earlier import
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def without_keras() -> Iterator[None]:
    """Import TensorFlow without Keras inside the context, which saves half of the time and 130 MB.

    TensorFlow imports Keras for `tf.saved_model.load` and works without it; a session does not need
    it.
    """
    if "keras" in sys.modules:
        yield
        return
    sys.modules["keras"] = None  # type: ignore[assignment]  # an import of it fails
    try:
        yield
    finally:
        del sys.modules["keras"]


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Capture what native libraries write to file descriptor 2; it is shown if loading fails."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    terminal = os.dup(2)
    with TemporaryFile() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except ModuleNotFoundError:  # not TensorFlow's fault, and says all there is to say
            raise
        except Exception:
            messages.seek(0)
            os.write(terminal, messages.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
