"""A disk that is full after a certain number of bytes, for this process."""

import resource
from contextlib import contextmanager


@contextmanager
def largest_file(size):
    """No file grows beyond this many bytes: of what does not fit, only a part is written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
