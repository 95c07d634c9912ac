"""Which requests share a batch, when it runs, and what is refused."""

import gc
import itertools
import time
import weakref
from collections import deque

import numpy as np
import pytest

from gru_serving.config.batching_options import BatchingOptions
from gru_serving.engine.batching.session import BatchingSession
from gru_serving.errors import (
    FailedPrecondition,
    InvalidArgument,
    Unavailable,
)
from gru_serving.telemetry.metrics import Metrics
from tests.serving.engine.batching.gate import PATIENT, ask, enqueued, hold
from tests.waiting import wait_until


def test_a_full_batch_runs_at_once_and_answers_go_to_their_callers(make, callers):
    session, gate = make(max_batch_size=6, batch_timeout_micros=PATIENT)
    asked = [ask(callers, session, np.full((n, 2), n)) for n in (1, 2, 3)]
    for n, answer in zip((1, 2, 3), asked, strict=True):
        np.testing.assert_array_equal(answer.result(60)[0], np.full((n, 2), 2 * n))
    (batch,) = gate.batches
    assert sorted(batch[:, 0]) == [1, 2, 2, 3, 3, 3]


def test_a_batch_that_is_not_full_runs_after_the_timeout(make, callers):
    session, gate = make(max_batch_size=100, batch_timeout_micros=1_000_000)
    started = time.monotonic()
    asked = [ask(callers, session, [[n]]) for n in range(3)]
    for n, answer in enumerate(asked):
        assert answer.result(60)[0] == [[2 * n]]
    assert 0.99 < time.monotonic() - started < 30
    assert len(gate.batches) == 1


@pytest.mark.parametrize("longest", [2**63 - 1, 2**31 - 1])
def test_the_longest_timeouts(make, callers, longest):
    session, gate = make(max_batch_size=2, batch_timeout_micros=longest)
    first = ask(callers, session, [[1]], timeout_ms=longest)
    wait_until(lambda: session._scheduler._idle == 1 and enqueued(session) == 1)
    second = ask(callers, session, [[2]])
    assert (first.result(20)[0], second.result(20)[0]) == ([[2]], [[4]])
    assert len(gate.batches) == 1


def test_what_does_not_fit_closes_the_batch(make, callers):
    session, gate = make(max_batch_size=4, batch_timeout_micros=PATIENT)
    first = ask(callers, session, np.ones((3, 1)))
    wait_until(lambda: enqueued(session) == 3)
    second = ask(callers, session, np.ones((2, 1)))
    assert len(first.result(60)[0]) == 3
    third = ask(callers, session, np.ones((2, 1)))
    assert len(second.result(60)[0]) == len(third.result(60)[0]) == 2
    assert [len(batch) for batch in gate.batches] == [3, 4]


def test_a_free_thread_takes_all_that_waits(make, callers):
    session, gate = make()
    first = hold(callers, session, gate)
    rest = [ask(callers, session, [[n]]) for n in range(1, 9)]
    wait_until(lambda: enqueued(session) == 8)
    gate.open.set()
    assert [answer.result(60)[0][0, 0] for answer in rest] == list(range(2, 18, 2))
    first.result(60)
    assert [len(batch) for batch in gate.batches] == [1, 8]


def test_as_many_batches_run_at_once_as_there_are_threads(make, callers):
    session, gate = make(threads=3, max_batch_size=1, max_enqueued_batches=100)
    gate.open.clear()
    asked = [ask(callers, session, [[n]]) for n in range(8)]
    for _ in range(3):
        assert gate.entered.acquire(timeout=60)
    assert not gate.entered.acquire(timeout=0.2)
    gate.open.set()
    assert sorted(int(answer.result(60)[0][0, 0]) for answer in asked) == list(range(0, 16, 2))


def test_different_shapes_dtypes_and_outputs_share_no_batch(make, callers):
    session, gate = make()
    hold(callers, session, gate)
    kinds = [
        (np.ones((1, 3), "i4"), ("y",)), (np.ones((1, 4), "i4"), ("y",)),
        (np.ones((1, 3, 1), "i4"), ("y",)), (np.ones((1, 3), "i8"), ("y",)),
        (np.ones((1, 3), "i4"), ("y", "x")),
    ]  # fmt: skip
    asked = [ask(callers, session, x, fetches) for x, fetches in kinds * 2]
    wait_until(lambda: enqueued(session) == 10)
    gate.open.set()
    for (x, fetches), answer in zip(kinds * 2, asked, strict=True):
        outputs = answer.result(60)
        assert len(outputs) == len(fetches)
        assert (outputs[0].shape, outputs[0].dtype) == (x.shape, x.dtype)
    assert [len(batch) for batch in gate.batches] == [1, 2, 2, 2, 2, 2]


def test_the_order_of_inputs_and_outputs_does_not_matter(make, callers):
    session, gate = make(max_batch_size=6, batch_timeout_micros=PATIENT)
    x, z = np.array([[8], [6]]), np.array([[100], [42]])
    asked = [
        (fetches, callers.submit(session.run, feeds, fetches))
        for feeds, fetches in [
            ({"x": x, "z": z}, ["y", "z"]),
            ({"z": z, "x": x}, ["z", "y"]),
            ({"z": z, "x": x}, ["y", "z", "y"]),
        ]
    ]
    for fetches, answer in asked:
        expected = [{"y": 2 * x, "z": z}[name] for name in fetches]
        np.testing.assert_array_equal(answer.result(60), expected)
    assert [len(batch) for batch in gate.batches] == [6]


def test_many_orders_fill_no_memory(make):
    session, _ = make()
    orders = itertools.islice(itertools.permutations("abcdwxz"), 1100)
    for names in orders:
        feeds = {name: np.array([[ord(name)]]) for name in names}
        assert np.ravel(session.run(feeds, names)).tolist() == [ord(name) for name in names]
    assert len(session._queues) == 1
    assert len(session._routes) == 1024


def test_queues_take_turns(make, callers):
    session, gate = make(max_batch_size=1, max_enqueued_batches=100)
    hold(callers, session, gate)
    for width in (1, 1, 1, 2, 2, 2):
        before = enqueued(session)
        ask(callers, session, np.full((1, width), 7))
        wait_until(lambda before=before: enqueued(session) == before + 1)
    gate.open.set()
    wait_until(lambda: len(gate.batches) == 7)
    assert [batch.shape[1] for batch in gate.batches[1:]] == [1, 2, 1, 2, 1, 2]


def test_a_queue_that_just_had_its_turn_waits_for_the_others(make, callers):
    session, gate = make(max_batch_size=10, max_enqueued_batches=100)
    hold(callers, session, gate)
    for rows, fetches in ((10, ["y"]), (10, ["y"]), (1, ["x"])):
        before = enqueued(session)
        ask(callers, session, np.ones((rows, 1)), fetches)
        wait_until(lambda total=before + rows: enqueued(session) == total)
    gate.open.set()
    wait_until(lambda: len(gate.batches) == 4)
    assert [len(batch) for batch in gate.batches] == [1, 1, 10, 10]


def test_a_batch_that_is_due_late_keeps_no_other_waiting(make, callers):
    late, gate = make(max_batch_size=100, batch_timeout_micros=PATIENT)
    options = BatchingOptions(max_batch_size=100, batch_timeout_micros=100_000)
    soon = BatchingSession(gate, late._scheduler, options)
    waiting = ask(callers, late, [[1]])
    wait_until(lambda: enqueued(late) == 1)
    assert ask(callers, soon, [[2]]).result(20)[0] == [[4]]
    assert not waiting.done()


@pytest.mark.slow
def test_an_idle_thread_keeps_nothing_in_memory(make):
    session, gate = make()
    gate.batches = deque(maxlen=0)
    answers = session.run({"x": np.array([[1]])}, ["y"])
    kept = [weakref.ref(answers[0]), weakref.ref(session)]
    scheduler = session._scheduler
    wait_until(lambda: scheduler._idle == 1)
    session.close()
    del answers, session

    def freed():
        gc.collect()
        return not any(one() for one in kept)

    wait_until(freed)


def test_full_queue(make, callers, caplog):
    metrics = Metrics()
    session, gate = make(metrics=metrics, max_batch_size=2, max_enqueued_batches=3)
    hold(callers, session, gate)
    waiting = [ask(callers, session, [[n], [n]]) for n in range(3)]
    wait_until(lambda: enqueued(session) == 6)
    with pytest.raises(Unavailable) as caught:
        session.run({"x": np.array([[9]])}, ["y"])
    assert str(caught.value) == (
        "The batch scheduling queue to which this task was submitted is full; currently 3 batches "
        "enqueued and max_enqueued_batches is 3"
    )
    assert 'gru_serve:refused_count{reason="queue_full"} 1' in set(metrics.lines())
    assert caplog.messages == [f"Refused 1 request(s), queue_full: {caught.value}"]
    # Requests of another kind have a queue of their own.
    other = ask(callers, session, [[9]], ("y", "x"))
    gate.open.set()
    for answer in [*waiting, other]:
        answer.result(60)


def test_requests_of_many_shapes_cannot_outgrow_the_queue(make, callers):
    session, gate = make(max_batch_size=2, max_enqueued_batches=3)
    hold(callers, session, gate)
    for width in range(1, 7):
        ask(callers, session, np.ones((1, width)))
    wait_until(lambda: enqueued(session) == 6)
    with pytest.raises(Unavailable, match="is full; currently 6 batches enqueued"):
        session.run({"x": np.ones((1, 9))}, ["y"])


def test_too_large(make):
    session, _ = make(max_batch_size=32)
    with pytest.raises(InvalidArgument) as caught:
        session.run({"x": np.ones((64, 1))}, ["y"])
    assert str(caught.value) == "Task size 64 is larger than maximum input batch size 32"


@pytest.mark.parametrize(
    ("feeds", "text"),
    [
        ({}, "Batching Run() must have at least one input tensor"),
        ({"x": np.float32(1)}, "Batching Run() input tensors must have at least one dimension"),
        ({"x": np.ones(2), "z": np.ones(3)},
         "Batching Run() input tensors must have equal 0th-dimension size"),
        ({"x": np.ones(2), "z": np.ones(3), "w": np.float32(1)},
         "Batching Run() input tensors must have equal 0th-dimension size"),
        ({"x": np.ones(2), "w": np.float32(1), "z": np.ones(3)},
         "Batching Run() input tensors must have at least one dimension"),
    ],
)  # fmt: skip
def test_inputs_that_cannot_be_batched(make, feeds, text):
    session, _ = make()
    with pytest.raises(InvalidArgument) as caught:
        session.run(feeds, ["y"])
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("scalar", "Batched output tensor has 0 dimensions"),
        ("short", "Batched output tensor's 0th dimension does not equal the sum of the 0th "
         "dimension sizes of the input tensors"),
    ],
)  # fmt: skip
def test_outputs_that_cannot_be_split(make, output, text):
    session, _ = make()
    with pytest.raises(FailedPrecondition) as caught:
        session.run({"x": np.ones((2, 1))}, [output])
    assert str(caught.value) == text
