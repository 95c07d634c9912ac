"""The benchmarks of cold costs and of thresholds: their data, tables and suggestions."""

import numpy as np
import pytest

from benchmarks import cold
from benchmarks.layer import thresholds
from keras_gru.kernel import execution


def test_an_epoch_has_batches_of_three_sizes_and_many_lengths():
    for lengths in cold.LENGTHS:
        data = cold.batches(lengths)
        rows, steps = zip(*(x.shape[:2] for x, _ in data), strict=True)
        assert len(data) == cold.BATCHES
        assert set(rows) == {32, 17, 9}
        assert min(steps) >= 6
        assert len(set(steps)) >= 5
        assert all(len(x) == len(y) for x, y in data)
    assert max(x.shape[1] for x, _ in cold.batches("heavy-tailed")) > 256


def test_a_row_has_medians_of_both_clocks_over_those_of_keras():
    def runs(*seconds):
        return [{"figures": {"export": (s, 10 * s)}, "compiled": 2} for s in seconds]

    found = {cold.KERAS: runs(1, 2, 9), cold.OURS: runs(1, 3, 5), cold.OURS_KEPT: []}
    assert cold.table_rows("texts", found) == [
        "| texts: export | 1.50 × (3.00, 2.00) | 1.50 × (30.00, 20.00) |  |  | 2 |"
    ]


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ([(1, 0.5), (4, 0.9), (16, 1.2)], "about 8, from 4 to 16"),
        ([(1, 0.5), (4, 1.01), (16, 1.2)], "about 4, from 1 to 16"),
        ([(1, 0.5), (4, 0.9)], "more than 4"),
        ([(1, 1.5), (4, 1.9)], "at most 1"),
        ([(1, 1.5), (4, 0.9)], "neither way"),
        ([(1, 1.01), (4, 0.99)], "the same time"),
    ],
)
def test_a_suggestion_is_where_the_gains_cross_one(gains, said):
    assert said in thresholds.suggestion(gains)


def test_thresholds_are_those_of_the_layer_and_left_as_they_were():
    before = {name: getattr(execution, name) for name in thresholds.THRESHOLDS}
    for threshold in thresholds.THRESHOLDS.values():
        quantities = list(map(threshold.quantity, threshold.shapes))
        assert quantities == sorted(quantities)
        for way in (threshold.below, threshold.above):
            with thresholds._forced(way):
                assert {name: getattr(execution, name) for name in way} == way
    assert {name: getattr(execution, name) for name in before} == before


def test_both_ways_of_a_threshold_run():
    threshold = thresholds.THRESHOLDS["FEW_ROWS"]._replace(shapes=())
    below, above = thresholds._both_ways(threshold, (2, 3, 2, 4), "training", 1)
    assert min(below, above) > 0
    assert np.isfinite([below, above]).all()
