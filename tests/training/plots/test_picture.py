"""Names from the data as pictures show them."""

import warnings

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from training.plots.picture import plain_label


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("👍", ":thumbs up sign:"),
        ("👍🏽", ":thumbs up sign:"),
        ("café $5", r"café \$5"),
        ("x" * 21, "x" * 19 + "…"),
        ("👩\u200d💻!", ":woman::personal co…"),
    ],
)
def test_names(name, shown):
    assert plain_label(name) == shown


def test_emoji_are_no_boxes():
    """Matplotlib warns where its font lacks a letter, and draws a box."""
    figure = Figure()
    FigureCanvasAgg(figure)
    for row, name in enumerate(["👍", "🏴", "❤️", "🤷🏽\u200d♀️", "🇩🇪", "Zürich", "Ελλάδα"]):
        figure.text(0.1, row / 10, plain_label(name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
