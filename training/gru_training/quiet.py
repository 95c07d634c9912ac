"""Loading TensorFlow without the messages that its C++ parts write to stderr meanwhile."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile


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
