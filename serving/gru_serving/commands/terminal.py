r"""The output of commands: text made safe, help that is wrapped, a line during a long wait.

Text comes from servers and models. A terminal obeys escape sequences, which may hide or rewrite its
contents, and direction marks show a line in another order. They are printed as `\u001b`, which in
JSON is the same text as before.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LONGEST = 20_000
# C0 with DEL, C1, the two line separators, marks of direction, halves of pairs, invisible tags.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def safe_text(text: object, longest: int = _LONGEST) -> str:
    """One line that shows the text and does nothing else; cut where it is longer than that."""
    given = str(text)
    if len(given) > longest:
        given = f"{given[:longest]}... ({len(given):,} characters)"
    return _UNSAFE.sub(_escaped, given)


def safe_json(text: str) -> str:
    """JSON that says the same; its own line breaks stay."""
    return "\n".join(_UNSAFE.sub(_escaped, line) for line in text.split("\n"))


def share_bar(share: float, width: int) -> str:
    """A bar for a share of 1: none where it is not a number."""
    return "█" * round(width * min(1.0, max(0.0, share))) if share == share else ""


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    # Beyond 16 bits as a pair of halves, as JSON has it.
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


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
