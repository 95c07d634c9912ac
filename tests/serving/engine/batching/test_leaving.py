"""Deadlines, callers that leave, and the end of sessions and schedulers."""

import time
from concurrent.futures import TimeoutError as FutureTimeout

import numpy as np
import pytest

from gru_serving.errors import (
    DeadlineExceeded,
    ResourceExhausted,
    Unavailable,
)
from gru_serving.telemetry.metrics import Metrics
from tests.serving.engine.batching.gate import PATIENT, ask, enqueued, hold
from tests.serving.scrape import parsed, rendered
from tests.waiting import wait_until


def test_deadline_while_waiting(make, callers):
    metrics = Metrics()
    session, gate = make(metrics=metrics)
    first = hold(callers, session, gate)
    started = time.monotonic()
    with pytest.raises(ResourceExhausted) as caught:
        session.run({"x": np.array([[1]])}, ["y"], timeout_ms=150)
    assert str(caught.value) == "Run() timeout exceeded while waiting in batching queue"
    latency = ":tensorflow:serving:batching_session:queuing_latency"
    assert parsed(rendered(metrics))[f"{latency}_count"] == {("",): 2}
    assert parsed(rendered(metrics))[f"{latency}_sum"][("",)] > 140_000
    assert 0.14 < time.monotonic() - started < 30
    assert enqueued(session) == 0
    gate.open.set()
    first.result(60)
    assert session.run({"x": np.array([[3]])}, ["y"])[0] == [[6]]
    assert [batch[0, 0] for batch in gate.batches] == [0, 3]


def test_a_full_batch_that_all_have_left_fills_anew(make, callers):
    session, gate = make(max_batch_size=2, batch_timeout_micros=PATIENT)
    gate.open.clear()
    first = ask(callers, session, [[0], [0]])
    assert gate.entered.acquire(timeout=60)
    for gone in [ask(callers, session, [[1]], timeout_ms=200) for _ in range(2)]:
        with pytest.raises(ResourceExhausted):
            gone.result(60)
    waiting = ask(callers, session, [[2]])
    wait_until(lambda: enqueued(session) == 1)
    gate.open.set()
    first.result(60)
    with pytest.raises(FutureTimeout):
        waiting.result(0.3)
    ask(callers, session, [[3]]).result(60)
    assert waiting.result(60)[0] == [[4]]
    assert [len(batch) for batch in gate.batches] == [2, 2]


def test_who_stays_in_a_full_batch_does_not_wait_for_company(make, callers):
    session, gate = make(max_batch_size=2, batch_timeout_micros=PATIENT)
    gate.open.clear()
    first = ask(callers, session, [[0], [0]])
    assert gate.entered.acquire(timeout=60)
    gone, waiting = ask(callers, session, [[1]], timeout_ms=200), ask(callers, session, [[2]])
    with pytest.raises(ResourceExhausted):
        gone.result(60)
    gate.open.set()
    first.result(60)
    assert waiting.result(20)[0] == [[4]]


def test_deadline_while_running_leaves_the_neighbour_alone(make, callers):
    session, gate = make(max_batch_size=2, batch_timeout_micros=PATIENT)
    gate.open.clear()
    patient = ask(callers, session, [[1]], timeout_ms=20_000)
    hasty = ask(callers, session, [[2]], timeout_ms=300)
    with pytest.raises(DeadlineExceeded, match=r"^Timed out waiting for notification$"):
        hasty.result(60)
    gate.open.set()
    assert patient.result(60)[0] == [[2]]
    (timeout,) = gate.timeouts
    assert 15_000 < timeout <= 20_000


def test_no_deadline_if_one_of_the_batch_has_none(make, callers):
    session, gate = make(max_batch_size=2, batch_timeout_micros=PATIENT)
    asked = [ask(callers, session, [[1]], timeout_ms=ms) for ms in (0, 9000)]
    for answer in asked:
        answer.result(60)
    assert gate.timeouts == [0]


def test_close_waits_for_runs_that_nobody_waits_for(make, callers):
    session, gate = make()
    gate.open.clear()
    with pytest.raises(DeadlineExceeded):
        session.run({"x": np.array([[1]])}, ["y"], timeout_ms=50)
    closing = callers.submit(session.close)
    time.sleep(0.1)
    assert not gate.closed
    gate.open.set()
    closing.result(60)
    assert gate.closed


def test_close_waits_for_a_request_without_rows(make, callers):
    session, gate = make(batch_timeout_micros=300_000)
    empty = ask(callers, session, np.empty((0, 1)))
    wait_until(lambda: any(queue.waits() for queue in session._queues.values()))
    session.close()
    assert empty.result(20)[0].shape == (0, 1)
    assert gate.closed


def test_close_does_not_wait_for_a_batch_that_everybody_left(make):
    session, gate = make(batch_timeout_micros=PATIENT)
    with pytest.raises(ResourceExhausted):
        session.run({"x": np.array([[1]])}, ["y"], timeout_ms=50)
    started = time.monotonic()
    session.close()
    assert time.monotonic() - started < 20
    assert not gate.batches


def test_scheduler_runs_what_waits_before_it_closes(make, callers):
    session, _ = make(max_batch_size=100, batch_timeout_micros=PATIENT)
    waiting = ask(callers, session, [[1]])
    wait_until(lambda: enqueued(session) == 1)
    session._scheduler.close()
    assert waiting.result(60)[0] == [[2]]
    with pytest.raises(Unavailable, match="closed"):
        session.run({"x": np.array([[1]])}, ["y"])
