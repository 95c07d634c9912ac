"""Pages and the Markdown in them."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path


def table_lines(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown; a heading that ends in a colon is of numbers."""
    yield f"| {' | '.join(head.removesuffix(':') for head in heading)} |"
    yield f"|{'|'.join('--:' if head.endswith(':') else '---' for head in heading)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def write_page(path: Path, text: str) -> None:
    """Write a page to a folder beside its place and move it, so that it is never incomplete.

    Raises:
        OSError: The page cannot be written.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        written = Path(folder, path.name)
        written.write_text(text, "utf-8", newline="\n")
        written.replace(path)
