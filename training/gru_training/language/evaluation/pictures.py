"""Pictures of a language model along a held-out text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from gru_training.plots.picture import plain_label, save_figure

_UNITS = 16
_BAR = "#0b63b5"


def draw_units(tokens: Sequence[str], states: np.ndarray, path: Path) -> list[int]:
    """Draw the state of the units that move most, over a text.

    Args:
        tokens: T of them.
        states: (T, U).
        path: The PNG file.

    Returns:
        The numbers of the units, from top to bottom.
    """
    chosen = np.argsort(-states.std(axis=0), kind="stable")[:_UNITS]
    figure = Figure(figsize=(12, 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(
        states[:, chosen].T, aspect="auto", cmap="RdBu", vmin=-1, vmax=1, interpolation="nearest"
    )
    axes.set_yticks(range(len(chosen)), [f"unit {unit}" for unit in chosen], fontsize=7)
    _name_tokens(axes, tokens)
    figure.colorbar(image, ax=axes, label="state", pad=0.01)
    save_figure(figure, path)
    return [int(unit) for unit in chosen]


def draw_surprise(tokens: Sequence[str], bits: np.ndarray, path: Path) -> None:
    """Draw what each token of a text costs, given those before it.

    Args:
        tokens: T of them.
        bits: (T,).
        path: The PNG file.
    """
    figure = Figure(figsize=(12, 3.2), dpi=120, layout="constrained")
    axes = figure.subplots()
    axes.bar(range(len(tokens)), bits, width=0.9, color=_BAR)
    axes.axhline(bits.mean(), color="#c0392b", linewidth=0.8, linestyle=":",
                 label=f"mean {bits.mean():.2f} bits")  # fmt: skip
    axes.set_ylabel("surprise, bits")
    axes.set_xlim(-0.5, len(tokens) - 0.5)
    axes.legend(fontsize="small")
    _name_tokens(axes, tokens)
    save_figure(figure, path)


def _name_tokens(axes: "object", tokens: Sequence[str]) -> None:
    single = max(map(len, tokens)) == 1
    axes.set_xticks(  # type: ignore[attr-defined]
        range(len(tokens)),
        [plain_label(token) for token in tokens],
        rotation=0 if single else 90,
        fontsize=6 if single else 7,
    )
