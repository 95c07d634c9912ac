"""The rows from which a text estimator learns: in memory, by path, or built in."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import DataConversionWarning

from gru_training.data.frames import (
    as_frame,
    as_values,
    column_name,
    label_column,
    label_dtype,
    label_kind,
    label_names,
    listed_labels,
    text_column,
    texts_of,
)
from gru_training.data.label_cells import ONE_IN_LISTS, LabelCells, TargetKind
from gru_training.data.text_files import LabelledRow, TextTable
from gru_training.errors import ConfigError, DataError
from gru_training.sentiment.config import SentimentDataConfig


@dataclass(frozen=True)
class TextSource:
    """The rows or the settings that a training reads."""

    table: TextTable | None
    """The rows; None if the settings name them."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the data section that follow from the arguments."""


def text_source(
    data: Any,
    y: Any = None,
    settings: Any = SentimentDataConfig(),  # noqa: B008  it is frozen
    *,
    text: str | None = None,
    label: str | list[str] | None = None,
    sample_weight: Any = None,
    validation: Any = None,
    test: Any = None,
) -> TextSource:
    """Read the arguments of a text estimator's `fit`.

    Args:
        data: A table, texts, the path of a file or folder, or None: those of the preset, else
            made-up reviews.
        y: One label per text, where they are no column of `data`.
        settings: Settings with `target_type`, `label_separator`, `group_column` and `time_column`,
            of a training or an estimator.
        text: Column of texts; None: found by its name.
        label: Column or columns of labels; None: found by its name.
        sample_weight: One weight per row of data in memory, in the loss; rows of weight 0 are left
            out.
        validation: A table, a pair of texts and labels, a share of the rows, or None.
        test: Test rows, given in the same ways.

    Raises:
        TrainingError: The arguments do not fit together, or a row cannot be used.
    """
    held_out = {"validation": validation, "test": test}
    shares = {
        f"{name}_fraction": float(part)
        for name, part in held_out.items()
        if isinstance(part, int | float)
    }
    parts = {
        name: part
        for name, part in held_out.items()
        if part is not None and f"{name}_fraction" not in shares
    }
    if data is None or isinstance(data, str | os.PathLike):
        in_memory = [part for part in parts.values() if not isinstance(part, str | os.PathLike)]
        if y is not None or in_memory or sample_weight is not None:
            raise ConfigError(
                "y, sample_weight, and rows for validation and test, are for data in memory; of a "
                "file give shares, as validation=0.1, or further files"
            )
        named: dict[str, Any] = {
            "data": data,
            "text_column": text,
            "label_columns" if isinstance(label, list) else "label_column": label,
            **parts,
        }
        given = {name: value for name, value in named.items() if value is not None}
        return TextSource(None, {**shares, **given})
    table = _table(data, y, text, label, "data", settings)
    if sample_weight is not None:
        weights = row_weights(sample_weight, len(table.rows))
        table = replace(table, rows=_weighted(table.rows, weights))
    columns = table.given["text"], table.given["label"]
    held: dict[str, Any] = {
        name: _table(*_pair(part, name), *columns, name, settings).rows
        for name, part in parts.items()
    }
    named = {"data": None, "text_column": None, "label_column": None}
    return TextSource(replace(table, **held), {**shares, **named})


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


def labelled(
    data: Any, y: Any, text: str | None, label: str | list[str] | None
) -> tuple[list[str], list[Any]]:
    """Read texts and their labels from a table, or from separate texts and labels.

    Args:
        data: Table or texts.
        y: One label per text, where they are no column of `data`.
        text: Column of texts; None: found by its name.
        label: Column or columns of labels; None: found by its name.

    Raises:
        DataError: There is no such column, or a value is no text.
    """
    frame = as_frame(data)
    if y is None and frame is None:
        raise ConfigError("y: expected the labels, or a table with a column of them as data")
    texts = texts_of(data, text)
    if y is None:
        return texts, _label_values(frame, label, "data").values
    values = _values_of(y, "y").values
    _require_pairs(texts, values, "y")
    return texts, values


def _require_pairs(texts: Sequence[str], labels: Sequence[Any], what: str) -> None:
    if len(texts) != len(labels):
        raise DataError(
            f"{what}: expected a label for each of {len(texts):,} texts, got {len(labels):,}"
        )


def _values_of(labels: Any, what: str, kind: TargetKind | None = None) -> "_Labels":
    """Read labels given separately: a column, a list, or a table with a column for each label."""
    frame = as_frame(labels)
    if frame is not None and len(frame.columns) > 1:
        return _label_values(frame, list(frame.columns), what, kind)
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: "
            f"{what}, of shape {labels.shape}; give y.ravel()",
            DataConversionWarning,
            stacklevel=4,
        )
    return _Labels(as_values(labels, what), None)


def _weighted(rows: Sequence[LabelledRow], weights: np.ndarray) -> list[LabelledRow]:
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
    """Read the labels in the wanted column or columns, or in one found by its name.

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
            names = form.read(row, nothing, "")
            values.append(names[0] if kind == "class" else list(names))
        except ValueError as error:
            raise DataError(f"{what}, row {number}: {error}") from error
    return _Labels(values, wanted, form.notes(rows))


def _table(
    data: Any, labels: Any, text: str | None, label: Any, what: str, settings: Any
) -> TextTable:
    """Read the rows of a part, and describe their columns and labels as `given`."""
    frame, notes = as_frame(data), list[str]()
    dtype, column, label_of = label_dtype(labels), column_name(data), None
    if frame is not None:
        column = text_column(frame, text, what)
        if labels is None:
            labels, label_of, said = _label_values(frame, label, what, settings.target_type)
            notes += said
            dtype = label_dtype(frame[label_of].to_native()) if isinstance(label_of, str) else "O"
    if labels is None:
        raise ConfigError(
            f"{what}: expected a table with a column of labels, or texts and their labels; got "
            f"{type(data).__name__} alone"
        )
    values, columns, said = _values_of(labels, f"labels of {what}", settings.target_type)
    kind, remarks = _target(values, settings, isinstance(columns or label_of, list))
    notes += [*said, *remarks]
    if kind == "class":
        _require_classes(values, what)
    texts, separator = texts_of(data, column, what), settings.label_separator
    _require_pairs(texts, values, what)
    rows = [
        LabelledRow(text, label_names(value, kind, separator), row)
        for row, (text, value) in enumerate(zip(texts, values, strict=True))
    ]
    beside = {"group": settings.group_column, "time": settings.time_column}
    if further := {meaning: name for meaning, name in beside.items() if name is not None}:
        rows = _with_cells(rows, frame, further, what)
    known = {
        "text": column,
        "label": label_of,
        "labels": "text" if kind == "labels" else label_kind(values),
        "dtype": dtype,
    }
    return TextTable(rows, kind=kind, notes=notes, given=known)


def _require_classes(values: list[Any], what: str) -> None:
    """Raise DataError for measured numbers that are given as classes."""
    broken = [each for each in values if isinstance(each, float) and not each.is_integer()]
    if broken and len(set(values)) > len(values) / 2:
        raise DataError(
            f"labels of {what}: expected classes, got continuous numbers such as {broken[0]}; "
            "TextRegressor estimates numbers"
        )


def _target(
    values: list[Any], settings: Any, in_columns: bool
) -> tuple[TargetKind, tuple[str, ...]]:
    """Determine the kind of labels, and notes."""
    if settings.target_type is not None:
        return settings.target_type, ()
    if settings.label_separator or in_columns:
        return "labels", ()
    lists = [names for value in values if (names := listed_labels(value)) is not None]
    if len(lists) <= len(values) / 2:
        return "class", ()
    if any(len(names) != 1 for names in lists):
        return "labels", ()
    return "class", (ONE_IN_LISTS,)


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
