"""The pages of the documentation, and the blocks of code in them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w{}-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S
)
_MARK = re.compile(r"<!-- ([a-z ]+): ([^>]+?) -->\n*$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        page: Its path in the repository.
        line: Of its fence, from 1.
        language: As the fence names it; empty where it names none.
        text: Without the fences.
        mark: What the comment right above says of how it is run, such as "not run"; or empty.
        reason: What that comment says after the colon.
    """

    page: str
    line: int
    language: str
    text: str
    mark: str
    reason: str

    @property
    def place(self):
        """For messages."""
        return f"{self.page}:{self.line}"


def pages():
    """Paths of all pages, as strings that begin in the repository."""
    found = [
        *ROOT.glob("[A-Z]*.md"),
        *(path for path in ROOT.glob("docs/**/*.md") if "sphinx" not in path.parts),
        ROOT / "docker/README.md",
        ROOT / "keras_gru/DERIVATION.md",
    ]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def text_of(page):
    """The whole text of a page."""
    return (ROOT / page).read_text("utf-8")


def blocks(page):
    """The fenced blocks of a page, in their order."""
    text = text_of(page)
    found = []
    for match in _FENCE.finditer(text):
        mark = _MARK.search(text[: match.start()].rstrip(" "))
        indent = len(match["indent"])
        found.append(
            Block(
                page,
                text.count("\n", 0, match.start()) + 1,
                match["language"],
                "".join(line[indent:] or "\n" for line in match["text"].splitlines(True)),
                mark[1] if mark else "",
                mark[2] if mark else "",
            )
        )
    return found
