"""Answers come in the order of the rows, however the batches were formed."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from gru_training.scoring.engine import CHUNK, batches_by_length, score_batches, score_table
from gru_training.scoring.scorer import BatchLimits, RowError
from tests.training.scoring.doubling import Doubling


def words(count, seed=0, longest=30):
    lengths = np.random.default_rng(seed).integers(0, longest + 1, count)
    return [chr(97 + i % 26) * length for i, length in enumerate(lengths)]


@pytest.mark.parametrize("count", [0, 1, 2, 9, 500, CHUNK + 1])
@pytest.mark.parametrize("in_flight", [1, 3])
def test_answers_stand_in_the_order_of_the_rows(count, in_flight):
    rows = words(count)
    scorer = Doubling(BatchLimits(600, 100, in_flight))
    answers = score_table(scorer, pa.table({"id": range(count), "w": rows}), {"word": "w"})
    assert answers.schema == scorer.answers
    assert answers["twice"].to_pylist() == [row * 2 for row in rows]
    assert answers["size"].to_pylist() == [len(row) for row in rows]


def test_a_table_of_many_chunks_is_one():
    rows = words(100)
    table = pa.concat_tables([pa.table({"word": rows[i : i + 7]}) for i in range(0, 100, 7)])
    scorer = Doubling(BatchLimits(steps=10**6, rows=1000))
    assert score_table(scorer, table)["twice"].to_pylist() == [row * 2 for row in rows]
    assert len(scorer.asked) == 1


def test_a_stream_is_answered_piece_by_piece():
    taken = []

    def stream():
        for start in range(0, 50, 10):
            taken.append(start)
            yield pa.record_batch({"word": [str(start + i) for i in range(10)]})

    answers = score_batches(Doubling(), stream())
    assert next(answers)["twice"].to_pylist() == [f"{i}{i}" for i in range(10)]
    assert len(taken) <= 2  # the next piece may be read ahead, but no more
    assert [len(piece) for piece in answers] == [10] * 4


def test_no_batch_is_beyond_the_limits_and_a_long_row_pads_none_of_its_neighbours():
    rows = [*words(300, longest=20), "x" * 1000]
    scorer = Doubling(BatchLimits(steps=60, rows=8))
    score_table(scorer, pa.table({"word": rows}))
    *others, longest = scorer.asked
    assert longest == (1, 1000)
    assert all(count <= 8 and count * size <= 60 for count, size in others)
    padded = sum(count * size for count, size in others)
    assert padded < 1.3 * sum(map(len, rows[:-1]))


def test_batches_hold_each_row_once():
    lengths = np.random.default_rng(1).integers(0, 50, 777)
    batches = batches_by_length(lengths, BatchLimits(steps=200, rows=32))
    assert sorted(np.concatenate(batches)) == list(range(777))
    ends = [(lengths[batch].min(), lengths[batch].max()) for batch in batches]
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ends))
    assert batches_by_length(np.zeros(0, np.int64), BatchLimits()) == []


def test_batches_of_one_chunk_are_asked_at_the_same_time():
    scorer = Doubling(BatchLimits(steps=100, rows=10, in_flight=4), delay=0.02)
    score_table(scorer, pa.table({"word": ["abc"] * 100}))
    assert scorer.most_at_once == 4


def test_a_bad_row_is_named_by_its_place_in_the_stream():
    table = pa.table({"w": ["a"] * CHUNK + ["b", None]})
    with pytest.raises(RowError) as raised:
        score_table(Doubling(), table, {"word": "w"})
    assert str(raised.value) == f"row {CHUNK + 1}, column 'w': expected a word, got none"


def test_a_missing_column_is_named():
    with pytest.raises(KeyError, match="word"):
        score_table(Doubling(), pa.table({"text": ["a"]}))
