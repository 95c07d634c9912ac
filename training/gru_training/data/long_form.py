"""Tables in long form: a row for each series and time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gru_training.data.problems import Problems
from gru_training.errors import DataError, ForeignDataError

ID_COLUMNS = ("unique_id", "series_id", "item_id")
_SERIES_SHOWN = 8
_MAX_REPEATED = 0.3
"""Share of rows with series and time of another from which these are not taken for errors."""
VALUE_COLUMNS = ("y", "value", "target", "sales", "quantity", "demand")


@dataclass(frozen=True)
class LongColumns:
    """Columns of a table in long form; None to find them by their names."""

    id: str | None = None
    value: str | None = None
    inputs: tuple[str, ...] = ()
    """Names of the inputs of each series to read beside its values."""
    valued: bool = True
    """Whether there are values; otherwise only inputs, as for the steps ahead."""
    required: bool = False
    """Whether a table in wide form is refused."""
    targets: tuple[str, ...] = ()
    """Columns or series to forecast: the column of values, or some of the series."""

    def time_of(self, names: Sequence[str], known: Sequence[str]) -> str:
        """Choose the column of times if none is named: one with a usual name, or the first.

        Args:
            names: Names of all columns of a table.
            known: Names of columns of times, in small letters.
        """
        taken = (self.id, self.value, *self.inputs, *self.targets)
        left = [name for name in names if name not in taken]
        other_kinds = (*ID_COLUMNS, *VALUE_COLUMNS)
        called = [name for name in left if name.strip().lower() in known]
        others = [name for name in left if name.strip().lower() not in other_kinds]
        return (called or others or [*names])[0]

    def require_targets(self, source: str, ids: Sequence[str], value: str) -> None:
        """Raise ForeignDataError if a target is neither a series nor the column of values."""
        for name in self.targets:
            if name not in ids and (name != value or len(self.targets) > 1):
                raise ForeignDataError(
                    f"--target: {source} has no series {name!r}, and its column of values is "
                    f"{value!r}; its series are {', '.join(ids[:_SERIES_SHOWN])}"
                    + (" ..." if len(ids) > _SERIES_SHOWN else "")
                )

    def found(
        self, source: str, time: str, names: Sequence[str]
    ) -> tuple[str, tuple[str, ...], tuple[str, ...]] | None:
        """Find the columns of id, value and inputs, and the other ones; None without an id.

        Raises:
            ForeignDataError: A column is missing, or which holds the values is not clear.
        """
        known = {name.strip().lower(): name for name in names}
        name = self.id or next((known[each] for each in ID_COLUMNS if each in known), None)
        if name is None and self.required:
            raise ForeignDataError(
                f"{source}: expected a column with the name of the series, such as unique_id (see "
                f"--id-column); its columns are {', '.join(names)}"
            )
        if name is None:
            return None
        if name not in names:
            raise ForeignDataError(f"--id-column: {source} has no column {name!r}")
        others = [each for each in names if each not in (name, time, *self.inputs)]
        for each in self.inputs:
            if each not in names:
                raise ForeignDataError(
                    f"--future: {source} has no column {each!r}; its columns are {', '.join(names)}"
                )
        if not self.valued:
            return name, self.inputs, tuple(others)
        named = [each for each in self.targets if each in others]
        by_name = (known[each] for each in VALUE_COLUMNS if each in known)
        value = self.value or next(iter((*named, *by_name)), None)
        if value is None and len(others) == 1:
            (value,) = others
        if value is None or value not in names:
            raise ForeignDataError(
                f"{source}: expected --value-column to name what to forecast, one of "
                f"{', '.join(others)}; got {self.value or 'nothing'}"
            )
        unread = tuple(each for each in others if each != value)
        return name, (value, *self.inputs), unread


BY_NAME = LongColumns()
"""Columns in long form, all found by their names."""


def input_column(name: str, of: str) -> str:
    """Return the name of an input of one series in wide form."""
    return f"{name}[{of}]"


def wide_columns(ids: Sequence[str], inputs: Sequence[str], valued: bool = True) -> tuple[str, ...]:
    """List the columns of a panel in wide form: the series, then the inputs of each series."""
    made = [input_column(name, of) for of in ids for name in inputs]
    return (*(ids if valued else ()), *made)


def widened(
    texts: Sequence[str],
    lines: Sequence[int],
    ids: Sequence[str],
    values: np.ndarray,
    problems: Problems,
    combined: bool = False,
) -> tuple[list[str], list[int], tuple[str, ...], np.ndarray]:
    """Widen to a row for each time and a column for each series, in the order of their first rows.

    Times that begin with the year are sorted; a series may begin late or end early.

    Args:
        texts: (n,) times as they stand.
        lines: (n,) of each.
        ids: (n,) of the series.
        values: (n, N) float64.
        problems: Collector of rows that are there twice, of which the first counts.
        combined: Whether such rows are combined later: they get further rows of the same time.

    Returns:
        Times (T,), their first lines (T,), names (K,) and values (T, K, N), NaN where none is.

    Raises:
        DataError: Many rows have series and time of another.
    """
    import pandas as pd  # this module is imported where the command line needs no more

    rows, times = pd.factorize(np.asarray(texts, object))
    columns, names = pd.factorize(np.asarray(ids, object))
    pairs = pd.DataFrame({"row": rows, "column": columns})
    again = pairs.duplicated().to_numpy()
    if combined and again.any():
        which = pairs.groupby(["row", "column"]).cumcount().to_numpy()
        rows, places = pd.factorize(rows * (which.max() + 1) + which)
        times, again = times[places // (which.max() + 1)], np.zeros(len(rows), bool)
    if again.sum() > _MAX_REPEATED * len(again):
        place = int(again.argmax())
        raise DataError(
            f"{problems.source}, {problems.unit} {lines[place]}: expected each time of a series "
            f"once, got {texts[place]} of {ids[place]!r} again, as in {again.sum():,} of "
            f"{len(again):,} rows; if another column tells them apart, join both to one column of "
            "names; or combine them with --duplicates or --resample"
        )
    table = np.full((len(times), len(names), values.shape[1]), np.nan)
    for place in np.flatnonzero(again).tolist():
        message = f"expected each time of a series once, got {texts[place]} of {ids[place]!r} again"
        problems.bad_row("repeated", lines[place], message, None)
    table[rows[~again], columns[~again]] = values[~again]
    first = pd.Series(np.asarray(lines)).groupby(rows).first().to_numpy()
    order = np.arange(len(times))
    if all(len(text.strip()) > 3 and text.strip()[:4].isdigit() for text in times):
        order = np.argsort(times.astype(str), kind="stable")
    return (
        [str(times[place]) for place in order],
        [int(first[place]) for place in order],
        tuple(str(name) for name in names),
        table[order],
    )


def flattened(values: np.ndarray, valued: bool = True) -> np.ndarray:
    """Reshape (T, K, N) of `widened` to the columns that `wide_columns` names."""
    inputs = values[..., 1:] if valued else values
    inputs = inputs.reshape(len(values), -1)
    return np.concatenate([values[..., 0], inputs], axis=1) if valued else inputs
