"""The format of a file of rows: recognised from its first bytes, and reported if it was assumed."""

import codecs
import csv
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from gru_training.errors import ConfigError, DataError
from gru_training.tables.content import chunks, compression_of, first_bytes, spoken, text_lines

FORMATS = "CSV, TSV, JSON lines, a JSON list, Parquet, Arrow, Excel or fastText"
"""Names of the formats that are read, for messages."""
Kind = Literal["csv", "jsonl", "json", "parquet", "arrow", "excel", "fasttext"]
LABEL_MARK = "__label__"
"""Beginning of each label of a line of fastText, before its text."""
_HEAD = 1 << 16
"""Number of bytes of a text from which separator and encoding are recognised."""
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_FEWEST_BELOW = 3
"""Number of rows below the names of columns that tell these from a row below a title."""
_NUMBER = re.compile(r"^\W*\d")
_SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t"}
_SEPARATOR_LINE = re.compile(r"\"?sep=(.)\"?\r?\n?")
"""The first line that Excel writes to name the separator."""
_MARKS = (  # the longer ones first: UTF-32's begins like UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_BINARY: tuple[tuple[bytes, Kind], ...] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "excel"),  # .xls
)
_UNSUPPORTED_FORMATS = (
    (b"FEA1", "Feather of the first version; write it as Arrow (Feather version 2)"),
    (b"BZh", "bzip2; unpack it with bunzip2"),
    (b"\xfd7zXZ\0", "xz; unpack it with unxz"),
    (b"ORC", "ORC; write it as Parquet"),
    (b"Obj\x01", "Avro; write it as Parquet"),
    (b"SQLite format 3\0", "an SQLite database; write the table as CSV"),
    (b"%PDF", "a PDF document; write its table as CSV"),
)


@dataclass(frozen=True)
class TextFormat:
    """The format of a text file, as far as it is given; None to recognise it from the file."""

    separator: str | None = None
    """The character between cells; `tab` and `\\t` mean a tab."""
    encoding: str | None = None
    """Python's name of the encoding."""

    def __post_init__(self) -> None:
        if self.separator is not None:
            separator = _SEPARATOR_NAMES.get(self.separator, self.separator)
            if len(separator) != 1 or separator in '"\r\n\0':
                raise ConfigError(
                    "--separator must be one character, such as ';', or tab, got "
                    f"{self.separator!r}"
                )
            object.__setattr__(self, "separator", separator)
        if self.encoding is not None:
            try:
                "".encode(self.encoding)  # refuses codecs from bytes to bytes, as base64
                name = codecs.lookup(self.encoding).name
            except (LookupError, ValueError):
                raise ConfigError(
                    "--encoding must be an encoding that Python knows, such as utf-8, cp1252 or "
                    f"utf-16, got {self.encoding!r}"
                ) from None
            object.__setattr__(self, "encoding", "utf-8-sig" if name == "utf-8" else name)


DETECTED_FORMAT = TextFormat()


class FileForm(NamedTuple):
    """The format of a file of rows."""

    kind: Kind
    encoding: str = ""
    """Encoding of a text, Python's name; empty for other files."""
    separator: str = ""
    """Character between the cells of CSV."""
    line_end: str = "\n"
    """The character that ends a line of text."""
    skipped: int = 0
    """Lines before the header."""
    notes: tuple[str, ...] = ()
    """Notes on assumptions, for the reader; at most one line."""
    one_line: bool = False
    """Whether a JSON list is in a single line, as most programs write it."""

    @property
    def unit(self) -> Literal["line", "row"]:
        """Unit in which rows are counted: lines of a text, otherwise rows."""
        return "line" if self.encoding and not self.one_line else "row"

    def named(self, source: Path | str) -> str:
        """Name a table in errors on its columns, with the assumptions about it."""
        return f"{source} ({'; '.join(self.notes)})" if self.notes else str(source)


def find_form(path: Path, given: TextFormat = DETECTED_FORMAT) -> FileForm:
    """Recognise the format of a file.

    Args:
        path: The file.
        given: Format of the file, as far as it is known.

    Raises:
        DataError: The file is missing, of a kind that is not read, or may be read in two ways.
    """
    head = first_bytes(path, 16)
    if binary := _binary_kind(path, head):
        return FileForm(binary)
    if not compression_of(head):
        content = first_bytes(path, _HEAD)
    else:
        content = _enough(chunks(path))
        if _binary_kind(path, content):
            raise DataError(
                f"{path}: expected compressed text, got a compressed file of another kind, which "
                "is compressed in itself; unpack it first"
            )
    encoding, said = _encoding(path, content, given.encoding)
    return text_form(str(path), content, encoding, said, given.separator, cut=len(content) >= _HEAD)


def read_text(path: Path, encoding: str | None = None) -> tuple[str, str]:
    """Read the whole text of a file, which may be compressed.

    Args:
        path: The file.
        encoding: Python's name of its encoding; found by default.

    Returns:
        Text, and a note on its encoding if that was assumed.

    Raises:
        DataError: The file cannot be read, or is no text; names the line.
    """
    found, said = _encoding(path, _enough(chunks(path)), TextFormat(encoding=encoding).encoding)
    lines = text_lines(str(path), chunks(path, bounded=True), found)
    return "".join(lines), f"{said} (--encoding says otherwise)" if said else ""


def text_form(
    name: str, head: bytes, encoding: str, said: str, separator: str | None, cut: bool
) -> FileForm:
    """Recognise the format of a text with a known encoding.

    Args:
        name: The file's name, by whose end the usual separator is known.
        head: First bytes of the file.
        encoding: Python's name of the encoding.
        said: Note on the encoding for the reader; empty for none.
        separator: The character between cells, where it is known.
        cut: Whether the text goes on after the first bytes.

    Raises:
        DataError: The cells may be separated in two ways.
    """
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    text = decoder.decode(head, final=not cut)
    line_end = "\n" if "\n" in text or "\r" not in text else "\r"
    lines = text.split(line_end)
    if cut and len(lines) > 1:
        del lines[-1]
    suffix = Path(name.removesuffix(".gz").removesuffix(".zst")).suffix.lower()
    first = next(filter(str.strip, lines), "")
    parts = [said] if said else []
    if first.startswith(LABEL_MARK):
        return FileForm("fasttext", encoding, "", line_end, 0, _one_note(parts))
    kind = _json_kind(text, first, suffix)
    if kind is not None:
        one_line = kind == "json" and line_end not in text.strip()
        return FileForm(kind, encoding, "", line_end, 0, _one_note(parts), one_line)
    skipped = 0
    usual = "\t" if suffix in (".tsv", ".tab") else ","
    if match := _SEPARATOR_LINE.fullmatch(lines[0]):
        skipped, found = 1, separator or match[1]
    else:
        found = separator or _separator(name, lines, line_end, usual)
        _require_names(name, lines, line_end, separator, usual)
        if separator is None and found != usual:
            parts.append(f"columns are separated by {_SEPARATORS[found]}")
    return FileForm("csv", encoding, found, line_end, skipped, _one_note(parts))


def stream_encoding(head: bytes) -> str:
    """Recognise the encoding of a text of which only the first bytes are available."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8-sig")


def _one_note(parts: list[str]) -> tuple[str, ...]:
    if not parts:
        return ()
    flags = " and ".join(
        flag
        for word, flag in (("read as", "--encoding"), ("separated", "--separator"))
        if any(word in part for part in parts)
    )
    return (f"{'; '.join(parts)} ({flags} {'say' if ' and ' in flags else 'says'} otherwise)",)


def _binary_kind(path: Path, head: bytes) -> Kind | None:
    """Recognise the kind of a file that is not text; None for text."""
    for magic, what in _UNSUPPORTED_FORMATS:
        if head.startswith(magic):
            raise DataError(f"{path}: expected {FORMATS}, got {what}")
    if head.startswith(b"PK\x03\x04"):
        return _zipped_kind(path)
    return next((kind for magic, kind in _BINARY if head.startswith(magic)), None)


def _zipped_kind(path: Path) -> Kind:
    """Recognise Excel or OpenDocument, which are zip archives."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{path} is not a complete zip archive: {error}") from error
    if names & {"xl/workbook.xml", "xl/workbook.bin"} or {"mimetype", "content.xml"} <= names:
        return "excel"
    shown = ", ".join(sorted(names)[:3])
    raise DataError(
        f"{path}: expected {FORMATS}, got a zip archive ({shown}); unpack it with unzip first"
    )


def _enough(content: Iterator[bytes]) -> bytes:
    head = b""
    for chunk in content:
        head += chunk
        if len(head) >= _HEAD:
            break
    return head[:_HEAD]


def _encoding(path: Path, head: bytes, given: str | None) -> tuple[str, str]:
    """Recognise the encoding; also returns a note if it was assumed.

    A text without a byte-order mark is UTF-16 if there are zeros between its letters, otherwise
    UTF-8, or Windows-1252 if the first character beyond ASCII is not UTF-8.
    """
    if given is not None:
        return given, ""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name, ""
    low, high = head[:1024:2], head[1:1024:2]
    for name, letters, zeros in (("utf-16-le", low, high), ("utf-16-be", high, low)):
        if len(zeros) > 1 and 0 not in letters and zeros.count(0) > 0.9 * len(zeros):
            return name, f"read as {spoken(name)}"
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = 1
    for chunk in chunks(path):
        try:
            ascii_only = decoder.decode(chunk).isascii()
        except UnicodeDecodeError as error:
            lines += error.object.count(b"\n", 0, error.start)
            if not error.object[: error.start].isascii():
                break  # a damaged letter in UTF-8: reading it names the line
            return "cp1252", f"read as {spoken('cp1252')}, as line {lines} is not UTF-8"
        if not ascii_only:
            break
        lines += chunk.count(b"\n")
    return "utf-8-sig", ""


def _json_kind(text: str, first_line: str, suffix: str) -> Literal["jsonl", "json"] | None:
    begin = text.lstrip()[:1]
    if begin == "[" and text.lstrip()[1:].lstrip()[:1] in ("{", "]"):
        return "json"
    if suffix in (".jsonl", ".ndjson", ".json"):
        return "jsonl"
    if begin != "{":
        return None
    try:
        return "jsonl" if isinstance(json.loads(first_line), dict) else None
    except (ValueError, RecursionError):
        return None


def _require_names(
    name: str, lines: Sequence[str], line_end: str, given: str | None, usual: str
) -> None:
    """Raise DataError if the first line is a title above the names of the columns.

    A title is in the first cell alone. Names have no numbers, and all rows below as many cells.

    Args:
        name: The file's name.
        lines: First lines of the file.
        line_end: The character that ends a line.
        given: The character between cells, where the user names it.
        usual: The character that is assumed otherwise; by another one, names are at least three,
            since each text of a column may have one such character.
    """
    separators = [given] if given else [*_SEPARATORS]
    title = next(filter(str.strip, lines), "")
    if any(_filled(title, separator) > 1 for separator in separators):
        return
    for separator in separators:
        place = next((n for n, line in enumerate(lines) if _filled(line, separator) > 1), None)
        if place is None:
            continue
        try:
            below = (each + line_end for each in lines[place:])
            names, *rows = filter(None, csv.reader(below, delimiter=separator))
        except csv.Error:  # reading the file names the line
            continue
        alike = len(rows) >= _FEWEST_BELOW and {*map(len, rows)} == {len(names)}
        enough = len(names) >= (2 if separator in (given, usual) else 3)
        if alike and enough and all(each.strip() and not _NUMBER.search(each) for each in names):
            title = title.strip(separator + " \r")
            raise DataError(
                f"{name}, line 1: expected the names of the columns, got {title!r:.40} alone; "
                f"leave out the lines above the names: `tail -n +{place + 1} {shlex.quote(name)} > "
                f"OTHER`, if they are on line {place + 1}"
            )


def _filled(line: str, separator: str) -> int:
    """Count the cells of a line that are not empty, whatever stands in quotes."""
    return sum(bool(cell.strip(' "\r')) for cell in line.split(separator))


def _separator(name: str, lines: list[str], line_end: str, usual: str) -> str:
    """Find the separator with which most rows have as many cells as the header.

    Raises:
        DataError: Several fit every row.
    """
    fits: dict[str, float] = {}
    cells: dict[str, int] = {}
    for separator in _SEPARATORS:
        lengths = []
        try:
            reader = csv.reader((line + line_end for line in lines), delimiter=separator)
            lengths = [len(row) for row in reader if row]
        except csv.Error:
            pass  # reading the file names the line
        if not lengths or lengths[0] == 1:
            continue
        same = sum(length == lengths[0] for length in lengths[1:])
        if same or len(lengths) == 1:
            cells[separator] = lengths[0]
            fits[separator] = same / max(1, len(lengths) - 1)
    if not fits:
        return usual
    best = [separator for separator, share in fits.items() if share == max(fits.values())]
    if len(best) == 1 or usual == "\t" in best:
        return usual if usual in best else best[0]
    most = [each for each in best if cells[each] == max(cells[each] for each in best)]
    if len(most) == 1 and max(fits.values()) < 1:
        return most[0]
    ways = " or ".join(f"{_SEPARATORS[each]} ({cells[each]} columns)" for each in best)
    raise DataError(
        f"{name}: expected one way to separate columns, got {ways}; name the character with "
        f"--separator, such as --separator '{best[0]}'"
    )
