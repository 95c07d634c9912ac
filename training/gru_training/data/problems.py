"""The problems of data, collected so that users see all of them at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gru_training.errors import DataError

_LINES_SHOWN = 5


class DataProblemsError(DataError):
    """The data cannot be trained on because of several problems; the message has a line for each.

    Args:
        source: The file.
        messages: Messages of one line each, the first of which names the file.
        remedies: Flags with which training could continue.
    """

    def __init__(self, source: str, messages: Sequence[str], remedies: Sequence[str] = ()):
        self.messages = tuple(messages)
        if len(self.messages) == 1:
            text = self.messages[0]
        else:
            head = f"{source}: {len(self.messages)} problems keep it from being trained on"
            text = "\n  ".join([head, *(without_source(m, source) for m in self.messages)])
        if remedies:
            between = "; " if len(self.messages) == 1 else "\n  "
            text += f"{between}to train without them: {' '.join(dict.fromkeys(remedies))}"
        super().__init__(text)


@dataclass
class _BadRows:
    """Rows with the same problem."""

    message: str
    what: str = "row"
    droppable: bool = True
    """Whether leaving them out is a remedy."""
    lines: list[int] = field(default_factory=list)

    def error(self, place: str, unit: str) -> str:
        """Write a message with the first rows, and how many more there are."""
        more = counted(len(self.lines) - 1, f"more such {self.what}")
        also = f" (and {more}, {lines_shown(self.lines[1:], unit)})" if self.lines[1:] else ""
        return f"{unit} {self.lines[0]}{place}: {self.message}{also}"


@dataclass
class Problems:
    """Errors and notes about one source of data.

    Unusable rows are counted by problem. They are errors, or notes if they are to be dropped.
    """

    source: str
    """Name of the data in messages, such as the file's."""
    drop_bad: bool = False
    """Whether rows that cannot be used are left out."""
    sort_rows: bool = False
    """Whether to sort rows by their times."""
    unit: str = "line"
    """Unit of row numbers: lines of a file, or rows of a table in memory, from 0."""
    errors: list[str] = field(default_factory=list)
    """Problems on which training would fail; one line each."""
    remedies: list[str] = field(default_factory=list)
    """Flags that avoid errors."""
    notes: list[str] = field(default_factory=list)
    """Notes for a reader; one line each."""
    reading: str = ""
    """Description of the columns that were read, such as `texts in 'body'`."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns that were read by input, such as `text`; they are looked for in further files."""
    _bad: dict[tuple[str, str | None], "_BadRows"] = field(default_factory=dict)

    def error(self, message: str, remedy: str | None = None) -> None:
        """Add a problem that would make training fail.

        Args:
            message: Message of one line.
            remedy: The flag that avoids it.
        """
        self.errors.append(message)
        if remedy:
            self.remedies.append(remedy)

    def note(self, message: str) -> None:
        """Add a note for the reader."""
        self.notes.append(message)

    def bad_row(self, kind: str, line: int, message: str, column: str | None = None) -> None:
        """Add a row that cannot be used.

        Args:
            kind: A name that rows with the same problem share.
            line: Line of the file.
            message: Problem of the row; shown for the first row of a kind.
            column: The column that is wrong.
        """
        self._bad.setdefault((kind, column), _BadRows(message)).lines.append(line)

    def bad_cell(self, line: int, column: str, message: str, droppable: bool = True) -> None:
        """Add a cell that cannot be used, in a row that can; say whether to drop it is a remedy."""
        kind = "cell" if droppable else "kept cell"
        bad = self._bad.setdefault((kind, column), _BadRows(message, "cell", droppable))
        bad.lines.append(line)

    @property
    def bad_rows(self) -> int:
        """Number of rows that cannot be used."""
        return sum(len(bad.lines) for bad in self._bad.values() if bad.what == "row")

    def close_rows(self, some_left: bool = True) -> None:
        """Turn the rows added so far into errors, or into notes if they are dropped.

        Args:
            some_left: Whether dropping them would leave any row; else that is no remedy.
        """
        for (_, column), bad in self._bad.items():
            place = f", column {column!r}" if column else ""
            if self.drop_bad:
                done = "dropped" if bad.what == "row" else "read as missing"
                self.note(
                    f"{counted(len(bad.lines), bad.what)} {done} (--drop-bad), "
                    f"{lines_shown(bad.lines, self.unit)}{place}: {bad.message}"
                )
            else:
                remedy = "--drop-bad" if some_left and bad.droppable else None
                self.error(f"{self.source}, {bad.error(place, self.unit)}", remedy)
        self._bad.clear()

    def forget_rows(self) -> None:
        """Discard the rows added so far, because another error explains them."""
        self._bad.clear()

    def absorb(self, other: "Problems") -> None:
        """Take over the problems found in another file of the same data."""
        self.errors += other.errors
        self.remedies += other.remedies
        self.notes += [f"{other.source}: {note}" for note in other.notes]

    def raise_errors(self) -> None:
        """Raise DataProblemsError if there are errors."""
        if self.errors:
            raise DataProblemsError(self.source, self.errors, self.remedies)


def without_source(message: str, source: str) -> str:
    """Remove the file's name from the start of a message."""
    return message.removeprefix(f"{source}: ").removeprefix(f"{source}, ")


def counted(count: int, what: str) -> str:
    """Write a count with its noun, such as `1 row`, `1,200 rows` or `3 classes`."""
    plural = "es" if what.endswith("s") else "s"
    return f"{count:,} {what}{'' if count == 1 else plural}"


MOST_NAMED = 10
"""Greatest number of names in a message, and of notes of one kind on series."""


def first_names(names: Sequence[str]) -> str:
    """Write the first names, and how many more there are, such as `a, b and 1,200 more`."""
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def values_shown(values: Mapping[str, float]) -> str:
    """Write the first names with their values, like `first_names`."""
    return first_names([f"{name} ({value:g})" for name, value in values.items()])


def lines_shown(lines: Sequence[int], unit: str = "line") -> str:
    """Write the first few line numbers, such as `lines 3, 7, 12 ...`."""
    if len(lines) == 1:
        return f"{unit} {lines[0]}"
    rest = " ..." if len(lines) > _LINES_SHOWN else ""
    return f"{unit}s {', '.join(map(str, lines[:_LINES_SHOWN]))}{rest}"
