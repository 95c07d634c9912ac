"""Tables and columns in memory: pandas, Polars, PyArrow, NumPy or lists.

Narwhals reads every data-frame library that it supports, and makes frames of the same library.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from gru_training.data.label_cells import TargetKind, is_number, listed_names, read_literal
from gru_training.data.text_files import find_column, find_label_column
from gru_training.errors import DataError, ForeignDataError
from gru_training.tables.text_columns import TEXT_COLUMNS

LABEL_KINDS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "integer": int,
    "number": float,
    "boolean": lambda name: name == "True",
}
"""Functions from the name of a class to its label in the table, by kind of label."""


def as_frame(data: Any) -> "nw.DataFrame[Any] | None":
    """Wrap a table of pandas, Polars, PyArrow or Hugging Face's datasets; None for anything else.

    Args:
        data: A table, or any other object.
    """
    if all(hasattr(data, name) for name in ("features", "with_format", "__getitem__")):
        data = data.with_format("arrow")[:]  # the rows that it selects, in order
    elif isinstance(data, pd.DataFrame) and not all(isinstance(each, str) for each in data.columns):
        data = data.set_axis(list(map(str, data.columns)), axis=1)
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def as_values(data: Any, what: str) -> list[Any]:
    """List the values of a column, with None for missing ones and Python's own numbers.

    Args:
        data: A column, an array (N,) or (N, 1), a table of one column, or a list.
        what: Name of the data in errors.

    Raises:
        DataError: The data have none of these forms.
    """
    found = as_frame(data)
    if found is not None and len(found.columns) == 1:
        data = found[found.columns[0]].to_native()
    column = nw.from_native(data, series_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        values = column.to_list()
    elif isinstance(data, Sequence) and not isinstance(data, str | bytes):
        values = list(data)
    else:
        array = np.asarray(data) if hasattr(data, "__array__") and found is None else None
        if array is None or not (array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1)):
            shape = "" if array is None else f" of shape {array.shape}"
            raise DataError(
                f"{what}: expected a table, or a list or column, got {type(data).__name__}{shape}"
            )
        values = array.ravel().tolist()
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    return [None if _is_missing(value) else value for value in values]


def column_name(data: Any) -> str | None:
    """Return the name of a column; None if this is no column or has no name."""
    column = nw.from_native(data, series_only=True, pass_through=True)
    return str(column.name) if isinstance(column, nw.Series) and column.name else None


def text_column(frame: "nw.DataFrame[Any]", wanted: str | None, what: str) -> str:
    """Choose the column with the texts: `wanted`, the only one, or one found by its name."""
    if wanted is None and len(frame.columns) == 1:
        return frame.columns[0]
    return find_column(what, frame.columns, wanted, TEXT_COLUMNS, "text")


def label_column(frame: "nw.DataFrame[Any]", wanted: str | None, what: str) -> str:
    """Choose the column with the labels: `wanted`, or one found by its name."""
    rows = frame.iter_rows(named=True)
    try:
        return find_label_column(what, frame.columns, wanted, rows)
    except ForeignDataError as error:
        if error.flags:
            names = [flag for flag in error.flags if flag in frame.columns]
            columns = names if len(names) > 1 else names[0]
            kind = ' and target_type="class"' if "class" in error.flags else ""
            message = str(error).partition("; ")[0]
            raise DataError(
                f"{message}; {error.reason}, which label={columns!r}{kind} reads"
            ) from None
        raise


def texts_of(data: Any, column: str | None, what: str = "data") -> list[str]:
    """Read the texts of a table, column, array or list; missing ones become empty.

    Args:
        data: The texts.
        column: The column of a table that holds them; found by its name by default.
        what: A name for the data in errors.

    Raises:
        DataError: There is no such column, or a value is not a text; names the row.
    """
    frame = as_frame(data)
    if frame is None:
        return [_text(value, row, what) for row, value in enumerate(as_values(data, what))]
    name = text_column(frame, column, what)
    values = as_values(frame[name].to_native(), what)
    return [_text(value, row, f"{what}, column {name!r}") for row, value in enumerate(values)]


def label_names(
    label: Any, kind: TargetKind = "class", separator: str | None = None
) -> tuple[str, ...]:
    """Return the names of a label, as `LabelCells.read` does; none if it is missing.

    Raises:
        DataError: The label is of another kind.
    """
    missing, names = _is_missing(label), listed_labels(label)
    if isinstance(label, bytes):
        raise DataError(
            f"expected texts or numbers as labels, got bytes {label!r:.40}; "
            "numpy.char.decode(labels) makes texts of them"
        )
    if kind == "labels":
        if names is None and isinstance(label, str) and separator is not None:
            names = label.split(separator)
        items = names if names is not None else [] if missing else [label]
        return tuple(dict.fromkeys(name for item in items if (name := str(item).strip())))
    if kind == "number" and not missing and not is_number(str(label)):
        raise DataError(f"expected a number for each text, got {label!r:.60}")
    if names is None:
        name = "" if missing else str(label).strip()
        return (name,) if name else ()
    if len(names) > 1:
        raise DataError(
            f"expected one label for each text, got {label!r:.60}; --target-type labels reads any "
            "number of labels"
        )
    return tuple(names)


def listed_labels(label: Any) -> list[str] | None:
    """Read the labels in a list or object, or in one written as a text; None for anything else.

    Raises:
        DataError: The list or object holds no labels as annotation tools write them.
    """
    value = label
    if isinstance(label, str):
        value = read_literal(label)
    elif isinstance(label, np.ndarray):
        value = label.tolist()
    if not isinstance(value, list | tuple | dict | set):
        return None
    try:
        return listed_names(value)
    except ValueError as error:
        raise DataError(f"expected labels for each text, got {label!r:.60}{error}") from None


def label_kind(labels: Sequence[Any]) -> str:
    """Determine the common kind of labels, one of `LABEL_KINDS`; `text` if they differ.

    Missing labels, of which `drop_bad` leaves the rows out, are of no kind.
    """
    kinds = {bool: "boolean", int: "integer", float: "number", str: "text"}
    found = {kinds.get(type(label), "text") for label in labels if label is not None}
    return found.pop() if len(found) == 1 else "text"


def label_dtype(labels: Any) -> str:
    """Determine the NumPy type of labels, as read by `numpy.dtype`.

    `O` unless all have one simple type.

    Args:
        labels: A column, an array, a table of one column, or a list.
    """
    frame = as_frame(labels)
    if frame is not None:
        labels = frame[frame.columns[0]].to_native() if len(frame.columns) == 1 else ()
    column = nw.from_native(labels, series_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        dtype = column.to_numpy().dtype
    else:
        try:
            dtype = np.asarray(labels).dtype
        except ValueError:  # lists of unequal length
            return "O"
    if dtype.kind == "U":
        return "U"  # as wide as the classes are
    return dtype.str if dtype.kind in "biuf" else "O"


def frame_like(data: Any, columns: Mapping[str, Any]) -> Any:
    """Make a table of the same library as `data`, with its index if it has one.

    By default of pandas.
    """
    native = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.Series) and not native.implementation.is_pandas():
        return nw.from_dict(dict(columns), backend=native.implementation).to_native()
    index = data.index if isinstance(data, pd.DataFrame | pd.Series) else None
    return pd.DataFrame(dict(columns), index=index)


def _text(value: Any, row: int, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(
            f"{what}, row {row}: expected a text, got {type(value).__name__} {value!r:.40}"
        )
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value):
        raise DataError(
            f"{what}, row {row}: expected Unicode text without NUL characters and half surrogate "
            f"pairs, got {value!r:.40}"
        )
    return value


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and value != value)
