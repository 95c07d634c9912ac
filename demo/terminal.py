"""What the demo prints on."""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@functools.cache
def console() -> Console:
    """The terminal."""
    from rich.console import Console  # a slow import: signals must be handled by then

    return Console(soft_wrap=True, highlight=False)


def title(text: str) -> None:
    """Begin a part of the demo."""
    console().print(f"\n[bold]{text}[/bold]")


def farewell() -> None:
    """Say that the demo was interrupted."""
    show_cursor = "\x1b[?25h" if sys.stdout.isatty() else ""  # a killed progress bar hides it
    with contextlib.suppress(OSError):  # the terminal may be gone
        sys.stdout.write(
            f"{show_cursor}\ndemo: interrupted; everything it started has been stopped\n"
        )
        sys.stdout.flush()
