"""What commands share: text made safe, help that is wrapped, errors, a line in a long wait."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gru_serving.errors import InterfaceChangeError, ServingError
from gru_serving.printable import escaped, printable

OUTPUT_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Errors of an output that cannot be written: its reader has gone, or the disk is full."""
WRONG, USAGE, NO_ANSWER = 1, 2, 3
"""Exit statuses: a wrong answer; arguments, files or names that do not fit; no usable answer."""

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


def command_parser(name: str, description: str, examples: str) -> argparse.ArgumentParser:
    """The parser of `gru-serve NAME`, without its arguments.

    Args:
        name: Name of the command.
        description: Text above the arguments.
        examples: Text below them.
    """
    return argparse.ArgumentParser(
        prog=f"gru-serve {name}",
        description=description,
        epilog=examples,
        formatter_class=HelpFormatter,
    )


def add_debug_argument(parser: argparse.ArgumentParser) -> None:
    """Add --debug."""
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def run_command(
    parser: argparse.ArgumentParser,
    argv: Sequence[str],
    work: Callable[[argparse.Namespace], int],
    status: Callable[[Exception], int] = lambda _: USAGE,
    errors: tuple[type[Exception], ...] = (),
    explain: Callable[[Exception, argparse.Namespace], str] | None = None,
) -> int:
    """Parse the arguments and do the work; an error of it is one line, or raised with --debug.

    Args:
        parser: Parser of the command.
        argv: Arguments of the command.
        work: Function that gets the arguments and returns the exit status.
        status: Function that returns the exit status for an error.
        errors: Further errors than those of servers, values and files.
        explain: Function of an error and the arguments that says it in one line, in place of
            `explain_error`.
    """
    add_debug_argument(parser)
    arguments = parser.parse_args(argv)
    caught: tuple[type[Exception], ...] = (ServingError, ValueError, OSError, *errors)
    try:
        return work(arguments)
    except caught as error:
        # A file that cannot be written is named; the output has no name.
        of_output = isinstance(error, OSError) and error.errno in OUTPUT_ERRORS
        if arguments.debug or (of_output and error.filename is None):  # type: ignore[attr-defined]
            raise
        said = explain(error, arguments) if explain else explain_error(error)
        print(f"{parser.prog}: {said}", file=sys.stderr)
        return status(error)


def explain_error(error: Exception) -> str:
    """An error as one line that is safe to print: a server may have written parts of it."""
    if isinstance(error, InterfaceChangeError):
        return str(error)  # a list, and escaped
    if isinstance(error, ServingError):
        return safe_text(error.message)
    if isinstance(error, OSError) and error.filename is not None:
        return safe_text(f"{error.filename}: {error.strerror}")
    return safe_text(error)


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
