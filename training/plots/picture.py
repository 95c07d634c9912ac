"""What all pictures of a run share: how they are written, and how they name things."""

import warnings
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_MOST_LETTERS = 20


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, the same bytes for the same figure."""
    FigureCanvasAgg(figure)
    with warnings.catch_warnings():  # letters that the font lacks become boxes
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(path, metadata={"Software": None})


def plain_label(name: str) -> str:
    """A name from the data, shortened and escaped: a pair of dollars would start a formula."""
    short = name if len(name) <= _MOST_LETTERS else name[: _MOST_LETTERS - 1] + "…"
    return short.replace("$", r"\$")
