"""Labels that were turned are found, and few others are."""

import numpy as np
import scipy.sparse as sp

from gru_training.sentiment.evaluation.doubtful_labels import (
    doubtful_labels,
    doubtful_table,
    out_of_fold_scores,
)


def test_the_rule_by_hand():
    labels = np.array([0, 0, 0, 1, 1, 1])
    of_first = np.array([0.9, 0.8, 0.1, 0.2, 0.7, 0.65])
    # Mean probability of class 0 over its rows .6, of class 1 over its rows .48: the third row
    # counts as class 1 (.9 >= .48), the fifth and the sixth as class 0 (.7 and .65 >= .6).
    found = doubtful_labels(labels, np.stack([of_first, 1 - of_first], 1))
    assert [one.row for one in found] == [2, 4, 5]
    assert [one.suggested for one in found] == [1, 0, 0]
    np.testing.assert_allclose([one.of_label for one in found], [0.1, 0.3, 0.35])


def test_turned_labels_come_first():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 400)
    words = np.stack([np.where(truth == k, 0.8, 0.1) for k in range(3)], 1).repeat(4, axis=1)
    counts = sp.csr_matrix((rng.random(words.shape) < words).astype(np.float32))
    turned = rng.choice(400, 20, replace=False)
    labels = truth.copy()
    labels[turned] = (truth[turned] + 1) % 3
    scores = out_of_fold_scores(counts, labels)
    found = doubtful_labels(labels, scores)
    first = [one.row for one in found[:20]]
    assert len(set(first) & set(turned)) >= 15  # by chance it would be one
    assert all(one.suggested == truth[one.row] for one in found if one.row in turned)
    table = doubtful_table(found, [f"t{k}" for k in range(400)], (), labels, ("a", "b", "c"))
    assert table[0]["text"] == f"t{found[0].row}"
    assert table[0]["label"] != table[0]["suggested"]


def test_too_few_rows_for_folds():
    assert out_of_fold_scores(sp.csr_matrix(np.ones((4, 2))), np.array([0, 0, 0, 1])) is None
