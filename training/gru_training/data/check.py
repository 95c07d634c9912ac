"""The result of checking data before training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gru_training.data.problems import DataProblemsError, without_source

if TYPE_CHECKING:
    from rich.console import Console

_MOST_ROWS = 40


@dataclass(frozen=True)
class DataTable:
    """A summary of the data for people: its classes or its series."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def print(self, console: "Console") -> None:
        """Print its first rows."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        for number, name in enumerate(self.header):
            table.add_column(name, justify="right" if number else "left", overflow="fold")
        for row in self.rows[:_MOST_ROWS]:
            table.add_row(*map(Text, row))
        console.print(table)
        if len(self.rows) > _MOST_ROWS:
            console.print(f"... and {len(self.rows) - _MOST_ROWS:,} more")


@dataclass(frozen=True)
class DataCheck:
    """Data that were read and checked."""

    source: str
    """The file or folder, or the name of built-in data."""
    summary: str
    """One-line description of the data."""
    table: Callable[[], DataTable] | None
    """Make the table of its classes or series."""
    errors: tuple[str, ...]
    """Problems on which training would fail, one line each."""
    remedies: tuple[str, ...]
    """Flags with which the training would not fail."""
    notes: tuple[str, ...]
    """Notes for a reader, one line each."""
    data: Any
    """Data in the form that the training of the task takes, so that they are read only once; None
    with errors.
    """
    reading: str = ""
    """Description of the columns that were read; empty if nothing is worth saying."""

    def raise_errors(self) -> None:
        """Raise DataProblemsError if training would fail."""
        if self.errors:
            raise DataProblemsError(self.source, self.errors, self.remedies)

    def print_notes(self, console: "Console") -> None:
        """Print the notes for a reader."""
        for note in self.notes:
            console.print(f"note: {note}", style="yellow")

    def print(self, console: "Console") -> None:
        """Print the whole check."""
        console.print(f"{self.source}: {self.summary}")
        if self.table is not None:
            self.table().print(console)
        for message in self.errors:
            text = without_source(message, self.source)
            console.print(f"error: {text}", style="bold red")
        self.print_notes(console)
