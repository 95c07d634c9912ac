"""Loading TensorFlow without its start-up lines on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Hold back what native libraries write to file descriptor 2; show it if loading fails."""
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
