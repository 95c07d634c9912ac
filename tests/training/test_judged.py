"""Standard errors of differences between trials."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from gru_training.criterion import judged, standard_error


def test_of_a_mean_it_is_the_error_of_a_mean_over_the_parts():
    one, other = np.random.default_rng(0).normal(size=(2, 200))
    errors = [judged(lambda kept, of=of: float(of[kept].mean()), 200, 10) for of in (one, other)]
    parts = (one - other).reshape(10, 20).mean(axis=1)
    expected = parts.std(ddof=1) / np.sqrt(10)
    assert errors[0].value == pytest.approx(one.mean())
    assert standard_error(*(each.left_out for each in errors)) == pytest.approx(expected)


@pytest.mark.slow
def test_of_another_measure_it_is_what_new_rows_show():
    """Macro F1 of two classifiers: the deviation over many sets of validation rows."""
    random = np.random.default_rng(1)
    gains, errors = [], []
    for _ in range(150):
        truth = random.choice(3, 300, p=[0.6, 0.3, 0.1])
        answers = [np.where(random.random(300) < share, truth, 0) for share in (0.6, 0.7)]
        found = [
            judged(lambda kept, a=a, t=truth: f1_score(t[kept], a[kept], average="macro"), 300)
            for a in answers
        ]
        gains.append(found[1].value - found[0].value)
        errors.append(standard_error(found[1].left_out, found[0].left_out))
    assert np.mean(errors) == pytest.approx(np.std(gains), rel=0.2)


@pytest.mark.parametrize(("rows", "parts", "left_out"), [(7, 20, 7), (100, 1, 0), (100, 0, 0)])
def test_few_rows(rows, parts, left_out):
    found = judged(lambda kept: float(kept.sum()), rows, parts)
    assert (found.value, len(found.left_out)) == (rows, left_out)
