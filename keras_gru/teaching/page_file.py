"""The atomic writing of pages."""

import tempfile
from pathlib import Path


def write_page(path: Path, text: str) -> None:
    """Write a page to a folder beside its place and move it, so that it is never incomplete.

    Raises:
        OSError: The page cannot be written.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        written = Path(folder, path.name)
        written.write_text(text, "utf-8", newline="\n")
        written.replace(path)
