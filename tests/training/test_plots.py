"""Learning curves, and names from the data as pictures show them."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread

from gru_training import plots
from gru_training.loop.checkpoint import EpochRecord
from gru_training.plots import draw_curves, plain_label, save_figure


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


@pytest.fixture
def foreign_font(tmp_path):
    """A font that has one Chinese letter, a square, and that Matplotlib knows meanwhile."""
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "middle"])
    builder.setupCharacterMap({ord("中"): "middle"})
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 800), (800, 800), (800, 0)):
        pen.lineTo(corner)
    pen.closePath()
    builder.setupGlyf({".notdef": TTGlyphPen(None).glyph(), "middle": pen.glyph()})
    builder.setupHorizontalMetrics({".notdef": (500, 0), "middle": (900, 0)})
    builder.setupHorizontalHeader(ascent=900, descent=-100)
    builder.setupNameTable({"familyName": "Noto of the test", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(tmp_path / "foreign.ttf")
    manager = font_manager.fontManager
    before = [*manager.ttflist]
    manager.addfont(tmp_path / "foreign.ttf")
    plots._font_with.cache_clear()
    yield
    manager.ttflist[:] = before
    plots._font_with.cache_clear()


def written(folder, text):
    figure = Figure()
    figure.text(0.1, 0.5, text)
    save_figure(figure, folder / "picture.png")
    return figure


@pytest.mark.usefixtures("foreign_font")
def test_another_font_lends_its_letters(tmp_path):
    assert plain_label("a中b") == "a中b"
    figure = written(tmp_path, plain_label("a中b"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no font has the letter
        figure.canvas.draw()


def test_letters_that_no_font_has_are_their_code_points(tmp_path, monkeypatch):
    manager = font_manager.fontManager
    own = [each for each in manager.ttflist if each.name == "DejaVu Sans"]
    monkeypatch.setattr(manager, "ttflist", own)
    plots._font_with.cache_clear()
    assert plain_label("a中") == "a⟨4E2D⟩"
    assert plain_label("ไม่") == "⟨0E44⟩⟨0E21⟩⟨0E48⟩"
    plots._font_with.cache_clear()
    figure = written(tmp_path, plain_label("a中"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()


@pytest.mark.parametrize("epochs", [1, 7])
def test_curves_are_drawn(tmp_path, epochs):
    records = [
        EpochRecord(
            i + 1,
            {"loss": 1 / (i + 1), "accuracy": 0.5},
            {"loss": 1 / (i + 2), "accuracy": 0.6},
            0.1,
            1.0,
        )
        for i in range(epochs)
    ]
    draw_curves(records, epochs, ("loss", "accuracy"), tmp_path / "c.png")
    image = imread(tmp_path / "c.png")
    assert image.shape[1] > 900
    assert image.std() > 0.05  # not blank


@pytest.mark.parametrize(
    ("start", "freq", "steps"),
    [("2023-08-29", "D", 60), ("2023-12-25", "D", 35), ("2023-12-30 05:00", "h", 96)],
)
@pytest.mark.parametrize("as_index", [True, False])
def test_dates_below_a_picture_do_not_overlap(tmp_path, start, freq, steps, as_index):
    times = pd.date_range(start, periods=steps, freq=freq)
    figure = Figure(figsize=(5, 2), layout="constrained")
    axes = figure.subplots()
    axes.plot(times if as_index else np.asarray(times), range(steps))
    save_figure(figure, tmp_path / "p.png")
    labels = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert len(labels) > 2
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(labels))
