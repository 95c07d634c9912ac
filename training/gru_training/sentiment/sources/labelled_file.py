"""The user's own labelled texts: files, or tables in memory."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gru_training.data.label_cells import LabelCells, TargetKind
from gru_training.data.problems import Problems
from gru_training.data.text_files import LabelledRow, read_text_rows
from gru_training.data.text_table import TextTable
from gru_training.errors import DataError
from gru_training.sentiment.data_config import SentimentDataConfig
from gru_training.sentiment.rows import Row, SentimentRows, Target
from gru_training.sentiment.sources.label_problems import (
    class_order,
    label_counts,
    label_names,
    usable_rows,
)

_PARTS = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
"""What a column may call the parts."""
_FEWEST_ROWS = 3
"""Of a class: training, validation and test need one each."""
_NUMBER = "number"


def read_labelled_files(config: SentimentDataConfig, problems: Problems) -> SentimentRows:
    """Read files of labelled texts, and leave out and merge what the settings ask for.

    Args:
        config: The files, their columns, and what to drop or merge.
        problems: Told of all that is wrong with the rows.

    Raises:
        DataError: A file cannot be read, or a label of held-out rows is none of the classes.
    """
    assert config.data is not None
    labels = LabelCells(config.target_type, config.label_columns, config.label_separator)
    rows, labels = _read(config.data, config, labels, problems)
    for path in config.more_data:
        rows += _read(path, config, labels, problems)[0]
    held: dict[str, list[LabelledRow] | None] = {
        name: None if path is None else _read(path, config, labels, problems)[0]
        for name, path in (("validation", config.validation), ("test", config.test))
    }
    if config.part_column is not None:
        rows, held = _by_part(rows, config.part_column, problems)
    name = config.data.name.split(".")[0]
    return _labelled(name, rows, held, labels.kind or "class", config, problems)


def _read(
    path: Path, config: SentimentDataConfig, labels: LabelCells, problems: Problems
) -> tuple[list[LabelledRow], LabelCells]:
    """The rows of one file, which know their place in it, and how their labels are written."""
    first = path == config.data
    found = problems if first else Problems(str(path), config.drop_bad)
    wanted = {"part": config.part_column, "group": config.group_column, "time": config.time_column}
    further = {meaning: column for meaning, column in wanted.items() if column is not None}
    rows, labels = read_text_rows(
        path, config.text_column, config.label_column, found, labels, further, config.text_format
    )
    if config.time_column is not None:
        rows = _with_times(rows, path, config.time_column, found)
    found.close_rows(bool(rows))
    if not first:
        problems.absorb(found)
    unit = found.unit if first else f"{path.name} {found.unit}"
    return [_placed(row, unit) for row in rows], labels


def read_table(table: TextTable, config: SentimentDataConfig, problems: Problems) -> SentimentRows:
    """As `read_labelled_files`, of rows in memory.

    Raises:
        DataError: A label of those parts is none of the classes.
    """

    def usable(part: Sequence[LabelledRow]) -> list[LabelledRow]:
        rows = _with_both(part, problems)
        if config.time_column is not None:
            rows = _with_times(rows, Path(table.name), config.time_column, problems)
        return [_placed(row, "row") for row in rows]

    for note in table.notes:
        problems.note(note)
    rows = usable(table.rows)
    held = {
        name: None if part is None else usable(part)
        for name, part in (("validation", table.validation), ("test", table.test))
    }
    problems.close_rows(bool(rows))
    return _labelled(table.name, rows, held, table.kind, config, problems)


def _labelled(
    name: str,
    rows: list[LabelledRow],
    held: Mapping[str, list[LabelledRow] | None],
    kind: TargetKind,
    config: SentimentDataConfig,
    problems: Problems,
) -> SentimentRows:
    """The rows with the numbers of their classes; `held` has those held out, where any are."""
    given = [part for part in held.values() if part is not None]
    rows = usable_rows(rows, kind, config, problems, _FEWEST_ROWS - len(given))
    classes = (
        (config.label_column or _NUMBER,)
        if kind == "number"
        else tuple(class_order(set(label_counts(rows, kind))))
    )
    validation, test = (
        None if part is None else _of_classes(part, classes, kind)
        for part in (held["validation"], held["test"])
    )
    train = _of_classes(rows, classes, kind)
    return SentimentRows(name, classes, train, validation, test, kind=kind, own=True)


def _placed(row: LabelledRow, unit: str) -> LabelledRow:
    return row._replace(further={**row.further, "place": f"{unit} {row.line}"})


def _by_part(
    rows: Sequence[LabelledRow], column: str, problems: Problems
) -> tuple[list[LabelledRow], dict[str, list[LabelledRow] | None]]:
    """Training rows, and the others by part; None for a part that the column does not name."""
    parts: dict[str, list[LabelledRow]] = defaultdict(list)
    for row in rows:
        name = (row.further.get("part") or "").strip()
        part = _PARTS.get(name.lower())
        if part is None:
            problems.bad_row(
                "part",
                row.line,
                f"expected train, validation or test in column {column!r}, got {name!r:.40}",
            )
        else:
            parts[part].append(row)
    problems.close_rows()
    return parts["train"], {part: parts.get(part) for part in ("validation", "test")}


def _with_times(
    rows: list[LabelledRow], path: Path, column: str, problems: Problems
) -> list[LabelledRow]:
    """The rows whose time can be read: the number that stands there, else seconds since 1970."""
    cells = [(row.further.get("time") or "").strip() for row in rows]
    try:
        numbers = np.array([float(cell) for cell in cells])
    except ValueError:
        lines = [row.line for row in rows]
        from gru_training.data.time_axis import TimeCells, parse_times

        cells_of_file = TimeCells(str(path), column, cells, lines, problems.unit)
        times = parse_times(cells_of_file, None, problems)
        numbers = np.where(np.isnat(times), np.nan, times.astype("M8[s]").astype(np.int64))
    return [
        row._replace(further={**row.further, "time": repr(float(number))})
        for row, number in zip(rows, numbers, strict=True)
        if np.isfinite(number)
    ]


def _with_both(rows: Sequence[LabelledRow], problems: Problems) -> list[LabelledRow]:
    """The rows that have text and label."""
    for row in rows:
        if not row.text.strip():
            problems.bad_row("text", row.line, "the text is empty")
        elif not row.label:
            problems.bad_row("label", row.line, "the label is missing")
    return [row for row in rows if row.text.strip() and row.label]


def _of_classes(
    rows: Sequence[LabelledRow],
    classes: tuple[str, ...],
    kind: TargetKind,
) -> list[Row]:
    """The rows with the numbers of their classes."""
    numbers = {label: number for number, label in enumerate(classes)}
    if kind != "number":
        unknown = set(label_counts(rows, kind)) - set(numbers)
        if unknown:
            what = "classes" if kind == "class" else "labels"
            raise DataError(
                f"validation and test rows: expected the {what} of the training rows, "
                f"{', '.join(map(repr, classes))}; got {', '.join(map(repr, sorted(unknown)))}"
            )

    def target(row: LabelledRow) -> Target:
        if kind == "number":
            return float(row.label)
        found = tuple(numbers[name] for name in label_names(row, kind))
        return found[0] if kind == "class" else found

    return [
        Row(
            row.text,
            target(row),
            row.further.get("group") or None,
            row.further.get("place") or "",
            float(row.further.get("time") or 0),
            float(row.further.get("weight") or 1),
        )
        for row in rows
    ]
