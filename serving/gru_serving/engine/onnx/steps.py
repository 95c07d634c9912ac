"""The steps of a request before a graph of ONNX: checks, and texts that become numbers.

A manifest lists the steps of each signature; each reads values by name and adds one. Their errors
are those that the same checks in the SavedModel's graph give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from gru_serving.errors import InvalidArgument
from gru_serving.protos.example_pb2 import Example
from gru_training.words.text_reader import Tokenizer, Words, padded, shown


def failed(message: str) -> InvalidArgument:
    """Make the error of a failed Assert of TensorFlow."""
    return InvalidArgument(f"assertion failed: [{message}]")


def shape_text(array: np.ndarray) -> str:
    """A shape as in `[2,3]`."""
    return f"[{','.join(map(str, array.shape))}]"


_KINDS = {"float_list": "float", "int64_list": "int64"}


def text_feature(examples: np.ndarray, name: str) -> np.ndarray:
    """The feature of each example, (B,) `bytes` objects.

    Args:
        examples: (B,) serialized tf.Examples.
        name: Name of a feature that holds exactly one string.

    Raises:
        InvalidArgument: An example cannot be read, or its feature is missing, of another type or
            not one string; the message is TensorFlow's.
    """
    texts = np.empty(len(examples), object)
    for place, serialized in enumerate(examples.tolist()):
        texts[place] = _text(serialized, name, place)
    return texts


def _text(serialized: bytes, name: str, place: int) -> bytes:
    try:
        example = Example.FromString(serialized)
    except DecodeError:
        raise _unreadable(serialized) from None
    found = name in example.features.feature and example.features.feature[name]
    kind = found.WhichOneof("kind") if found else None
    where = f"Name: <unknown>, Key: {name}, Index: {place}. "
    if not found or kind is None:
        raise InvalidArgument(
            f"Name: <unknown>, Feature: {name} (data type: string) is required but could not be "
            "found."
        )
    if kind != "bytes_list":
        raise InvalidArgument(
            f"{where} Data types don't match. Data type: {_KINDS[kind]} but expected type: string"
        )
    values = found.bytes_list.value
    if not values:
        raise InvalidArgument(
            f"{where} Number of bytes values != expected.  Values size: 0 but output shape: []"
        )
    if len(values) > 1:
        raise InvalidArgument(f"{where} Can't parse serialized Example.")
    return bytes(values[0])


def _unreadable(serialized: bytes) -> InvalidArgument:
    said = b"Could not parse example input, value: '" + serialized + b"'"
    try:
        return InvalidArgument(said.partition(b"\0")[0].decode())
    except UnicodeDecodeError as error:
        return InvalidArgument(f"the graph refused its input: {error}")


class ColumnNames:
    """The counterpart of `gru_training.forecasting.export.inputs.ColumnNames`, with its messages.

    B rows, N names that a caller has, C columns of the model, K that it forecasts.

    Args:
        columns: The C names in the order of the model's `history`.
        targets: The K column numbers that are forecast.
        read: Numbers of the columns without which there is no forecast.
    """

    def __init__(self, columns: Sequence[str], targets: Sequence[int], read: Sequence[int]) -> None:
        self._columns, self._targets, self._read = tuple(columns), tuple(targets), sorted(read)
        self._numbers = {name.encode(): number for number, name in enumerate(columns)}

    def places(self, names: np.ndarray) -> dict[str, np.ndarray]:
        """Return what to send, for a caller that has columns of these names (B, N).

        Returns:
            `columns` (B, C), `place` (B, C) int32, `needed` (B, C) int32, and `forecast_columns`
            (B, K).
        """
        rows = len(names)
        needed = np.isin(np.arange(len(self._columns)), self._read).astype(np.int32)
        return {
            "columns": np.tile(self._encoded, (rows, 1)),
            "place": self._places(names)[0],
            "needed": np.tile(needed, (rows, 1)),
            "forecast_columns": np.tile(self._encoded[list(self._targets)], (rows, 1)),
        }

    def ordered(self, history: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The history (B, T, C) as the model reads it, of one (B, T, N) with these columns (B, N).

        Raises:
            InvalidArgument: The columns are not as many as those of the history, or one is there
                twice, or one is missing that is read.
        """
        width, named = history.shape[2], columns.shape[1]
        if width != named:
            raise failed(
                f"columns: expected a name for each of the {width} columns of history, got {named}"
            )
        if len(columns) != len(history):
            raise InvalidArgument(
                f"columns: expected {len(history)} rows, as history has, got {len(columns)}"
            )
        place, twice = self._places(columns)
        if twice is not None:
            raise failed(f"columns: expected each name once, got {self._columns[twice]} again")
        read = self._read
        if (place[:, read] < 0).any():
            row, column = np.argwhere(place[:, read] < 0)[0]
            expected = ", ".join(self._columns[number] for number in read)
            got = b", ".join(columns[row].tolist()).decode("utf-8", "replace")
            raise failed(
                f"columns: row {row} has no column {self._columns[read[column]]}; expected "
                f"{expected}, got {got}"
            )
        at = np.maximum(place, 0)[:, np.newaxis]
        picked = np.take_along_axis(history, at, axis=2)
        nan = np.asarray(np.nan, history.dtype)
        return np.where(place[:, np.newaxis] >= 0, picked, nan)

    @cached_property
    def _encoded(self) -> Any:
        encoded = np.empty(len(self._columns), object)
        encoded[:] = [name.encode() for name in self._columns]
        return encoded

    def _places(self, names: np.ndarray) -> tuple[Any, int | None]:
        """Find each column, (B, C) int32, -1 where it is missing; also one that is there twice."""
        place = np.full((len(names), len(self._columns)), -1, np.int32)
        twice: int | None = None
        for at, row in zip(place, names.tolist(), strict=True):
            repeated = []
            for position, name in enumerate(row):
                number = self._numbers.get(name)
                if number is None:
                    continue
                if at[number] >= 0:
                    repeated.append(number)
                else:
                    at[number] = position
            if repeated and twice is None:
                twice = min(repeated)
        return place, twice


Values = dict[str, Any]
Step = Callable[[Values], None]


class Steps:
    """The steps of the signatures of one version.

    Args:
        folder: Folder of the files that they name.
    """

    def __init__(self, folder: Path) -> None:
        # Signatures that read the same words share them in memory.
        self._tokenizer = cache(lambda name: Tokenizer.read(folder / name))
        self._words = cache(lambda name: Words.read(folder / name))

    def compile(self, steps: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
        """The steps, ready to be done.

        Raises:
            InvalidArgument: A step is of a kind unknown to this release, or lacks something.
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
