"""Which runs are over so soon that handing them to a thread would cost more than they do."""

from __future__ import annotations

SECONDS = 200e-6
"""A thread is handed a run, wakes, and hands the answer back in about half of this."""


class Brevity:
    """Learns from the runs of one signature up to which size they are brief.

    A run of few rows in ONNX Runtime takes some 50 us. The event loop then does it itself. The
    size shrinks again at the first run that takes longer, whatever the reason.
    """

    def __init__(self) -> None:
        self._size = 0

    def expects(self, size: int) -> bool:
        """Whether a run with inputs of this size is expected to be brief."""
        return size <= self._size

    def note(self, size: int, seconds: float) -> None:
        """Learn from a run."""
        if seconds > SECONDS:
            if size <= self._size:
                self._size = size // 2
        elif size > self._size:
            self._size = size
