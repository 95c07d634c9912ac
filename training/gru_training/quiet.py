"""Loading TensorFlow without the messages that its C++ parts write to stderr meanwhile."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def quiet(active: bool = True) -> Iterator[None]:
    """Hold back what is written to stderr, by whatever part of the process; shown on failure."""
    if not active:
        yield
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    kept = os.dup(2)
    with TemporaryFile() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except Exception:
            messages.seek(0)
            os.write(kept, messages.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def load_tensorflow(console: "Console", debug: bool) -> None:
    """Load TensorFlow for a command, and print its version and devices.

    Args:
        console: Where to print.
        debug: Whether to show the messages of its C++ parts.
    """
    with console.status("loading TensorFlow ..."), quiet(not debug):
        import keras
        import tensorflow as tf

        devices = tf.config.list_physical_devices()
    kinds = sorted({device.device_type for device in devices})
    console.print(
        f"TensorFlow {tf.__version__}, Keras {keras.__version__}, on {' and '.join(kinds)}",
        highlight=False,
    )
