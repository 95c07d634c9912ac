"""The quantities that are watched in requests and answers: a number or a name for every row.

Read off the tensors, so that one rule holds for every task:

=============================  ==================================================================
text (B,)                      number of words, share of unknown words
series (B, T, C)               of each column level and spread (mean and standard deviation over
                               the steps), and the share of values that are missing
answer (B,) of texts           the name itself
answer (B, C) of texts         how many there are, and the first
answer (B,) of numbers         the number
`scores` (B, C)                the highest
forecast (B, H, K)             of each column the level
=============================  ==================================================================
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gru_serving.drift.text_reader import TextReader

COLUMNS = 30
"""Number of columns that are watched individually; further columns of wider series are not
watched.
"""
SCORES = "scores"
_EXCLUDED_OUTPUTS = frozenset({"probability", "timestamp", "thresholds"})
_NAMES_OF = {"history": "columns", "future": "future_columns", "forecast": "forecast_columns"}

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Rows:
    """The watched quantities of some rows.

    Attributes:
        numbers: Values of each quantity, (B,), NaN where a row has none; by quantity name.
        names: Name of each row, B of them, by quantity name.
        texts: The texts themselves; empty where rows are series.
        said: Names answered to each row, one or several; empty where no names are answered.
    """

    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    texts: Sequence[str] = ()
    said: Sequence[tuple[str, ...]] = ()

    def __len__(self) -> int:
        return max(map(len, (*self.numbers.values(), *self.names.values())), default=0)


class Quantities:
    """Reads the watched quantities of rows.

    Args:
        reader: Reader of texts with the version's words.
        columns: Names of the columns of series, by the name of the tensor; numbers without.
    """

    def __init__(
        self, reader: TextReader, columns: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._reader, self._columns = reader, columns or {}

    def __call__(self, inputs: Arrays, outputs: Arrays) -> Rows:
        """Read the quantities of a request and its answer; tensors of other forms are ignored."""
        numbers: dict[str, np.ndarray] = {}
        names: dict[str, Sequence[str]] = {}
        texts: list[str] = []
        said: list[tuple[str, ...]] = []
        for name, array in inputs.items():
            if array.dtype == object and array.ndim == 1 and name not in _EXCLUDED_OUTPUTS:
                texts = [_text(value) for value in array]
                counts, unknown = self._reader(list(array))
                numbers[f"{name}: words"] = counts
                if unknown is not None:
                    numbers[f"{name}: unknown words"] = unknown
            elif array.dtype != object and array.ndim == 3:
                numbers |= self._of_series(name, array, inputs)
        rows = {len(array) for array in inputs.values() if array.ndim}
        for name, array in outputs.items():
            if name in _EXCLUDED_OUTPUTS or not array.ndim or {len(array)} != rows:
                continue  # not one for each row
            if array.dtype == object:
                numbers |= _counted(name, array)
                named = _named(name, array)
                names |= named
                if named and not said:
                    # One answer, or several followed by empty texts.
                    said = [tuple(_text(v) for v in np.atleast_1d(row) if v) for row in array]
            elif array.ndim == 1:
                numbers[name] = array.astype(float)
            elif array.ndim == 2 and name == SCORES and array.shape[1]:
                numbers[f"{name}: highest"] = array.max(axis=1).astype(float)
            elif array.ndim == 3 and name in _NAMES_OF:
                for column, values in self._by_column(name, array, inputs):
                    numbers[f"{name} of {column}"] = _mean(values)
        return Rows(numbers, names, texts, said)

    def _of_series(self, name: str, array: np.ndarray, inputs: Arrays) -> dict[str, np.ndarray]:
        found = {f"{name}: missing values": np.isnan(array).mean(axis=(1, 2))}
        for column, values in self._by_column(name, array, inputs):
            level = _mean(values)
            found[f"{name} of {column}: level"] = level
            found[f"{name} of {column}: spread"] = np.sqrt(_mean((values - level[:, None]) ** 2))
        return found

    def _by_column(
        self, name: str, array: np.ndarray, inputs: Arrays
    ) -> Iterable[tuple[str, np.ndarray]]:
        """Yield the name and the values (B, T) as float64 of each of the first columns."""
        given = inputs.get(_NAMES_OF.get(name, ""))
        known = self._columns.get(name, ())
        if given is not None and given.ndim == 2 and len(given):
            known = [_text(value) for value in given[0]]  # a request that names its columns
        for place in range(min(array.shape[2], COLUMNS)):
            called = known[place] if len(known) == array.shape[2] else str(place)
            if called:  # a column without a name is one that the model does not know
                yield called, array[:, :, place].astype(float)


def _mean(values: np.ndarray) -> np.ndarray:
    """Average (B, T) over the steps that are not NaN, (B,); NaN for rows without any."""
    there = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(there, values, 0).sum(axis=1) / there.sum(axis=1))


def _counted(name: str, array: np.ndarray) -> dict[str, np.ndarray]:
    if array.ndim != 2:
        return {}
    return {f"{name}: how many": np.array([sum(map(bool, row)) for row in array], float)}


def _named(name: str, array: np.ndarray) -> dict[str, Sequence[str]]:
    if array.ndim == 1:
        return {name: [_text(value) for value in array]}
    if array.ndim == 2 and array.shape[1]:
        return {f"{name}: first": [_text(row[0]) for row in array]}
    return {}


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
