"""The answer columns of a text model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gru_training.scoring.scorer import RowError
from gru_training.tables.arrow_array import arrow_array


def text_column(column: pa.Array) -> pa.Array:
    """Return the texts as `large_string`: missing ones empty, whole numbers as digits.

    Raises:
        RowError: The column holds no texts.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise RowError(0, "text", f"expected texts, got {kind}")
    texts = column.cast(pa.large_string())
    return texts.fill_null("") if texts.null_count else texts  # to fill it loads pandas


BOUNDS = ("lower_95", "lower_80", "upper_80", "upper_95")
"""Names of the bounds of a number's intervals."""
_ANSWER_COLUMNS = ("label", "labels", "probability")
Outputs = Mapping[str, np.ndarray]


def class_columns(classes: Sequence[str]) -> list[str]:
    """Name the columns of the classes' probabilities: as the classes, unless the name is taken.

    A class that is called label, labels or probability gets `class_` before its name.
    """
    taken = {*_ANSWER_COLUMNS, *classes}
    columns = []
    for name in classes:
        column = name
        while name in _ANSWER_COLUMNS and column in taken:
            column = f"class_{column}"
        taken.add(column)
        columns.append(column)
    return columns


class AnswerColumns:
    """The conversion of a text model's outputs to columns of a table.

    Args:
        schema: Schema of the columns.
        values: Function from outputs by name to the values of each column.
    """

    def __init__(self, schema: pa.Schema, values: Callable[[Outputs], Sequence[Any]]):
        self.schema, self._values = schema, values

    def batch(self, outputs: Outputs) -> pa.RecordBatch:
        """Convert the rows of outputs (B, ...)."""
        columns = [
            arrow_array(values, field.type)
            for values, field in zip(self._values(outputs), self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def answer_columns(kind: str, classes: Sequence[str]) -> AnswerColumns:
    """Return the columns for one kind of target.

    Args:
        kind: `class`: `label`, `probability`, and one of each class; `labels`: a list of those
            that apply, and one of each label; `number`: `value` and the bounds of its intervals.
        classes: Names of the C classes or labels.
    """
    numbers = [(name, pa.float32()) for name in class_columns(classes)]
    if kind == "labels":
        return AnswerColumns(
            pa.schema([("labels", pa.list_(pa.string())), *numbers]),
            lambda outputs: [names_of(outputs["labels"]), *outputs["scores"].T],
        )
    if kind == "number":
        return AnswerColumns(
            pa.schema([(name, pa.float32()) for name in ("value", *BOUNDS)]),
            lambda outputs: [outputs["value"], *outputs["quantiles"].T],
        )
    return AnswerColumns(
        pa.schema([("label", pa.string()), ("probability", pa.float32()), *numbers]),
        lambda outputs: [
            [label.decode("utf-8", "replace") for label in outputs["label"]],
            outputs["probability"],
            *outputs["scores"].T,
        ],
    )


def names_of(labels: np.ndarray) -> list[list[str]]:
    """List the labels of each row (B, C) of bytes, of which empty ones are padding."""
    return [[name.decode("utf-8", "replace") for name in row if name] for row in labels]
