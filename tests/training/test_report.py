import numpy as np
import pytest
from matplotlib.image import imread

from training.fit_state import EpochRecord
from training.learning_curves import draw_curves
from training.report import (
    confusion_counts,
    draw_confusion_matrix,
    wilson_interval,
    write_summary,
)


def test_confusion_counts():
    counts = confusion_counts(np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 0]), 3)
    assert counts.tolist() == [[1, 1, 0], [0, 1, 0], [2, 0, 0]]


def test_wilson_interval_against_published_values():
    # Newcombe (1998), Statistics in Medicine 17, table I: 81/263 and 0/20.
    np.testing.assert_allclose(wilson_interval(81 / 263, 263), (0.2553, 0.3662), atol=5e-5)
    np.testing.assert_allclose(wilson_interval(0.0, 20), (0.0, 0.1611), atol=5e-5)


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


@pytest.mark.parametrize("classes", [2, 5, 40])
def test_confusion_matrix_is_drawn(tmp_path, classes):
    counts = np.arange(classes**2).reshape(classes, classes)
    draw_confusion_matrix(counts, [f"class number {k} $x_" for k in range(classes)],
                          tmp_path / "m.png")  # fmt: skip
    assert imread(tmp_path / "m.png").std() > 0.05


def test_summary_shows_the_baseline_beside_and_escapes_text(tiny_run):
    mistake = {"text": "a | b <br> c", "label": "x", "predicted": "y", "probability": 0.9}
    summary = write_summary(tiny_run.metrics, tiny_run.classes, [mistake])
    lines = summary.split("\n")
    baseline = tiny_run.metrics["baselines"]["bag of words, logistic regression"]
    row = next(line for line in lines if line.startswith("| bag of words"))
    assert f"{baseline['test_accuracy']:.2%}" in row
    assert r"a \| b &lt;br> c" in summary
    assert "nan" not in summary.lower()


def test_class_names_are_no_formulas(tmp_path):
    path = tmp_path / "matrix.png"
    draw_confusion_matrix(np.eye(2, dtype=int), ["$_$", "a$^$"], path)
    assert path.read_bytes().startswith(b"\x89PNG")
