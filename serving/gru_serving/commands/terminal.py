"""The output of commands: text made safe, help that is wrapped, a line during a long wait."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gru_serving.printable import escaped, printable

_MAX_CHARACTERS = 20_000


def safe_text(text: object, longest: int = _MAX_CHARACTERS) -> str:
    """Show text of a server or model on one line, cut where it is longer than that."""
    return printable(str(text), longest)


def safe_json(text: str) -> str:
    """Escape JSON for a terminal: it says the same, and its own line breaks stay."""
    return "\n".join(map(escaped, text.split("\n")))


def share_bar(share: float, width: int) -> str:
    """A bar for a share of 1: none where it is not a number."""
    return "█" * round(width * min(1.0, max(0.0, share))) if share == share else ""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps texts of one line and leaves those of several lines alone."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show what is being done, and for how long; nothing where stderr is no terminal.

    Args:
        what: Name of the work in progress.
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
