"""What happens to a request before a graph of ONNX: checks, and texts that become numbers.

A manifest lists the steps of each signature; each reads values by name and adds one. Their errors
are those that the same checks in the SavedModel's graph give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gru_serving.engine.native.column_names import ColumnNames
from gru_serving.engine.native.example_feature import text_feature
from gru_serving.engine.native.refusals import failed, shape_text
from gru_serving.errors import InvalidArgument
from gru_training.words.text_reader import Tokenizer, Words, padded, shown

Values = dict[str, Any]
Step = Callable[[Values], None]


class Steps:
    """The steps of the signatures of one version.

    Args:
        folder: Where the files are that they name.
    """

    def __init__(self, folder: Path) -> None:
        # Signatures that read the same words share them in memory.
        self._tokenizer = cache(lambda name: Tokenizer.read(folder / name))
        self._words = cache(lambda name: Words.read(folder / name))

    def compile(self, steps: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
        """The steps, ready to be done.

        Raises:
            InvalidArgument: One is of a kind that this release does not know, or lacks something.
        """
        return tuple(self._compiled(step) for step in steps)

    def _compiled(self, step: Mapping[str, Any]) -> Step:
        make = getattr(self, f"_{step.get('do')}", None)
        try:
            if make is None:
                raise InvalidArgument(f"unknown step {step.get('do')!r}")
            made: Step = make(step)
        except (KeyError, ValueError, TypeError) as error:
            raise InvalidArgument(f"step {step.get('do')!r}: {error!r}") from None
        return made

    def _parse_example(self, step: Mapping[str, Any]) -> Step:
        source, feature, target = step["from"], step["feature"], step["to"]

        def parse(values: Values) -> None:
            examples = values[source]
            if examples.ndim > 1:
                raise InvalidArgument(
                    "Expected serialized to be a scalar or vector, got shape: "
                    f"{shape_text(examples)}"
                )
            values[target] = text_feature(_vector(examples), feature)

        return parse

    def _tokenize(self, step: Mapping[str, Any]) -> Step:
        source, last, target = step["from"], step["last"], step["to"]
        tokens = self._tokenizer(step["by"])

        def tokenize(values: Values) -> None:
            rows = [tokens(text) for text in _vector(values[source]).tolist()]
            values[target] = [row[-last:] for row in rows] if last else rows

        return tokenize

    def _look_up(self, step: Mapping[str, Any]) -> Step:
        source, target, words = step["from"], step["to"], self._words(step["in"])

        def look_up(values: Values) -> None:
            values[target] = words.look_up(values[source])

        return look_up

    def _pad_tokens(self, step: Mapping[str, Any]) -> Step:
        source, target, mark = step["from"], step["to"], step.get("without", "")

        def pad(values: Values) -> None:
            values[target] = padded(
                [[shown(token, mark) for token in row] for row in values[source]]
            )

        return pad

    def _require_shape(self, step: Mapping[str, Any]) -> Step:
        name, sizes = step["of"], step["sizes"]
        shown = ", ".join("?" if size is None else str(size) for size in sizes)
        rank, last = len(sizes), sizes[-1]

        def require(values: Values) -> None:
            shape = values[name].shape
            if len(shape) != rank or (last is not None and shape[-1] != last):
                got = ", ".join(map(str, shape))
                raise failed(f"{name}: expected shape [{shown}], got [{got}]")

        return require

    def _find_columns(self, step: Mapping[str, Any]) -> Step:
        source, columns = step["from"], _columns(step)

        def find(values: Values) -> None:
            values.update(columns.places(values[source]))

        return find

    def _order_columns(self, step: Mapping[str, Any]) -> Step:
        name, by, columns = step["of"], step["by"], _columns(step)

        def order(values: Values) -> None:
            values[name] = columns.ordered(values[name], values[by])

        return order

    def _require_some(self, step: Mapping[str, Any]) -> Step:
        name = step["of"]

        def require(values: Values) -> None:
            empty = np.isnan(values[name]).all(axis=1)
            if empty.any():
                raise failed(f"{name}: row {empty.argmax()} has no value; expected at least one")

        return require

    def _require_steps(self, step: Mapping[str, Any]) -> Step:
        name, least = step["of"], step["least"]

        def require(values: Values) -> None:
            length = values[name].shape[1]
            if length < least:
                raise failed(f"{name}: expected at least {least} steps, got {length}")

        return require

    def _require_finite(self, step: Mapping[str, Any]) -> Step:
        name = step["of"]

        def require(values: Values) -> None:
            if not _is_whole(values[name]) and np.isinf(values[name]).any():
                raise failed(f"{name}: expected finite numbers, or NaN where missing, got infinity")

        return require

    def _require_values(self, step: Mapping[str, Any]) -> Step:
        name, last, columns, names = step["of"], step["last"], step["columns"], step["names"]

        def require(values: Values) -> None:
            history = values[name]
            if _is_whole(history):
                return
            read = history[:, -last:] if last else history
            empty = np.isnan(read).all(axis=1)[:, columns]
            if empty.any():
                row, column = np.argwhere(empty)[0]
                raise failed(
                    f"{name}: row {row} has no value of column {names[column]} in the steps "
                    f"read, the last {read.shape[1]}; expected at least one that is not NaN"
                )

        return require


def _columns(step: Mapping[str, Any]) -> ColumnNames:
    return ColumnNames(step["columns"], step["targets"], step["read"])


def _is_whole(array: np.ndarray) -> bool:
    """Whether there are values, and all are finite; faster than masks of those that are not."""
    return (
        array.size > 0
        and math.isfinite(np.maximum.reduce(array, axis=None))
        and math.isfinite(np.minimum.reduce(array, axis=None))
    )


def _vector(array: np.ndarray) -> np.ndarray:
    if array.ndim != 1:
        raise InvalidArgument(f"input must be a vector, got shape: {shape_text(array)}")
    return array
