"""Usual names of columns with texts and labels."""

from collections.abc import Iterable, Mapping, Sequence

TEXT_COLUMNS = (
    *("text", "sentence", "review", "content", "comment", "message", "document", "body"),
    "comment_text",
)
HEADING_COLUMNS = ("title", "subject", "headline", "summary", "description")
"""Usual names of columns with a second text."""
LABEL_COLUMNS = (
    *("label", "sentiment", "class", "category", "target", "polarity", "score", "labels"),
    *("cats", "accept", "annotation", "annotations", "label.responses"),
)
"""Usual names; the last five are those of spaCy, Prodigy, doccano and Argilla."""
HEADER_HINT = ". Is that a row? The first line must have the names, such as text,label"


def column_called(names: Iterable[str], columns: Sequence[str]) -> str | None:
    """Find the column with one of these names, in any case; earlier names take precedence."""
    for name in names:
        for column in columns:
            if column.strip().lower() == name:
                return column
    return None


def own_column(like: Mapping[str, str], name: str, columns: Sequence[str]) -> str | None:
    """Find the column that is called as that of an input in an earlier file, in any case."""
    return column_called([like[name].strip().lower()], columns) if name in like else None


def header_hint(columns: Iterable[str]) -> str:
    """Ask in an error whether the first line is a row; empty where the names are short."""
    return HEADER_HINT if any(len(name.split()) > 3 for name in columns) else ""
