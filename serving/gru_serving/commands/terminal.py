"""Shared parts of commands: safe text, wrapped help, errors, a progress line for long waits."""

import argparse
import errno
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gru_serving.errors import InterfaceChangeError, ServingError
from gru_serving.printable import escaped, printable

OUTPUT_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Errors of an output that cannot be written, as its reader has gone or the disk is full."""
WRONG, USAGE, NO_ANSWER = 1, 2, 3
"""Exit statuses: a wrong answer; unusable arguments, files or names; no usable answer."""

_MAX_CHARACTERS = 20_000


def safe_text(text: object, longest: int = _MAX_CHARACTERS) -> str:
    """Escape text from a server or model for one line, and cut it to a greatest length."""
    return printable(str(text), longest)


def safe_json(text: str) -> str:
    """Escape JSON for a terminal; its meaning and line breaks stay the same."""
    return "\n".join(map(escaped, text.split("\n")))


def share_bar(share: float, width: int) -> str:
    """Draw a bar for a share of 1; empty for a value that is not a number."""
    return "█" * round(width * min(1.0, max(0.0, share))) if share == share else ""


def command_parser(name: str, description: str, examples: str) -> argparse.ArgumentParser:
    """Make the parser of `gru-serve NAME` without its arguments.

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
    """Parse the arguments and run the command.

    An error is printed as one line, or raised with --debug.

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
        # An error about a file names it; one about the output does not.
        of_output = isinstance(error, OSError) and error.errno in OUTPUT_ERRORS
        if arguments.debug or (of_output and error.filename is None):  # type: ignore[attr-defined]
            raise
        said = explain(error, arguments) if explain else explain_error(error)
        print(f"{parser.prog}: {said}", file=sys.stderr)
        return status(error)


_ASSERTION = re.compile(r"^assertion failed: \[(.*?)\](?=$| [(\[])")
"""An error that a model's own check has raised, as TensorFlow writes it."""


def explain_error(error: Exception) -> str:
    """Write an error as one line that is safe to print: a server may have written parts of it."""
    if isinstance(error, InterfaceChangeError):
        return str(error)  # a list, and escaped
    if isinstance(error, ServingError):
        return safe_text(_ASSERTION.sub(r"\1", error.message))
    if isinstance(error, OSError) and error.filename is not None:
        return safe_text(f"{error.filename}: {error.strerror}")
    return safe_text(error)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """A help formatter that wraps one-line texts and keeps texts of several lines unchanged."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show what is under way and for how long; nothing if stderr is not a terminal.

    Args:
        what: Name of the work in progress.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # TensorFlow's messages are captured at the descriptor of stderr; this is a copy of it.
    with os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8") as terminal:
        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False)
        console = Console(file=terminal, force_terminal=True)
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
            progress.add_task(what, total=None)
            yield
