"""Requests of more rows than a batch holds are split; batches are filled up to allowed sizes."""

import numpy as np
import pytest

from gru_serving.errors import (
    Internal,
    InvalidArgument,
    Unavailable,
)
from gru_serving.telemetry.metrics import Metrics
from tests.serving.engine.batching.gate import PATIENT, ask, enqueued, hold
from tests.serving.scrape import parsed, rendered
from tests.waiting import wait_until


def test_large_requests_are_split(make, callers):
    session, gate = make(
        max_batch_size=12, max_execution_batch_size=4, enable_large_batch_splitting=True
    )
    hold(callers, session, gate)
    small = ask(callers, session, [[-0], [1], [2]])
    wait_until(lambda: enqueued(session) == 3)
    x = np.arange(10)[:, None]
    large = ask(callers, session, x)
    wait_until(lambda: enqueued(session) == 13)
    gate.open.set()
    np.testing.assert_array_equal(large.result(60)[0], 2 * x)
    np.testing.assert_array_equal(small.result(60)[0], [[0], [2], [4]])
    assert [batch[:, 0].tolist() for batch in gate.batches[1:]] == [
        [0, 1, 2, 0],
        [1, 2, 3, 4],
        [5, 6, 7, 8],
        [9],
    ]
    with pytest.raises(InvalidArgument, match="Task size 13 is larger than maximum input batch"):
        session.run({"x": np.ones((13, 1))}, ["y"])


def test_split_request_beyond_the_capacity(make, callers):
    session, gate = make(
        max_batch_size=12,
        max_execution_batch_size=4,
        enable_large_batch_splitting=True,
        max_enqueued_batches=2,
    )
    hold(callers, session, gate)
    ask(callers, session, np.ones((3, 1), int))
    wait_until(lambda: enqueued(session) == 3)
    with pytest.raises(Unavailable) as caught:
        session.run({"x": np.ones((6, 1), int)}, ["y"])
    assert str(caught.value) == (
        "The batch scheduling queue to which this task was submitted is full; task size is 6 but "
        "scheduling capacity is only 5 (num_enqueued_batches=1, max_enqueued_batches=2, "
        "open_batch_size=3, max_execution_batch_size=4)"
    )


def test_error_in_one_part_of_a_split_request(make, callers):
    session, _ = make(
        max_batch_size=8, max_execution_batch_size=2, enable_large_batch_splitting=True
    )
    with pytest.raises(InvalidArgument, match="negative: -5"):
        session.run({"x": np.array([[1], [2], [3], [-5], [4], [5]])}, ["y"])
    assert session.run({"x": np.array([[1], [2], [3]])}, ["y"])[0].tolist() == [[2], [4], [6]]


def test_batches_are_filled_up_to_an_allowed_size(make, callers):
    metrics = Metrics()
    session, gate = make(
        metrics=metrics,
        max_batch_size=8,
        allowed_batch_sizes=(1, 4, 8),
        batch_timeout_micros=300_000,
    )
    first = ask(callers, session, [[1], [2], [3]])
    wait_until(lambda: enqueued(session) == 3)
    last = ask(callers, session, [[7], [6]])
    assert first.result(60)[0].tolist() == [[2], [4], [6]]
    assert last.result(60)[0].tolist() == [[14], [12]]
    # Padding rows repeat the first row of the last task.
    assert gate.batches[0][:, 0].tolist() == [1, 2, 3, 7, 6, 7, 7, 7]
    counted = parsed(rendered(metrics))
    batching = ":tensorflow:serving:batching_session:"
    assert counted[f"{batching}padding_size_sum"] == {("8",): 3}
    assert counted[f"{batching}padding_size_count"] == {("8",): 1}
    assert counted[f"{batching}input_batch_size_sum"] == {(): 5}
    assert counted[f"{batching}input_batch_size_count"] == {(): 2}
    assert counted[f"{batching}processed_batch_size_sum"] == {(): 8}
    assert counted[f"{batching}wrapped_run_count"] == {(): 1}
    assert counted[f"{batching}queuing_latency_count"] == {("",): 2}
    assert counted[f"{batching}queuing_latency_sum"][("",)] > 300_000


def test_a_bad_request_spoils_no_other(make, callers):
    session, gate = make(max_batch_size=3, batch_timeout_micros=PATIENT)
    good, bad, fine = (ask(callers, session, [[n]]) for n in (4, -1, 6))
    assert good.result(60)[0] == [[8]]
    assert fine.result(60)[0] == [[12]]
    with pytest.raises(InvalidArgument, match="negative: -1"):
        bad.result(60)
    assert [len(batch) for batch in gate.batches] == [3, 1, 1, 1]


def test_a_crash_of_the_session_reaches_every_caller(make, callers, caplog):
    session, gate = make(max_batch_size=2, batch_timeout_micros=PATIENT)
    gate.run = lambda *_: 1 / 0
    asked = [ask(callers, session, [[n]]) for n in range(2)]
    for answer in asked:
        with pytest.raises(Internal, match="ZeroDivisionError"):
            answer.result(60)
    assert "a batch of 2 requests failed" in caplog.text
