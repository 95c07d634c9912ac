"""Every token is a target once, and each document begins at the beginning of a chunk."""

from collections import defaultdict

import numpy as np
import pytest

from gru_training.language.batches import DocumentChunks
from gru_training.language.reading import END_ID

RNG = np.random.default_rng(0)
ROWS = [
    (100 * n + 3 + np.arange(length)).astype(np.int32)
    for n, length in enumerate([0, 1, 5, 7, 8, 8, 9, 23, 40, 2])
]


def documents_of(chunks, batch_size):
    """What the rows of batches read, as a reader that knows nothing of how they were made."""
    current, found = defaultdict(list), []
    for chunk, targets in chunks:
        rest = list(targets)
        for row in range(batch_size):
            ids = [number for number in chunk.ids[row] if number]
            if not ids:
                continue
            own, rest = rest[: len(ids)], rest[len(ids) :]
            if not chunk.goes_on[row]:
                current[row] = []
                found.append(current[row])
            assert ids == [*current[row][-1:], *own][: len(ids)] or not current[row]
            if not current[row]:
                current[row].append(ids[0])
                assert ids[1:] == own[:-1]
            current[row] += own
        assert not rest
    return found


@pytest.mark.parametrize(("batch_size", "steps"), [(1, 4), (3, 5), (4, 64), (16, 8)])
def test_documents_are_read_whole_and_in_order(batch_size, steps):
    chunks = DocumentChunks(ROWS, batch_size, steps)
    found = documents_of(chunks, batch_size)
    expected = [[END_ID, *row, END_ID] for row in ROWS]
    assert sorted(found) == sorted(expected)
    for chunk, _ in chunks:
        assert chunk.ids.shape[0] == batch_size
        assert chunk.ids.shape[1] <= steps


def test_epochs_have_all_tokens_in_another_order_that_can_be_drawn_again():
    chunks = DocumentChunks(ROWS * 4, 3, 8, seed=5)
    epochs = [documents_of(chunks.epoch(number), 3) for number in (1, 2)]
    assert epochs[0] != epochs[1]
    assert sorted(epochs[0]) == sorted(epochs[1])
    again = documents_of(DocumentChunks(ROWS * 4, 3, 8, seed=5).epoch(2), 3)
    assert again == epochs[1]
    assert sum(len(targets) for _, targets in chunks.epoch(1)) == chunks.tokens
    assert chunks.tokens == sum(len(row) + 1 for row in ROWS * 4)
    assert len(chunks) == sum(1 for _ in chunks.epoch(1))


def test_a_long_document_is_cut_for_training_and_no_token_is_lost():
    row = (3 + np.arange(1000)).astype(np.int32)
    chunks = DocumentChunks([row], 4, 10, seed=0)
    passages = documents_of(chunks.epoch(1), 4)
    assert len(passages) > 8
    passages.sort(key=lambda ids: ids[0] if ids[0] != END_ID else 0)
    targets = [number for passage in passages for number in passage[1:]]
    assert targets == [*row, END_ID]
    assert [passage[0] for passage in passages[1:]] == [passage[-1] for passage in passages[:-1]]


@pytest.mark.parametrize(("longest", "least"), [(40, 0.65), (200, 0.85)])
def test_little_is_padding(longest, least):
    rng = np.random.default_rng(0)
    rows = [np.full(length, 3, np.int32) for length in rng.integers(1, longest, 2000)]
    cells = targets = 0
    for chunk, found in DocumentChunks(rows, 16, 32, seed=0).epoch(1):
        cells += chunk.ids.size
        targets += len(found)
    lengths = np.array([len(row) + 1 for row in rows])
    by_chance = lengths.sum() / (16 * lengths.reshape(-1, 16).max(axis=1)).sum()
    assert targets / cells > max(least, by_chance)
