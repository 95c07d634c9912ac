"""Common parts of a run's pictures: the writing of files, names, and learning curves."""

import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from gru_training.loop.checkpoint import EpochRecord

_MOST_LETTERS = 20


def save_figure(figure: Figure, path: Path, tight: bool = False) -> None:
    """Write a figure as PNG; the bytes are the same for the same figure and fonts.

    Args:
        figure: Figure to write.
        path: File to write.
        tight: Whether the picture is cut to what is drawn, for figures without a layout.
    """
    FigureCanvasAgg(figure)
    use_fallback_fonts(figure)
    for axes in figure.axes:  # full dates beside each other would overlap
        locator = axes.xaxis.get_major_locator()
        if isinstance(locator, AutoDateLocator):
            axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    with warnings.catch_warnings():  # of letters that no font has
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(path, metadata={"Software": None}, bbox_inches="tight" if tight else None)


def plain_label(name: str) -> str:
    """Shorten and escape a name from the data: a pair of dollars would start a formula.

    Emoji missing from the font are written by their names, as in `:thumbs up sign:`. Letters
    missing from all fonts of the system become their code points, as in `⟨4E2D⟩`, rather than
    boxes.
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


def has_letter(letter: str) -> bool:
    """Tell whether the font of the pictures or another one of the system has a letter."""
    return ord(letter) in own_letters() or _font_with(letter) is not None


def use_fallback_fonts(figure: Figure) -> None:
    """Write letters of a figure that its font lacks in a font of the system that has them."""
    for text in figure.findobj(Text):
        families = _fallbacks(text.get_text())
        if families:
            text.set_fontfamily([*text.get_fontfamily(), *families])


@cache
def own_letters() -> frozenset[int]:
    """Return the code points of the pictures' font."""
    return _letters(font_manager.findfont(font_manager.FontProperties()))


def _fallbacks(text: str) -> list[str]:
    """Return the font families for the letters of a text that the pictures' font lacks."""
    found = (_font_with(each) for each in text if ord(each) not in own_letters())
    return list(dict.fromkeys(family for family in found if family is not None))


@cache
def _font_with(letter: str) -> str | None:
    """Find the first family of the system, by name, that has a letter in upright, regular type."""
    for family, path in _regular_fonts():
        if ord(letter) in _letters(path):
            return family
    return None


def _regular_fonts() -> Iterable[tuple[str, str]]:
    """List families with the files of their regular type; those with many scripts come first."""
    fonts = {
        (each.name, each.fname)
        for each in font_manager.fontManager.ttflist
        if not each.name.startswith("Last Resort")  # it has a box for every letter
        and each.style == "normal"
        and str(each.weight) in ("400", "normal", "regular", "book")
    }
    return sorted(fonts, key=lambda font: (not font[0].startswith(("Noto", "Source Han")), font))


@cache
def _letters(path: str) -> frozenset[int]:
    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):  # a font file that cannot be read, such as one of bitmaps
        return frozenset()


_TRAIN, _VALIDATION, _MARK = "#7a7a7a", "#0b63b5", "#c0392b"


def draw_curves(
    epochs: Sequence[EpochRecord], best_epoch: int, names: tuple[str, str], path: Path
) -> None:
    """Draw two means over the epochs, training and validation, best epoch marked.

    Args:
        epochs: Records from `gru_training.loop.fit.fit`.
        best_epoch: Number of the best epoch.
        names: Names of the means, as `loss` and `accuracy`.
        path: The PNG file.
    """
    figure = Figure(figsize=(9, 3.6), dpi=120, layout="constrained")
    numbers = [record.epoch for record in epochs]
    best = next(record for record in epochs if record.epoch == best_epoch)
    for axes, name in zip(figure.subplots(1, 2), names, strict=True):
        validation = [record.validation[name] for record in epochs]
        if name in best.train:  # not a measure of the validation rows alone
            train = [record.train[name] for record in epochs]
            axes.plot(numbers, train, ".--", color=_TRAIN, label="training (with dropout)")
        axes.plot(numbers, validation, ".-", color=_VALIDATION, label="validation")
        axes.axvline(best_epoch, color=_MARK, linewidth=0.8, linestyle=":")
        axes.plot(best_epoch, best.validation[name], "o", color=_MARK, markersize=8, mfc="none",
                  label=f"best epoch {best_epoch}: {best.validation[name]:.4g}")  # fmt: skip
        axes.set_xlabel("epoch")
        axes.set_ylabel(name)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.25)
        axes.legend(fontsize="small")
    save_figure(figure, path)
