"""The columns in which a classifier answers."""

from collections.abc import Sequence


def class_columns(classes: Sequence[str]) -> list[str]:
    """The columns of the classes' probabilities: their names, unless another column is called so.

    A class that is called label or probability gets `class_` before its name.
    """
    taken = {"label", "probability", *classes}
    columns = []
    for name in classes:
        column = name
        while name in ("label", "probability") and column in taken:
            column = f"class_{column}"
        taken.add(column)
        columns.append(column)
    return columns
