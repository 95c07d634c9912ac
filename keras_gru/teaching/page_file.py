"""Writing a page of text whole or not at all."""

import tempfile
from pathlib import Path


def write_page(path: Path, text: str) -> None:
    """Write a page beside its place first: what stands there is the old one or the new one.

    Raises:
        OSError: It cannot be written.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as aside:
        written = Path(aside, path.name)
        written.write_text(text, "utf-8", newline="\n")
        written.replace(path)
