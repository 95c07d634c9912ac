"""The texts that a text model reads, and the columns of its answers."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gru_serving.preprocessing.texts import PADDING
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


class TokenizedTexts:
    """N texts as word ids.

    Args:
        answers: The model, from word ids (B, T) int32, padded with 0, to B rows of answers.
        parts: Function that gives word ids (sum of lengths,) int32 and lengths (n,) int64 of
            consecutive texts.
    """

    def __init__(
        self,
        answers: Callable[[np.ndarray], pa.RecordBatch],
        parts: Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]],
    ):
        self._answers, self._parts = answers, parts

    @functools.cached_property
    def _ids(self) -> tuple[np.ndarray, np.ndarray]:
        """All word ids, (sum of lengths,) int32, and the lengths, (N,) int64."""
        flat, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for ids, counts in self._parts():
            flat.append(ids)
            lengths.append(counts)
        return np.concatenate(flat), np.concatenate(lengths)

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        """The position in the ids at which each text begins, (N,)."""
        starts: np.ndarray = np.cumsum(self.lengths) - self.lengths
        return starts

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each text, (N,) int64."""
        lengths: np.ndarray = self._ids[1]
        return lengths

    def answer(self, rows: np.ndarray) -> pa.RecordBatch:
        """Return the labels of some of the texts."""
        lengths = self.lengths[rows]
        padded = np.full((len(rows), max(1, lengths.max())), PADDING, np.int32)  # (B, T)
        steps = np.arange(padded.shape[1])
        there = steps < lengths[:, np.newaxis]
        padded[there] = self._ids[0][(self._starts[rows][:, np.newaxis] + steps)[there]]
        return self._answers(padded)


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
            that apply, and one of each label; `number`: `value` and the bounds of its intervals;
            `likelihood`, of a language model: its logarithm, that of the end, tokens, perplexity.
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
    if kind == "likelihood":
        floats = ("log_likelihood", "end_log_probability")
        schema = [*((name, pa.float32()) for name in floats), ("tokens", pa.int32())]
        return AnswerColumns(
            pa.schema([*schema, ("perplexity", pa.float32())]),
            lambda outputs: [
                *(outputs[name] for name in floats),
                outputs["length"],
                np.exp(-sum(outputs[name] for name in floats) / (outputs["length"] + 1)),
            ],
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
