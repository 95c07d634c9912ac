"""Memory that is free, but still the process's: back to the system."""

from __future__ import annotations

import ctypes
from typing import Any


def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # no glibc
        return None


_TRIM = _trim()


def give_back() -> None:
    """Have the C library return what it keeps for later; takes some milliseconds."""
    if _TRIM is not None:
        _TRIM(0)
