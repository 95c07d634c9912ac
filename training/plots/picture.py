"""What all pictures of a run share: how they are written, and how they name things."""

import unicodedata
import warnings
from functools import cache
from pathlib import Path

from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font

_MOST_LETTERS = 20


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, the same bytes for the same figure."""
    FigureCanvasAgg(figure)
    with warnings.catch_warnings():  # letters that the font lacks become boxes
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(path, metadata={"Software": None})


def plain_label(name: str) -> str:
    """A name from the data, shortened and escaped: a pair of dollars would start a formula.

    Emoji that the font lacks are called by their names, as in `:thumbs up sign:`.
    """
    named = "".join(map(_shown, name))
    short = named if len(named) <= _MOST_LETTERS else named[: _MOST_LETTERS - 1] + "…"
    return short.replace("$", r"\$")


def _shown(character: str) -> str:
    kind = unicodedata.category(character)
    if kind == "Cf":  # what joins emoji, among others: nothing to be seen
        return ""
    if ord(character) in _glyphs():
        return character
    if kind in ("Mn", "Sk"):  # what gives emoji a form or colour
        return ""
    return f":{unicodedata.name(character, 'symbol').lower()}:" if kind == "So" else character


@cache
def _glyphs() -> frozenset[int]:
    """The code points that the font of the pictures has."""
    return frozenset(FT2Font(font_manager.findfont(font_manager.FontProperties())).get_charmap())
