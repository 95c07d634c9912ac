"""What all pictures of a run share: how they are written, and how they name things."""

import unicodedata
import warnings
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gru_training.plots.fonts import has_letter, own_letters, use_fallback_fonts

_MOST_LETTERS = 20


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, the same bytes for the same figure and the same fonts."""
    FigureCanvasAgg(figure)
    use_fallback_fonts(figure)
    with warnings.catch_warnings():  # of letters that no font has
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(path, metadata={"Software": None})


def plain_label(name: str) -> str:
    """A name from the data, shortened and escaped: a pair of dollars would start a formula.

    Emoji that the font lacks are called by their names, as in `:thumbs up sign:`. Letters that no
    font of the system has become their code points, as in `⟨4E2D⟩`, in place of boxes.
    """
    named = "".join(map(_shown, name))
    short = named if len(named) <= _MOST_LETTERS else named[: _MOST_LETTERS - 1] + "…"
    return short.replace("$", r"\$")


def _shown(character: str) -> str:
    kind = unicodedata.category(character)
    if kind == "Cf":  # what joins emoji, among others: nothing to be seen
        return ""
    if ord(character) in own_letters():
        return character
    name = unicodedata.name(character, "symbol").lower()
    if kind == "Sk" or name.startswith("variation selector"):  # an emoji's colour or form
        return ""
    if kind == "So":
        return f":{name}:"
    return character if has_letter(character) else f"⟨{ord(character):04X}⟩"
