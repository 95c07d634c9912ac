"""Tables in long form: a row for each series and time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.data.problems import Problems
from training.errors import ForeignDataError

ID_COLUMNS = ("unique_id", "series_id", "item_id")
VALUE_COLUMNS = ("y", "value", "target", "sales", "quantity", "demand")


@dataclass(frozen=True)
class LongColumns:
    """Which columns of a table in long form hold what; None: found by their names."""

    id: str | None = None
    value: str | None = None

    def found(
        self, source: str, time: str, names: Sequence[str]
    ) -> tuple[str, str, tuple[str, ...]] | None:
        """Id, value, and the columns that are neither nor the time; None where there is no id.

        Raises:
            ForeignDataError: A column is missing, or which holds the values is not clear.
        """
        known = {name.strip().lower(): name for name in names}
        name = self.id or next((known[each] for each in ID_COLUMNS if each in known), None)
        if name is None:
            return None
        if name not in names:
            raise ForeignDataError(f"--id-column: {source} has no column {name!r}")
        others = [each for each in names if each not in (name, time)]
        value = self.value or next((known[each] for each in VALUE_COLUMNS if each in known), None)
        if value is None and len(others) == 1:
            (value,) = others
        if value is None or value not in names:
            raise ForeignDataError(
                f"{source}: expected --value-column to name what to forecast, one of "
                f"{', '.join(others)}; got {self.value or 'nothing'}"
            )
        return name, value, tuple(each for each in others if each != value)


BY_NAME = LongColumns()
"""All of them found by their names."""


def widened(
    texts: Sequence[str],
    lines: Sequence[int],
    ids: Sequence[str],
    values: np.ndarray,
    problems: Problems,
) -> tuple[list[str], list[int], tuple[str, ...], np.ndarray]:
    """A column for each series and a row for each time, in the order in which they first stand.

    Times that begin with the year are put in order; a series may begin late or end early.

    Args:
        texts: (n,) times as they stand.
        lines: (n,) of each.
        ids: (n,) of the series.
        values: (n,) float64.
        problems: Receives rows that are there twice, of which the first counts.

    Returns:
        Times (T,), their first lines (T,), names (K,) and values (T, K), NaN where none is.
    """
    import pandas as pd  # this module is imported where the command line needs no more

    rows, times = pd.factorize(np.asarray(texts, object))
    columns, names = pd.factorize(np.asarray(ids, object))
    table = np.full((len(times), len(names)), np.nan)
    again = pd.DataFrame({"row": rows, "column": columns}).duplicated().to_numpy()
    for place in np.flatnonzero(again).tolist():
        message = f"expected each time of a series once, got {texts[place]} of {ids[place]!r} again"
        problems.bad_row("repeated", lines[place], message, None)
    table[rows[~again], columns[~again]] = values[~again]
    first = pd.Series(np.asarray(lines)).groupby(rows).first().to_numpy()
    order = np.arange(len(times))
    if all(text.strip()[:4].isdigit() for text in times):
        order = np.argsort(times.astype(str), kind="stable")
    return (
        [str(times[place]) for place in order],
        [int(first[place]) for place in order],
        tuple(str(name) for name in names),
        table[order],
    )
