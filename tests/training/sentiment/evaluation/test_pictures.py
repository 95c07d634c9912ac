import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread
from scipy.special import softmax

from gru_training.sentiment.evaluation import pictures as classification_pictures
from gru_training.sentiment.evaluation.pictures import (
    draw_calibration,
    draw_confusion_matrix,
    wilson_interval,
)


@pytest.mark.parametrize("classes", [2, 5, 40])
def test_confusion_matrix_is_drawn(tmp_path, classes):
    """Names of classes are no formulas."""
    counts = np.arange(classes**2).reshape(classes, classes)
    names = [("class number {} $x_", "$_$ {}", "a$^$ {}")[k % 3].format(k) for k in range(classes)]
    draw_confusion_matrix(counts, names, tmp_path / "m.png")
    assert imread(tmp_path / "m.png").std() > 0.05


@pytest.mark.parametrize(("rows", "temperature"), [(1, 0.1), (1, 2.3), (30, 1.0), (900, 2.3)])
def test_calibration_is_drawn(tmp_path, rows, temperature):
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (rows, 3)).astype(np.float32)
    draw_calibration(rng.integers(0, 3, rows), logits, temperature, tmp_path / "c.png")
    assert imread(tmp_path / "c.png").std() > 0.05


def test_every_row_is_in_the_histogram_of_probabilities(tmp_path, monkeypatch):
    """Including rows less sure than the mean of the least sure bin."""
    drawn = []
    monkeypatch.setattr(
        classification_pictures, "save_figure", lambda figure, _: drawn.append(figure)
    )
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 1, (30, 3)).astype(np.float32)
    draw_calibration(rng.integers(0, 3, 30), logits, 0.7, tmp_path / "c.png")
    (figure,) = drawn
    shown, end = figure.axes[1].get_xlim()
    for temperature in (0.7, 1.0):
        confidence = softmax(logits.astype(np.float64) / temperature, axis=1).max(axis=1)
        assert shown <= confidence.min() < confidence.max() <= end


@pytest.mark.parametrize("wrong", [0, 300])
def test_axes_of_percents_say_where_they_are(tmp_path, monkeypatch, wrong):
    figures = []
    monkeypatch.setattr(classification_pictures, "save_figure", lambda f, _: figures.append(f))
    labels = np.arange(900) % 3
    logits = 9.0 * np.eye(3)[np.where(np.arange(900) < wrong, labels - 1, labels)]
    draw_calibration(labels, logits, 1.0, tmp_path / "c.png")
    (figure,) = figures
    FigureCanvasAgg(figure).draw()
    above, below = figure.axes
    for axis in (above.yaxis, below.xaxis):
        ticks = list(zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True))
        assert len(ticks) > 2
        for place, label in ticks:
            assert float(label.get_text().removesuffix("%")) == pytest.approx(100 * place)


def test_wilson_interval_against_published_values():
    # Newcombe (1998), Statistics in Medicine 17, table I: 81/263 and 0/20.
    np.testing.assert_allclose(wilson_interval(81 / 263, 263), (0.2553, 0.3662), atol=5e-5)
    np.testing.assert_allclose(wilson_interval(0.0, 20), (0.0, 0.1611), atol=5e-5)


@pytest.mark.parametrize("rows", [1, 7, 600])
def test_wilson_interval_holds_the_share_and_is_no_wider_than_0_to_1(rows):
    for right in range(rows + 1):
        low, high = wilson_interval(right / rows, rows)
        assert -1e-12 < low <= right / rows <= high < 1 + 1e-12
