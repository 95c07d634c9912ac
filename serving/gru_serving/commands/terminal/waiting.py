"""A line on the terminal while something takes long and prints nothing itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show what is being done, and for how long; nothing where stderr is no terminal.

    Args:
        what: What is being done.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # TensorFlow's messages are held back at the descriptor of stderr; this is another one.
    with os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8") as terminal:
        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False)
        console = Console(file=terminal, force_terminal=True)
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
            progress.add_task(what, total=None)
            yield
