"""The rows from which a text estimator learns: in memory, by path, or built in."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import DataConversionWarning

from gru_training.data.frames import (
    as_frame,
    as_values,
    column_name,
    label_column,
    label_dtype,
    label_kind,
    labelled_rows,
    listed_labels,
    text_column,
    texts_of,
)
from gru_training.data.label_cells import ONE_IN_LISTS, LabelCells, TargetKind, names_in
from gru_training.data.text_files import LabelledRow
from gru_training.data.text_table import TextTable
from gru_training.errors import ConfigError, DataError


@dataclass(frozen=True)
class TextSource:
    """The rows or the settings that a training reads."""

    table: TextTable | None
    """The rows; None if the settings name them."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the data section that follow from the arguments."""


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table; None to find them by their usual names."""

    text: str | None = None
    label: str | list[str] | None = None


class LabelSettings(Protocol):
    """Settings of labels and of the split, from a configuration or an estimator."""

    target_type: Any
    label_separator: str | None
    group_column: str | None
    time_column: str | None


def text_source(
    data: Any,
    labels: Any,
    columns: Columns,
    validation: Any = None,
    test: Any = None,
    settings: LabelSettings | None = None,
    weights: Any = None,
) -> TextSource:
    """Read the arguments of a text estimator's `fit`.

    Args:
        data: A table, texts, the path of a file or folder, or None: those of the preset, else
            made-up reviews.
        labels: One label per text, where they are no column of `data`.
        columns: Columns of a table or file.
        validation: A table, a pair of texts and labels, a share of the rows, or None.
        test: Test rows, given in the same ways.
        settings: How labels are written, and by what rows are split; by default one class each,
            by chance.
        weights: One weight per row of data in memory, in the loss; rows of weight 0 are left out.

    Raises:
        TrainingError: The arguments do not fit together, or a row cannot be used.
    """
    shares = {}
    parts = {}
    for name, part in (("validation", validation), ("test", test)):
        if isinstance(part, int | float):
            shares[f"{name}_fraction"] = float(part)
        elif part is not None:
            parts[name] = part
    if data is None or isinstance(data, str | os.PathLike):
        in_memory = [part for part in parts.values() if not isinstance(part, str | os.PathLike)]
        if labels is not None or in_memory or weights is not None:
            raise ConfigError(
                "y, sample_weight, and rows for validation and test, are for data in memory; of a "
                "file give shares, as validation=0.1, or further files"
            )
        several = isinstance(columns.label, list)
        named: dict[str, Any] = {
            "data": data,
            "text_column": columns.text,
            "label_columns" if several else "label_column": columns.label,
            **parts,
        }
        given = {name: value for name, value in named.items() if value is not None}
        return TextSource(None, {**shares, **given})
    rows, found, types, target, notes = _labelled(data, labels, columns, "data", settings)
    if weights is not None:
        rows = _weighted(rows, row_weights(weights, len(rows)))
    held = {
        name: _labelled(*_pair(part, name), found, name, settings)[0]
        for name, part in parts.items()
    }
    given = {"text": found.text, "label": found.label, **types}
    parts_given = held.get("validation"), held.get("test")
    table = TextTable(rows, *parts_given, kind=target, notes=notes, given=given)
    return TextSource(table, {**shares, "data": None, "text_column": None, "label_column": None})


def row_weights(weights: Any, rows: int) -> np.ndarray:
    """Check the weights of rows, (N,) float64.

    Args:
        weights: Weight of each row, a number from 0.
        rows: Number N of rows.

    Raises:
        DataError: The weights are not N finite numbers from 0, or all are 0.
    """
    values = as_values(weights, "sample_weight")
    try:
        numbers = np.array([np.nan if value is None else value for value in values], np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight: expected numbers, got {error}") from error
    if len(numbers) != rows:
        raise DataError(
            f"sample_weight: expected a weight for each of {rows:,} rows, got {len(numbers):,}"
        )
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        raise DataError(
            f"sample_weight, row {wrong[0]}: expected a finite number from 0, got "
            f"{numbers[wrong[0]]}"
        )
    if rows and not numbers.any():
        raise DataError("sample_weight: expected a weight above zero, got zero for all rows")
    return numbers


def labelled(data: Any, labels: Any, columns: Columns) -> tuple[list[str], list[Any]]:
    """Read texts and their labels from a table, or from separate texts and labels.

    Raises:
        DataError: There is no such column, or a value is no text.
    """
    frame = as_frame(data)
    if labels is not None:
        texts, values = texts_of(data, columns.text), _values_of(labels, "y")
        if len(texts) != len(values):
            raise DataError(
                f"y: expected a label for each of {len(texts):,} texts, got {len(values):,}"
            )
        return texts, values
    if frame is None:
        raise ConfigError("y: expected the labels, or a table with a column of them as data")
    return texts_of(data, columns.text), _label_values(frame, columns.label, "data").values


def _values_of(labels: Any, what: str) -> list[Any]:
    """Read labels given separately: a column, a list, or a table with a column for each label."""
    frame = as_frame(labels)
    if frame is not None and len(frame.columns) > 1:
        return _label_values(frame, list(frame.columns), what).values
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: "
            f"{what}, of shape {labels.shape}; give y.ravel()",
            DataConversionWarning,
            stacklevel=4,
        )
    return as_values(labels, what)


def _weighted(rows: list[LabelledRow], weights: np.ndarray) -> list[LabelledRow]:
    """Select the rows with a weight above zero, and their weights."""
    return [
        row._replace(further={**row.further, "weight": repr(float(weight))})
        for row, weight in zip(rows, weights, strict=True)
        if weight > 0
    ]


class _Labels(NamedTuple):
    """The labels in a table."""

    values: list[Any]
    """One label per row, or a list of labels."""
    column: str | list[str] | None
    """Column or columns that hold the labels."""
    notes: Sequence[str] = ()
    """Notes for a reader on the form of the labels."""


def _label_values(
    frame: Any, wanted: str | list[str] | None, what: str, kind: TargetKind | None = None
) -> _Labels:
    """Read the labels in a table.

    Args:
        frame: The table.
        wanted: Column or columns; None: found by its name.
        what: Name of the table in errors.
        kind: Kind of the labels; None where the rows are to tell it.

    Raises:
        DataError: There is no such column, or a cell cannot be read; names its row.
    """
    if not isinstance(wanted, list):
        column = label_column(frame, wanted, what)
        return _Labels(as_values(frame[column].to_native(), f"labels of {what}"), column)
    cells = {
        name: as_values(frame[label_column(frame, name, what)].to_native(), what) for name in wanted
    }
    shown = zip(
        *([None if v is None else str(v) for v in of] for of in cells.values()), strict=True
    )
    rows = [dict(zip(cells, row, strict=True)) for row in shown]
    nothing = frozenset[str]()
    form = LabelCells(kind, tuple(wanted)).settled([(row, nothing) for row in rows], "")
    values: list[Any] = []
    for number, row in enumerate(rows):
        try:
            label = form.read(row, nothing, "")
            values.append(label if kind == "class" else list(names_in(label)))
        except ValueError as error:
            raise DataError(f"{what}, row {number}: {error}") from error
    return _Labels(values, wanted, form.notes(rows))


def _labelled(
    data: Any, labels: Any, columns: Columns, what: str, settings: LabelSettings | None
) -> tuple[list[LabelledRow], Columns, dict[str, str], TargetKind, Sequence[str]]:
    """Read the rows of a part: rows, columns, types and kind of their labels, and notes."""
    frame = as_frame(data)
    text, label = column_name(data), None
    dtype = label_dtype(labels)
    notes: Sequence[str] = ()
    if frame is not None:
        text = text_column(frame, columns.text, what)
        if labels is None:
            wanted = None if settings is None else settings.target_type
            labels, label, notes = _label_values(frame, columns.label, what, wanted)
            dtype = label_dtype(frame[label].to_native()) if isinstance(label, str) else "O"
    if labels is None:
        raise ConfigError(
            f"{what}: expected a table with a column of labels, or texts and their labels; got "
            f"{type(data).__name__} alone"
        )
    values = _values_of(labels, f"labels of {what}")
    given = as_frame(labels)
    in_columns = isinstance(label, list) or (given is not None and len(given.columns) > 1)
    target, separator, said = _target(values, settings, in_columns)
    if target == "class":
        _require_classes(values, what)
    rows = labelled_rows(texts_of(data, text, what), values, what, target, separator)
    further = {
        meaning: name
        for meaning in ("group", "time")
        if settings is not None and (name := getattr(settings, f"{meaning}_column")) is not None
    }
    if further:
        rows = _with_cells(rows, frame, further, what)
    kind = "text" if target == "labels" else label_kind(values)
    described = {"labels": kind, "dtype": dtype}
    return rows, Columns(text, label), described, target, (*notes, *said)


def _require_classes(values: list[Any], what: str) -> None:
    """Raise DataError for measured numbers that are given as classes."""
    broken = [each for each in values if isinstance(each, float) and not each.is_integer()]
    if broken and len(set(values)) > len(values) / 2:
        raise DataError(
            f"labels of {what}: expected classes, got continuous numbers such as {broken[0]}; "
            "TextRegressor estimates numbers"
        )


def _target(
    values: list[Any], settings: LabelSettings | None, in_columns: bool
) -> tuple[TargetKind, str | None, tuple[str, ...]]:
    """Determine the kind of labels, the separator of several in one text, and notes."""
    wanted = None if settings is None else settings.target_type
    separator = None if settings is None else settings.label_separator
    if wanted is not None:
        return wanted, separator, ()
    if separator or in_columns:
        return "labels", separator, ()
    lists = [names for value in values if (names := listed_labels(value)) is not None]
    if len(lists) <= len(values) / 2:
        return "class", separator, ()
    if any(len(names) != 1 for names in lists):
        return "labels", separator, ()
    return "class", separator, (ONE_IN_LISTS,)


def _with_cells(
    rows: list[LabelledRow], frame: Any, further: dict[str, str], what: str
) -> list[LabelledRow]:
    """Add the cells of other columns to the rows."""
    if frame is None:
        raise ConfigError(
            f"{what}: expected a table, with the column {next(iter(further.values()))!r}"
        )
    cells = {}
    for meaning, name in further.items():
        if name not in frame.columns:
            raise ConfigError(f"{what} has no column {name!r}; its columns are {frame.columns}")
        cells[meaning] = [
            None if value is None else str(value)
            for value in as_values(frame[name].to_native(), what)
        ]
    return [
        row._replace(further={meaning: values[number] for meaning, values in cells.items()})
        for number, row in enumerate(rows)
    ]


def _pair(part: Any, what: str) -> tuple[Any, Any]:
    if isinstance(part, tuple):
        if len(part) != 2:
            raise ConfigError(f"{what}: expected texts and labels, got {len(part)} values")
        return part
    return part, None
