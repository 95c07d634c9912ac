"""How columns with texts are called, so that nobody need name them."""

from collections.abc import Iterable, Sequence

TEXT_COLUMNS = ("text", "sentence", "review", "content", "comment", "message", "document", "body")


def column_called(names: Iterable[str], columns: Sequence[str]) -> str | None:
    """The first column that is called as in `names`, the first of these first, in any case."""
    for name in names:
        for column in columns:
            if column.strip().lower() == name:
                return column
    return None
