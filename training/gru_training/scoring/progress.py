"""The progress display while a file is scored: a bar with rows per second and time left."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

_EVERY = 30.0
"""Seconds between two lines where there is no terminal."""


class ScoringProgress:
    """A context manager; shows a bar in a terminal, otherwise a line from time to time.

    Args:
        console: Where to write.
        rows: All rows.
        done: Those that were done before.
    """

    def __init__(self, console: Console, rows: int, done: int):
        self._console, self._rows, self._before = console, rows, done
        self._bar = Progress(
            TextColumn("scoring"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=rows, completed=done, state="")

    def __enter__(self) -> "ScoringProgress":
        self._started = self._said = time.monotonic()
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def update(self, done: int) -> None:
        """Say how many rows are done."""
        now = time.monotonic()
        speed = (done - self._before) / max(now - self._started, 1e-9)
        left = time.strftime("%H:%M:%S", time.gmtime((self._rows - done) / max(speed, 1e-9)))
        state = f"{done:,} of {self._rows:,} rows, {speed:,.0f} rows/s, {left} left"
        self._bar.update(self._task, completed=done, state=state)
        if not self._console.is_terminal and now > self._said + _EVERY:
            self._said = now
            self._console.print(state, highlight=False)
