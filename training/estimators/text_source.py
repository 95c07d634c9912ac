"""The rows that a text classifier is given to learn from: in memory, by path, or built in."""

import os
from dataclasses import dataclass, field
from typing import Any

from training.data.frames import (
    as_frame,
    as_values,
    column_name,
    label_column,
    label_kind,
    labelled_rows,
    text_column,
    texts_of,
)
from training.data.text_files import LabelledRow
from training.data.text_table import TextTable
from training.errors import ConfigError


@dataclass(frozen=True)
class TextSource:
    """What a training reads."""

    table: TextTable | None
    """The rows; None where the settings name them."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the data section, those that follow from the arguments."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are meant; None: found by their names."""

    text: str | None = None
    label: str | None = None


def text_source(
    data: Any, labels: Any, columns: Columns, validation: Any = None, test: Any = None
) -> TextSource:
    """What the arguments of a classifier's `fit` mean.

    Args:
        data: A table, texts, the path of a file or folder, or None: those of the preset, else
            made-up reviews.
        labels: Of texts.
        columns: Of a table or file.
        validation: A table, a pair of texts and labels, a share of the rows, or None.
        test: Likewise.

    Raises:
        TrainingError: They do not fit together, or a row cannot be used.
    """
    shares = {}
    parts = {}
    for name, part in (("validation", validation), ("test", test)):
        if isinstance(part, int | float):
            shares[f"{name}_fraction"] = float(part)
        elif part is not None:
            parts[name] = part
    if data is None or isinstance(data, str | os.PathLike):
        if labels is not None or parts:
            raise ConfigError(
                "y, and rows for validation and test, are for data in memory; of a file give "
                "shares, as validation=0.1"
            )
        named: dict[str, Any] = {
            "data": data,
            "text_column": columns.text,
            "label_column": columns.label,
        }
        given = {name: value for name, value in named.items() if value is not None}
        return TextSource(None, {**shares, **given})
    rows, found, kind = _labelled(data, labels, columns, "data")
    held = {name: _labelled(*_pair(part, name), found, name)[0] for name, part in parts.items()}
    given = {"text": found.text, "label": found.label, "labels": kind}
    table = TextTable(rows, held.get("validation"), held.get("test"), given=given)
    return TextSource(table, {**shares, "data": None, "text_column": None, "label_column": None})


def labelled(data: Any, labels: Any, columns: Columns) -> tuple[list[str], list[Any]]:
    """Texts and their labels, of a table, or of texts and labels apart.

    Raises:
        DataError: There is no such column, or a value is no text.
    """
    frame = as_frame(data)
    if labels is not None:
        return texts_of(data, columns.text), as_values(labels, "y")
    if frame is None:
        raise ConfigError("y: expected the labels, or a table with a column of them as data")
    column = label_column(frame, columns.label, "data")
    return texts_of(data, columns.text), as_values(frame[column].to_native(), "data")


def _labelled(
    data: Any, labels: Any, columns: Columns, what: str
) -> tuple[list[LabelledRow], Columns, str]:
    """The rows of a part, the columns they come from and the kind of their labels."""
    frame = as_frame(data)
    text, label = column_name(data), None
    if frame is not None:
        text = text_column(frame, columns.text, what)
        if labels is None:
            label = label_column(frame, columns.label, what)
            labels = frame[label].to_native()
    if labels is None:
        raise ConfigError(
            f"{what}: expected a table with a column of labels, or texts and their labels; got "
            f"{type(data).__name__} alone"
        )
    values = as_values(labels, f"labels of {what}")
    rows = labelled_rows(texts_of(data, text, what), values, what)
    return rows, Columns(text, label), label_kind(values)


def _pair(part: Any, what: str) -> tuple[Any, Any]:
    if isinstance(part, tuple):
        if len(part) != 2:
            raise ConfigError(f"{what}: expected texts and labels, got {len(part)} values")
        return part
    return part, None
