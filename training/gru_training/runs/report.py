"""The report of a run, to print, to read as a file, and to show in a notebook."""

import base64
import re
from dataclasses import dataclass, field
from pathlib import Path

from gru_training.runs.directory import RunDirectory

_PICTURE = re.compile(r"!\[([^\]]*)\]\(([\w.-]+\.png)\)")


@dataclass(frozen=True)
class Report:
    """A run's `report.md`; as a string its Markdown, in a notebook the page with its pictures."""

    path: Path
    """Of the file; the pictures lie beside it."""
    run: RunDirectory | None = field(default=None, repr=False, compare=False)
    """The run, whose folder may be temporary and lasts as long as this object."""

    def __str__(self) -> str:
        return self.path.read_text("utf-8")

    def _repr_markdown_(self) -> str:
        """The page with the pictures inside: a notebook has another folder than the run."""
        return _PICTURE.sub(self._embedded, str(self))

    def _embedded(self, link: re.Match[str]) -> str:
        picture = self.path.parent / link[2]
        if not picture.is_file():
            return link[0]
        data = base64.b64encode(picture.read_bytes()).decode()
        return f"![{link[1]}](data:image/png;base64,{data})"
