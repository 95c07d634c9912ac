"""The README's picture, after a demo: `python docs/gates/draw.py demo_output/models/sentiment/1`.

Two reviews of the same words, through the signature `gates` of the demo's text model: its answer
after each word, and the update gates of the direction that reads forward.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
REVIEWS = ("Starts badly but ends well.", "Starts well but ends badly.")
THEMES = {  # text, lines of the grid, the two reviews
    "light": ("#1f2328", "#d1d9e0", "#0b5cad", "#b3470f"),
    "dark": ("#e6edf3", "#3d444d", "#6cb0ff", "#ff9b57"),
}
# Letters are drawn, as the reader may lack the font; ids are the same from run to run.
STYLE = {"svg.fonttype": "path", "svg.hashsalt": "gates", "font.size": 11}


def main(export: str) -> None:
    """Write `light.svg` and `dark.svg`."""
    explain = tf.saved_model.load(export).signatures["gates"]
    answers = [
        {name: value.numpy()[0] for name, value in explain(text=tf.constant([review])).items()}
        for review in REVIEWS
    ]
    for theme, colours in THEMES.items():
        with rc_context(STYLE):
            draw(answers, *colours).savefig(
                HERE / f"{theme}.svg", transparent=True, metadata={"Date": None}
            )


def draw(answers: list[dict[str, np.ndarray]], text: str, grid: str, *reviews: str) -> Figure:
    """The answers after each word on the left, the gates of every unit on the right."""
    figure = Figure(figsize=(10, 4.3), layout="constrained")
    areas = figure.subplot_mosaic(
        [["answer", "gates0"], ["answer", "gates1"]], width_ratios=[1.15, 1]
    )
    _answers(areas["answer"], answers, text, reviews)
    gates = [answer["update_gate"][:, 0, 0].T for answer in answers]  # (units, tokens), forward
    order = np.argsort(np.mean([gate.mean(axis=1) for gate in gates], axis=0))
    for number, answer in enumerate(answers):
        mesh = _gates(areas[f"gates{number}"], gates[number][order], answer["tokens"])
    for name, title in (
        ("answer", "The answer after each word"),
        ("gates0", "What each unit keeps"),
    ):
        areas[name].set_title(title, loc="left", color=text)
    bar = figure.colorbar(mesh, ax=[areas["gates0"], areas["gates1"]], pad=0.02, aspect=30)
    bar.set_label("update gate", color=text)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=text, length=0)
    for axes in areas.values():
        axes.tick_params(colors=text, length=0)
        axes.yaxis.label.set_color(text)
        for spine in axes.spines.values():
            spine.set_visible(False)
    for number, colour in enumerate(reviews):
        areas[f"gates{number}"].tick_params(axis="x", colors=colour)
    areas["answer"].grid(axis="y", color=grid)
    return figure


def _answers(
    axes: Axes, answers: list[dict[str, np.ndarray]], text: str, colours: tuple[str, ...]
) -> None:
    for answer, colour, side in zip(answers, colours, (1, -1), strict=True):
        positive = answer["scores"][:, 1]
        axes.plot(positive, color=colour, marker="o", linewidth=2.5, clip_on=False)
        for step, token in enumerate(answer["tokens"][1:], 1):
            axes.annotate(
                token.decode(), (step, positive[step]), (-9, 14 * side), ha="center", va="center",
                textcoords="offset points", color=colour, fontweight="bold",
            )  # fmt: skip
    start = (0, answers[0]["scores"][0, 1])
    axes.plot(*start, color=text, marker="o", clip_on=False)
    axes.annotate(
        answers[0]["tokens"][0].decode(), start, (0, 14), ha="center", va="center",
        textcoords="offset points", color=text, fontweight="bold",
    )  # fmt: skip
    axes.set_ylim(-0.12, 1.12)
    axes.set_yticks([0, 0.5, 1], ["negative", "", "positive"])
    axes.set_xticks([])


def _gates(axes: Axes, gates: np.ndarray, tokens: np.ndarray) -> object:
    mesh = axes.pcolormesh(gates, cmap="viridis", vmin=0, vmax=1)
    axes.set_xticks(np.arange(len(tokens)) + 0.5, [token.decode() for token in tokens])
    axes.set_yticks([])
    axes.set_ylabel(f"{len(gates)} units")
    return mesh


if __name__ == "__main__":
    main(*sys.argv[1:])
