"""A disk that is full at a certain byte, for this process."""

import resource
from contextlib import contextmanager


@contextmanager
def largest_file(size):
    """No file grows beyond so many bytes: what does not fit is written in part, then refused."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
