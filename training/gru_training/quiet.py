"""The loading of TensorFlow without the messages of its C++ parts on stderr."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

from gru_training.programs import keep_programs

_TENSORFLOW_LINE = re.compile(
    rb"[IWEF]\d{4} |\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] "
    rb"|WARNING: All log messages before absl::|To enable the following instructions: "
)


def load_tensorflow(messages: bool = False, programs: bool = False) -> list[str]:
    """Import Keras and TensorFlow, which takes seconds, and find the available kinds of devices.

    Args:
        messages: Whether TensorFlow may write to stderr what it likes.
        programs: Whether what XLA compiles is kept for later processes; not with `messages`, nor
            where TensorFlow is imported already.
    """
    with quiet(not messages):
        if programs and not messages and "tensorflow" not in sys.modules:
            keep_programs()
        import keras
        import tensorflow as tf

        del keras
        # This looks for GPUs, and logs a message if there are none.
        return sorted({device.device_type for device in tf.config.list_physical_devices()})


@contextmanager
def quiet(active: bool = True) -> Iterator[None]:
    """Capture TensorFlow's messages on stderr inside the context; they are shown on failure.

    What other code in the process writes to stderr meanwhile is written at the end.
    """
    if not active:
        yield
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    kept = os.dup(2)
    failed = True
    with TemporaryFile() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            yield
            failed = False
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            messages.seek(0)
            for line in messages:
                if failed or not _TENSORFLOW_LINE.match(line):
                    os.write(kept, line)
            os.close(kept)
