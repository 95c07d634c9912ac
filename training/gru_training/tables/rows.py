"""The rows of tables in files, read in one way for training, checking and scoring."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gru_training.errors import DataError
from gru_training.tables.content import LONGEST_LINE, chunks, text_lines
from gru_training.tables.file_form import (
    DETECTED_FORMAT,
    LABEL_MARK,
    FileForm,
    TextFormat,
    find_form,
    stream_encoding,
    text_form,
)
from gru_training.tables.text_columns import header_hint

if TYPE_CHECKING:
    import pyarrow as pa

Misfit = Callable[[str, int, str], None]
"""Function called with the kind of a problem, the place of the row, and a description."""
_DECODE_ROWS = 256
"""Number of rows of Parquet that are decoded at once, as their size is unknown before."""


Row = tuple[int, Mapping[str, Any]]
"""The place of a row, and its cells by column.

The place is the line of a text on which the row begins, from 1, or else the row's number. Cells of
CSV are texts; others are also numbers, lists and so on, and None if missing. A tuple without names
takes half the time for a million rows.
"""


@dataclass(frozen=True)
class Rows:
    """An opened table that can be iterated over once."""

    form: FileForm
    columns: Sequence[str] | None
    """Names of the columns; None if each row names its own, as in JSON."""
    rows: Iterator[Row]

    def __iter__(self) -> Iterator[Row]:
        return self.rows

    def with_columns(self) -> tuple[Sequence[str], Iterable[Row]]:
        """Return the columns and the rows.

        If each row names its own columns, all rows are read first.
        """
        if self.columns is not None:
            return self.columns, self.rows
        rows = list(self.rows)
        return list(dict.fromkeys(name for _, cells in rows for name in cells)), rows


def read_rows(
    path: Path,
    given: TextFormat = DETECTED_FORMAT,
    misfit: Misfit | None = None,
    bounded: bool = False,
    form: FileForm | None = None,
) -> Rows:
    """Open a table of CSV, TSV, JSON lines, a JSON list, Parquet, Arrow, Excel or fastText.

    Texts may be compressed with gzip or zstd. CSV needs a header line and follows the usual quoting
    rules: a cell in double quotes may contain the separator, line breaks and doubled quotes. Blank
    lines are skipped. In JSON each row is an object. Lines of fastText have the columns `labels`,
    a list, and `text`.

    Args:
        path: The file.
        given: Format of the text, as far as it is known.
        misfit: Function that is told of malformed rows, which are left out; by default they raise.
        bounded: Whether all rows are to be held in memory, for which a compressed file must not
            grow beyond measure.
        form: Format of the file, where it was found before.

    Raises:
        DataError: The file cannot be read, or has no header or, without `misfit`, a row is
            malformed; names the line.
    """
    form = form or find_form(path, given)
    tell = misfit or _raising(str(path), form.unit)
    if form.kind == "excel":
        return _excel_rows(path, form)
    if form.kind in ("parquet", "arrow"):
        return _arrow_rows(path, form)
    lines = text_lines(str(path), chunks(path, bounded), form.encoding, form.line_end)
    return _text_rows(str(path), lines, form, tell)


def read_stream(name: str, stream: io.BufferedReader, given: TextFormat = DETECTED_FORMAT) -> Rows:
    """Open a table of CSV or JSON lines whose rows are still arriving.

    Its format is recognised from the first bytes.

    Args:
        name: Name in messages.
        stream: Stream of the table's bytes.
        given: Format of the text, as far as it is known.

    Raises:
        DataError: The stream has no header; a row that is malformed raises when it is reached.
    """
    head = stream.peek()
    encoding = given.encoding or stream_encoding(head)
    form = text_form(name, head, encoding, "", given.separator, cut=True)
    lines = text_lines(name, iter(lambda: stream.read1(1 << 20), b""), encoding, form.line_end)
    return _text_rows(name, lines, form, _raising(name, form.unit))


def cell_text(value: Any) -> str | None:
    """Write a cell as text: values that are not text as in JSON, and times as in ISO 8601."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, bool | int | float | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _raising(name: str, unit: str) -> Misfit:
    def misfit(_: str, place: int, problem: str) -> None:
        raise DataError(f"{name}, {unit} {place}: {problem}")

    return misfit


def _text_rows(name: str, lines: Iterator[str], form: FileForm, misfit: Misfit) -> Rows:
    if form.kind == "jsonl":
        return Rows(form, None, _json_lines(lines, misfit))
    if form.kind == "json":
        return Rows(form, None, _json_list(name, lines, misfit, form))
    if form.kind == "fasttext":
        return Rows(form, ["labels", "text"], _fasttext_lines(lines, misfit))
    table = _csv_rows(name, lines, form, misfit)
    columns = next(table)
    named = [column for column in columns if column.strip()]
    if len(named) < len(columns) - 1:
        unnamed = len(columns) - len(named)
        note = f"columns without a name are not read: {unnamed} of {len(columns)}"
        form = form._replace(notes=(*form.notes, note))
        return Rows(form, named, ((place, _only(named, cells)) for place, cells in table))
    return Rows(form, columns, table)


def _only(names: Sequence[str], cells: Mapping[str, Any]) -> dict[str, Any]:
    return {name: cells[name] for name in names}


def _csv_rows(name: str, lines: Iterator[str], form: FileForm, misfit: Misfit) -> Iterator[Any]:
    """Yield the columns, then the rows with the same number of cells."""
    # The default limit of a cell is 131,072 characters; a text may be longer.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    for _ in range(form.skipped):
        next(lines, None)
    reader = csv.reader(lines, delimiter=form.separator, strict=True)
    line, header = form.skipped + 1, list[str]()
    while True:
        try:
            for cells in reader:
                if header and len(cells) == len(header):
                    yield line, dict(zip(header, cells, strict=True))
                elif cells and header:
                    problem = f"expected {len(header)} cells as in the header, got {len(cells)}"
                    misfit("cells", line, problem)
                elif cells:
                    header = _checked_header(name, cells)
                    yield header
                line = form.skipped + reader.line_num + 1
            break
        except csv.Error as error:
            line = form.skipped + reader.line_num
            if "new-line character" not in str(error):
                raise DataError(
                    f"{name}, line {line}: not well-formed ({error}); is a quote unbalanced?"
                ) from error
            misfit(
                "return",
                line,
                "expected a cell with a carriage return (\\r) in it to stand in double quotes, got "
                "one without; quote it, or replace the characters, as with `tr '\\r' ' '`",
            )
            line += 1
    if not header:
        raise DataError(f"{name} is empty; expected a header line")


def _checked_header(name: str, header: list[str]) -> list[str]:
    named = [column for column in header if column.strip()]
    if len(set(named)) < len(named):
        raise DataError(f"{name}: two columns have the same name: {header}{header_hint(named)}")
    return header


_LABELS = re.compile(rf"(?:{LABEL_MARK}\S*\s*)+")
"""Labels before a text of fastText."""


def _fasttext_lines(lines: Iterable[str], misfit: Misfit) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        text = line.strip()
        marked = _LABELS.match(text)
        if marked is not None:
            labels = [label.removeprefix(LABEL_MARK) for label in marked[0].split()]
            yield number, {"labels": labels, "text": text[marked.end() :]}
        elif text:
            misfit(
                "label", number, f"expected a text after its {LABEL_MARK}NAME, got {text[:40]!r}"
            )


def _json_lines(lines: Iterable[str], misfit: Misfit) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            misfit("JSON", number, f"not JSON ({error})")
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            misfit("object", number, f"expected a JSON object, got {line[:40].strip()!r}")


def _json_list(name: str, lines: Iterable[str], misfit: Misfit, form: FileForm) -> Iterator[Row]:
    """Yield the objects of a list, which is held in memory, with the line on which each begins.

    Objects of a list in one line are numbered from 1.
    """
    text = "".join(lines)
    decode = json.JSONDecoder().raw_decode
    place = text.index("[") + 1
    line, counted = 0 if form.one_line else 1, 0
    while (place := _skip_blanks(text, place)) < len(text) and text[place] != "]":
        line += 1 if form.one_line else text.count("\n", counted, place)
        counted = place
        try:
            value, end = decode(text, place)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name}, {form.unit} {line}: not JSON ({error})") from error
        if isinstance(value, dict):
            yield line, value
        else:
            misfit("object", line, f"expected a JSON object, got {text[place:end]!r:.40}")
        place = _skip_blanks(text, end)
        if text[place : place + 1] == ",":
            place += 1
        elif text[place : place + 1] != "]":
            break
    else:
        if text[place:].strip() == "]":
            return
    if not form.one_line:
        line += text.count("\n", counted, place)
    raise DataError(
        f"{name}, {form.unit} {line}: not a complete JSON list; expected , or ] at its end"
    )


def _skip_blanks(text: str, place: int) -> int:
    while text[place : place + 1] in (" ", "\t", "\r", "\n"):
        place += 1
    return place


def _excel_rows(path: Path, form: FileForm) -> Rows:
    """Yield the rows of the first sheet that is not hidden, numbered as in spreadsheets."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum
    except ModuleNotFoundError:
        raise DataError(
            f"{path} is a workbook of Excel or OpenDocument, for which python-calamine is missing; "
            "install it with pip install 'keras-gru[excel]', or save the sheet as CSV UTF-8"
        ) from None
    try:
        book = CalamineWorkbook.from_path(str(path))
        sheets = book.sheets_metadata
        sheets.sort(key=lambda each: each.visible != SheetVisibleEnum.Visible)
        sheet = book.get_sheet_by_name(sheets[0].name)
        table = [[_excel_cell(cell) for cell in row] for row in sheet.to_python(False)]
        ranges = sorted(sheet.merged_cell_ranges or ())
    except (CalamineError, OSError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    # A range of several columns is a title; one beyond the table is empty.
    width = min(map(len, table), default=0)
    tall = [
        (column, first, last)
        for (first, column), (last, end) in ranges
        if first < min(last, len(table) - 1) and column == end < width
    ]
    for column, first, last in tall:
        for cells in table[first + 1 : last + 1]:
            cells[column] = table[first][column]
    filled = [row for row in enumerate(table, 1) if any(cell is not None for cell in row[1])]
    if not filled:
        raise DataError(f"{path} is empty; expected a header row in the sheet {sheet.name!r}")
    (_, header), *rest = filled
    names = [None if cell is None else str(cell) for cell in header]
    _checked_header(str(path), [name for name in names if name is not None])
    for row, cells in rest:
        beside = [
            cell
            for cell, name in zip(cells, names, strict=True)
            if name is None and cell is not None
        ]
        if beside:
            title = [name for name in names if name is not None]
            way = "give its column a name in the header, or leave it out"
            if len(title) == 1:
                way = f"leave out the rows above the names of the columns, if {title[0]!r} is none"
            raise DataError(
                f"{path}, row {row}: expected cells below the header alone, got {beside[0]!r:.40} "
                f"beside it; {way}"
            )
    if len(sheets) > 1:
        others = ", ".join(repr(each.name) for each in sheets[1:4])
        note = f"the sheet {sheet.name!r} is read, the first that is not hidden, not {others}"
        form = form._replace(notes=(*form.notes, note))
    if tall:
        begin = min(first for _, first, _ in tall) + 1
        note = f"each row of merged cells reads their value, from row {begin} on"
        form = form._replace(notes=(*form.notes, note))
    return Rows(
        form,
        [name for name in names if name is not None],
        (
            (
                row,
                {name: cell for name, cell in zip(names, cells, strict=True) if name is not None},
            )
            for row, cells in rest
        ),
    )


def require_calculated(
    path: Path | str, form: FileForm, column: str, values: Iterable[Any]
) -> None:
    """Raise DataError if a workbook has no value in a column, as of formulas that others wrote."""
    if form.kind == "excel" and column and not any(value is not None for value in values):
        raise DataError(
            f"{path}: expected values in the column {column!r}, got none; formulas have none until "
            "Excel has calculated and saved them"
        )


def _excel_cell(cell: Any) -> Any:
    """Return a cell as text, number or truth value; None if it is empty."""
    if cell == "":
        return None
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell)  # Excel has no whole numbers
    return cell if isinstance(cell, str | bool | int | float) else str(cell)


def _arrow_rows(path: Path, form: FileForm) -> Rows:
    """Yield the rows of Parquet or Arrow, numbered from 0."""
    with arrow_file(path, form) as opened:
        names = opened.schema.names

    def rows() -> Iterator[Row]:
        place = 0
        with arrow_file(path, form) as opened:
            for batch in opened.batches(0, names, _DECODE_ROWS):
                columns = [_python_values(column) for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    yield place, dict(zip(names, cells, strict=True))
                    place += 1

    return Rows(form, names, rows())


def _python_values(column: "pa.Array") -> list[Any]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        try:
            column = column.cast(pa.timestamp("us", kind.tz))
        except pa.ArrowInvalid:  # finer than Python's times
            column = column.cast(pa.string())
    values: list[Any] = column.to_pylist()
    if pa.types.is_temporal(kind):
        return [None if value is None else str(value) for value in values]
    return values


class ArrowFile(NamedTuple):
    """An opened file of Parquet or Arrow."""

    schema: "pa.Schema"
    length: Callable[[], int]
    """Function that counts the rows."""
    batches: Callable[[int, Sequence[str], int], Iterator["pa.RecordBatch"]]
    """Function of first row, columns and batch size that yields batches of rows."""


@contextmanager
def arrow_file(path: Path, form: FileForm) -> Iterator[ArrowFile]:
    """Open a file of Parquet or Arrow.

    Raises:
        DataError: The file is not complete, damaged, or names two columns alike.
    """
    import pyarrow as pa

    opened = False
    try:
        with (_parquet if form.kind == "parquet" else _arrow)(path) as file:
            opened = True
            _checked_header(str(path), file.schema.names)
            yield file._replace(schema=file.schema.remove_metadata())
    except (pa.ArrowException, OSError) as error:
        if opened:
            raise DataError(f"cannot read {path}: {error}") from error
        what = "Parquet" if form.kind == "parquet" else "Arrow"
        raise DataError(f"{path} is not a complete {what} file: {error}") from error


@contextmanager
def _parquet(path: Path) -> Iterator[ArrowFile]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(
        path, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True
    ) as file:

        def batches(skip: int, names: Sequence[str], most: int) -> Iterator["pa.RecordBatch"]:
            sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
            first = 0
            while first < len(sizes) and skip >= sizes[first]:
                skip -= sizes[first]
                first += 1
            groups = range(first, len(sizes))
            found = file.iter_batches(
                min(_DECODE_ROWS, most), row_groups=groups, columns=list(names), use_threads=False
            )
            yield from _behind(found, skip, names, most)

        yield ArrowFile(file.schema_arrow, lambda: file.metadata.num_rows, batches)


@contextmanager
def _arrow(path: Path) -> Iterator[ArrowFile]:
    import pyarrow as pa

    with path.open("rb") as source:
        is_file = source.read(6) == b"ARROW1"
    with pa.memory_map(str(path)) as source:

        def found() -> Iterator["pa.RecordBatch"]:
            if not is_file:
                source.seek(0)
                yield from pa.ipc.open_stream(source)
                return
            reader = pa.ipc.open_file(source)
            yield from map(reader.get_batch, range(reader.num_record_batches))

        schema = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source).schema
        yield ArrowFile(
            schema,
            lambda: sum(batch.num_rows for batch in found()),
            lambda skip, names, most: _behind(found(), skip, names, most),
        )


def _behind(
    batches: Iterable["pa.RecordBatch"], skip: int, names: Sequence[str], most: int
) -> Iterator["pa.RecordBatch"]:
    for batch in batches:
        left = batch.slice(skip)
        skip = max(0, skip - batch.num_rows)
        for begin in range(0, left.num_rows, most):
            yield left.slice(begin, most).select(list(names))
