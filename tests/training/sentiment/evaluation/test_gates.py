"""The picture of gates: the choice of rows, what is read from them, and that it can be drawn."""

import numpy as np
import pytest
import tensorflow as tf
from matplotlib.image import imread

from gru_training.sentiment.evaluation.gates import ReadText, choose_rows, draw_gates, read_texts


def test_the_surest_right_and_wrong_short_rows_of_each_class_are_chosen():
    p = np.array([0.9, 0.6, 0.99, 0.3, 0.8, 0.95, 0.97, 0.2, 0.45])
    scores = np.stack([p, 1 - p], axis=1)
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 0, 1])
    lengths = np.array([10, 40, 41, 5, 3, 2, 9, 3, 20])
    # Row 2 is too long and row 5 too short.
    assert choose_rows(scores, labels, lengths) == [0, 3, 6, 7]
    assert choose_rows(scores, labels, np.full(9, 100)) == []
    assert choose_rows(scores, np.zeros(9, int), lengths) == [6, 7]


@pytest.mark.slow
def test_what_is_read_ends_in_the_stored_answer(tiny_run):
    rows = list(tiny_run.test_predictions())[:3]
    texts = read_texts(
        tiny_run.load_model(), tiny_run.preprocessor(), tiny_run.temperature.value,
        [row._asdict() for row in rows],
    )  # fmt: skip
    units = tiny_run.config.model.units
    for text, row in zip(texts, rows, strict=True):
        words = tiny_run.preprocessor().tokens(tf.constant([row.text])).to_list()[0]
        assert text.tokens == [word.decode() for word in words]
        assert text.update_gate.shape == text.reset_gate.shape == (len(words), 1, 2, units)
        assert 0 < text.update_gate.min() < text.update_gate.max() < 1
        np.testing.assert_allclose(text.scores[-1], row.scores, atol=1e-6)
        np.testing.assert_allclose(text.scores.sum(axis=1), 1, atol=1e-6)


def test_any_tokens_layers_and_classes_are_drawn(tmp_path):
    rng = np.random.default_rng(0)
    texts = [
        ReadText(
            "class 2",
            ["$_$", "映", "🎬", "w" * 60, *["x"] * more],
            *rng.random((2, 4 + more, 2, 2, 6)),
            rng.dirichlet(np.ones(7), 4 + more),
        )
        for more in (0, 30)
    ]
    draw_gates(texts, [f"class {k}" for k in range(7)], tmp_path / "gates.png")
    picture = imread(tmp_path / "gates.png")
    assert picture.shape[0] > 900
    assert picture.std() > 0.05  # not blank
