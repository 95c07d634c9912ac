"""The queue of batches, without anything that runs them."""

import math
import time

import numpy as np
import pytest

from gru_serving.config.batching_options import BatchingOptions
from gru_serving.engine.batching.scheduler import BatchQueue
from tests.serving.engine.batching.gate import PATIENT


@pytest.fixture
def queue():
    """Batches of four rows; larger requests are split; nothing runs."""
    options = BatchingOptions(
        max_batch_size=12,
        max_execution_batch_size=4,
        enable_large_batch_splitting=True,
        batch_timeout_micros=PATIENT,
    )
    return BatchQueue(options, ("x",), ("y",), lambda *_: None)


def put(queue, rows):
    """The tasks of a request with this many rows."""
    tasks, _ = queue.add("shape", [np.zeros((rows, 1))], rows, None, None)
    return tasks


def sizes(tasks):
    return [task.size for task in tasks]


def test_parts_fill_the_open_batch_first_and_none_is_empty(queue):
    assert sizes(put(queue, 3)) == [3]
    assert sizes(put(queue, 7)) == [1, 4, 2]
    assert sizes(put(queue, 5)) == [2, 3]  # the open batch is the last one, not the first
    assert sizes(put(queue, 1)) == [1]
    assert sizes(put(queue, 6)) == [4, 2]  # none is open
    assert sizes(put(queue, 2)) == [2]
    taken = [sizes(queue.take(math.inf)) for _ in range(6)]
    assert taken == [[3, 1], [4], [2, 2], [3, 1], [4], [2, 2]]
    assert queue.rows == 0


def test_those_who_join_a_batch_do_not_put_it_off(queue):
    put(queue, 1)
    due = queue.due()
    time.sleep(0.001)
    put(queue, 2)
    assert queue.due() == due


def test_who_leaves_makes_room(queue):
    (gone,) = put(queue, 2)
    put(queue, 1)
    assert queue.withdraw(gone)
    assert not queue.withdraw(gone)
    assert sizes(put(queue, 3)) == [3]
    assert sizes(queue.take(math.inf)) == [1, 3]
    assert queue.rows == 0
    assert not queue.waits()
