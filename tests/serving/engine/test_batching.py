"""The batcher, with a gate that makes batches predictable, and with real SavedModels."""

import asyncio
import gc
import itertools
import math
import threading
import time
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serving.codecs.batch_parts import join
from serving.config.batching_options import BatchingOptions, PoolOptions
from serving.engine.batching.merge import merge, padded_groups
from serving.engine.batching.queue import BatchQueue
from serving.engine.batching.scheduler import BatchScheduler
from serving.engine.batching.session import BatchingSession
from serving.engine.batching.task import Task
from serving.engine.predictor import Predictor
from serving.engine.session import GraphSession
from serving.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    ResourceExhausted,
    ServingError,
    Unavailable,
)
from serving.telemetry.metrics import Metrics
from tests.serving.scrape import parsed
from tests.waiting import wait_until

PATIENT = 30_000_000  # microseconds: no batch runs before it is full


class Gate:
    """A session that doubles its input, records the batches, and can be held up."""

    signatures = None

    def __init__(self):
        self.batches = []
        self.timeouts = []
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Semaphore(0)
        self.closed = False

    def tensor(self, name):
        return name

    def run(self, feeds, fetches, timeout_ms=0):
        assert not self.closed
        x = feeds["x"]
        self.batches.append(x)
        self.timeouts.append(timeout_ms)
        self.entered.release()
        self.open.wait(20)
        if x.dtype.kind == "i" and (x < 0).any():
            raise InvalidArgument(f"negative: {x.min()}")
        answers = {"y": 2 * x, "scalar": np.float32(1), "short": x[:-1], **feeds}
        return [answers[name] for name in fetches]

    def close(self):
        self.closed = True


@pytest.fixture
def callers():
    with ThreadPoolExecutor(64) as threads:
        yield threads


@pytest.fixture
def make(callers):
    """A batching session over a gate: make(threads=1, **options) -> (session, gate)."""
    made = []

    def build(threads=1, metrics=None, **options):
        gate = Gate()
        scheduler = BatchScheduler(PoolOptions(threads, "test"))
        made.append((scheduler, gate))
        return BatchingSession(gate, scheduler, BatchingOptions(**options), metrics), gate

    yield build
    for scheduler, gate in made:
        gate.open.set()
        scheduler.close()
        assert not [t for t in scheduler._threads if t.is_alive()]


def ask(callers, session, x, fetches=("y",), timeout_ms=0):
    return callers.submit(session.run, {"x": np.asarray(x)}, list(fetches), timeout_ms)


def ask_with_lengths(callers, session, x):
    x = np.asarray(x)
    lengths = np.full(len(x), x.shape[1])
    return callers.submit(session.run, {"x": x, "length": lengths}, ["y"])


def enqueued(session):
    return sum(queue.rows for queue in session._queues.values())


def hold(callers, session, gate):
    """Occupy the only batch thread; whatever comes next has to wait."""
    gate.open.clear()
    first = ask(callers, session, [[0]])
    assert gate.entered.acquire(timeout=60)
    return first


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


def test_full_queue(make, callers):
    session, gate = make(max_batch_size=2, max_enqueued_batches=3)
    hold(callers, session, gate)
    waiting = [ask(callers, session, [[n], [n]]) for n in range(3)]
    wait_until(lambda: enqueued(session) == 6)
    with pytest.raises(Unavailable) as caught:
        session.run({"x": np.array([[9]])}, ["y"])
    assert str(caught.value) == (
        "The batch scheduling queue to which this task was submitted is full; currently 3 batches "
        "enqueued and max_enqueued_batches is 3"
    )
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
    counted = parsed(metrics.render())
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


def test_deadline_while_waiting(make, callers):
    metrics = Metrics()
    session, gate = make(metrics=metrics)
    first = hold(callers, session, gate)
    started = time.monotonic()
    with pytest.raises(ResourceExhausted) as caught:
        session.run({"x": np.array([[1]])}, ["y"], timeout_ms=150)
    assert str(caught.value) == "Run() timeout exceeded while waiting in batching queue"
    latency = ":tensorflow:serving:batching_session:queuing_latency"
    assert parsed(metrics.render())[f"{latency}_count"] == {("",): 2}
    assert parsed(metrics.render())[f"{latency}_sum"][("",)] > 140_000
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


# The same for an event loop, in which nobody blocks.


def soon(session, x, timeout_ms=0):
    return asyncio.ensure_future(session.run_soon({"x": np.asarray(x)}, ["y"], timeout_ms))


def test_event_loop_gets_its_answers(make):
    session, gate = make(max_batch_size=100, batch_timeout_micros=100_000)

    async def ask_many():
        return await asyncio.gather(*(soon(session, [[n]], 20_000) for n in range(100)))

    answers = asyncio.run(ask_many())
    assert [int(y[0, 0]) for (y,) in answers] == list(range(0, 200, 2))
    assert [len(batch) for batch in gate.batches] == [100]


def test_event_loop_gets_errors(make):
    session, _ = make(max_batch_size=8, max_execution_batch_size=2,
                      enable_large_batch_splitting=True)  # fmt: skip

    async def ask_three():
        split = soon(session, [[1], [2], [3], [4], [5]])
        bad = soon(session, [[1], [2], [-3], [4]])
        large = soon(session, np.ones((9, 1)))
        return await asyncio.gather(split, bad, large, return_exceptions=True)

    (y,), bad, large = asyncio.run(ask_three())
    assert y[:, 0].tolist() == [2, 4, 6, 8, 10]
    assert isinstance(bad, InvalidArgument)
    assert str(bad) == "negative: -3"
    assert str(large) == "Task size 9 is larger than maximum input batch size 8"


def test_deadlines_and_cancellation_on_an_event_loop(make):
    session, gate = make()

    async def scenario():
        gate.open.clear()
        running = soon(session, [[1]], 300)
        while not gate.entered.acquire(blocking=False):
            await asyncio.sleep(0.001)
        waiting = soon(session, [[2]], 150)
        cancelled = soon(session, [[3]])
        await asyncio.sleep(0.05)
        assert enqueued(session) == 2
        cancelled.cancel()
        outcomes = await asyncio.gather(running, waiting, cancelled, return_exceptions=True)
        assert enqueued(session) == 0
        gate.open.set()
        assert (await soon(session, [[4]]))[0] == [[8]]
        return outcomes

    running, waiting, cancelled = asyncio.run(scenario())
    assert isinstance(running, DeadlineExceeded)
    assert isinstance(waiting, ResourceExhausted)
    assert isinstance(cancelled, asyncio.CancelledError)
    assert [batch[0, 0] for batch in gate.batches] == [1, 4]


def test_predictor_on_an_event_loop(batched):
    """Many requests are under way, none of them in a thread."""
    predictor = batched(max_batch_size=20, batch_timeout_micros=PATIENT)
    assert predictor.batches

    async def ask_many(asked, count):
        runs = [asked.prepare({"x": np.array([[1, 2]])}, "", ["last"]) for _ in range(count)]
        return await asyncio.wait_for(asyncio.gather(*(run.run_in_batch() for run in runs)), 20)

    assert asyncio.run(ask_many(predictor, 20)) == [{"last": np.array([5])}] * 20


# Padding, compared with loops that do not use NumPy's broadcasting.


def oracle_padded(arrays):
    rank = arrays[0].ndim
    largest = [max(a.shape[d] for a in arrays) for d in range(1, rank)]
    rows = []
    for array in arrays:
        for row in range(array.shape[0]):
            filled = np.empty(largest, array.dtype)
            for index in np.ndindex(*largest):
                inside = all(i < array.shape[d + 1] for d, i in enumerate(index))
                filled[index] = array[(row, *index)] if inside else array.ravel()[0]
            rows.append(filled)
    return np.array(rows)


@given(st.data())
def test_padding(data):
    rank = data.draw(st.integers(1, 4))
    dims = st.integers(1, 3)
    shapes = data.draw(st.lists(st.tuples(*[dims] * rank), min_size=1, max_size=4))
    arrays = [np.random.default_rng(i).integers(0, 99, shape) for i, shape in enumerate(shapes)]
    np.testing.assert_array_equal(merge(arrays, 0, pad=True), oracle_padded(arrays))


def test_padding_of_the_highest_rank():
    arrays = [np.arange(2.0).reshape(1, 1, 1, 1, 1, 2), np.full((2, 1, 1, 2, 1, 1), 7.0)]
    np.testing.assert_array_equal(merge(arrays, 0, pad=True), oracle_padded(arrays))


def test_padding_of_strings():
    first, second = np.array([[b"a", b"b"]], object), np.array([[b"c"]], object)
    merged = merge([first, second], 1, pad=True)
    assert merged.tolist() == [[b"a", b"b"], [b"c", b"c"], [b"c", b"c"]]


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ([np.ones((1,) * 7)] * 2, "Only tensors with rank from 1 to 6 can be padded."),
        ([np.ones((1, 0)), np.ones((1, 2))], "Got empty tensor in batch of non-empty tensors."),
    ],
)
def test_what_cannot_be_padded(arrays, text):
    with pytest.raises(InvalidArgument) as caught:
        merge(arrays, 0, pad=True)
    assert str(caught.value) == text


def test_a_batch_that_cannot_be_merged_is_counted(make):
    metrics = Metrics()
    session, _ = make(metrics=metrics, max_batch_size=4, allowed_batch_sizes=(4,),
                      pad_variable_length_inputs=True)  # fmt: skip
    with pytest.raises(InvalidArgument, match="rank from 1 to 6"):
        session.run({"x": np.ones((1,) * 7)}, ["y"])
    counted = parsed(metrics.render())
    batching = ":tensorflow:serving:batching_session:"
    assert counted[f"{batching}processed_batch_size_sum"] == {(): 4}
    assert counted[f"{batching}padding_size_sum"] == {("4",): 3}
    assert f"{batching}wrapped_run_count" not in counted


def test_no_rows_are_not_filled_up(make):
    session, gate = make(max_batch_size=4, allowed_batch_sizes=(4,))
    assert session.run({"x": np.ones((0, 3))}, ["y"])[0].shape == (0, 3)
    assert gate.batches[0].shape == (0, 3)


def test_parts_padded_to_different_lengths_are_put_together(make, callers):
    session, gate = make(
        max_batch_size=4,
        max_execution_batch_size=2,
        enable_large_batch_splitting=True,
        batch_timeout_micros=PATIENT,
        pad_variable_length_inputs=True,
    )
    large = ask_with_lengths(callers, session, [[1], [2], [3]])
    wait_until(lambda: len(gate.batches) == 1 and enqueued(session) == 1)
    long = ask_with_lengths(callers, session, [[4, 5, 6]])
    assert long.result(60)[0].tolist() == [[8, 10, 12]]
    # There the model has given no answer for the first part, which had no neighbour.
    assert large.result(60)[0].tolist() == [[2, 0, 0], [4, 0, 0], [6, 6, 6]]


def test_parts_of_different_ranks_do_not_fit_together():
    with pytest.raises(FailedPrecondition, match=r"outputs of ranks \[1, 2\]"):
        join([np.ones((2, 3)), np.ones(2)])


def test_padded_requests_share_a_batch(make, callers):
    session, gate = make(
        max_batch_size=2, batch_timeout_micros=PATIENT, pad_variable_length_inputs=True
    )
    short = ask_with_lengths(callers, session, [[5, 6]])
    wait_until(lambda: enqueued(session) == 1)
    long = ask_with_lengths(callers, session, [[1, 2, 3, 4]])
    # Outputs keep the padded length.
    assert short.result(60)[0].tolist() == [[10, 12, 10, 10]]
    assert long.result(60)[0].tolist() == [[2, 4, 6, 8]]
    assert len(gate.batches) == 1


@pytest.mark.parametrize("beside", [{}, {"mask": np.ones((1, 2), bool)}, {"share": np.ones(1)}])
def test_without_lengths_nothing_is_padded(make, callers, beside):
    """The model could not tell what was added: the answers equal those to the rows alone."""
    session, gate = make(
        max_batch_size=3, batch_timeout_micros=100_000, pad_variable_length_inputs=True
    )
    asked = [
        callers.submit(session.run, {"x": np.array(x), **beside}, ["y"])
        for x in ([[5, 6]], [[1, 2, 3, 4]], [[7, 8]])
    ]
    assert [answer.result(60)[0].tolist() for answer in asked] == [
        [[10, 12]], [[2, 4, 6, 8]], [[14, 16]],
    ]  # fmt: skip
    assert sorted(batch.shape for batch in gate.batches) == [(1, 4), (2, 2)]


def test_a_row_that_is_refused_alone_is_refused_beside_a_longer_one(callers, tmp_path):
    """Like a forecaster, which expects a history of a certain length."""

    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((None, None), tf.float32, "history")])
        def forecast(self, history):
            steps = tf.shape(history)[1]
            with tf.control_dependencies([tf.debugging.assert_greater_equal(steps, 8)]):
                return {"forecast": history[:, -1] + history[:, 0]}

    model = Model()
    tf.saved_model.save(model, str(tmp_path), {"serving_default": model.forecast})
    options = BatchingOptions(
        batch_timeout_micros=300_000, max_batch_size=4, pad_variable_length_inputs=True
    )
    scheduler = BatchScheduler(PoolOptions(1, "test"))
    predictor = Predictor(BatchingSession(GraphSession(tmp_path), scheduler, options))
    try:
        short, long, other = (
            callers.submit(predictor.predict, {"history": np.float32([range(n)])})
            for n in (5, 60, 9)
        )
        with pytest.raises(InvalidArgument):
            short.result(60)
        assert long.result(60)["forecast"].tolist() == [59]
        assert other.result(60)["forecast"].tolist() == [8]
    finally:
        predictor.close()
        scheduler.close()


def test_padding_is_bounded_in_bytes(make, callers):
    """Many short rows and a long one: padded to its length, they would take 60 times the memory."""
    session, gate = make(
        max_batch_size=61, batch_timeout_micros=PATIENT, pad_variable_length_inputs=True
    )
    asked = [ask_with_lengths(callers, session, [[n]]) for n in range(60)]
    wait_until(lambda: enqueued(session) == 60)
    long = ask_with_lengths(callers, session, np.ones((1, 2_000_000), np.int64))
    for n, answer in enumerate(asked):
        assert answer.result(60)[0].tolist() == [[2 * n]]
    assert (long.result(60)[0] == 2).all()
    assert sorted(batch.shape for batch in gate.batches) == [(1, 2_000_000), (60, 1)]


@given(st.lists(st.integers(0, 4_000_000), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_groups_of_any_lengths(lengths):
    tasks = [Task([np.broadcast_to(np.int64(1), (1, n)), np.array([n])], 1, None) for n in lengths]
    groups = padded_groups(tasks)
    assert sorted(map(id, itertools.chain(*groups))) == sorted(map(id, tasks))
    for group in groups:
        widths = [task.inputs[0].shape[1] for task in group]
        real, padded = 8 * sum(widths), 8 * len(widths) * max(widths)
        assert padded <= real + max(real + 8 * len(group), 16 << 20)
    one_group = 8 * len(lengths) * max(lengths) <= 8 * sum(lengths) + (16 << 20)
    assert len(groups) == 1 or not one_group


# Real graphs: an answer never depends on what others ask at the same time.


class Sequences(tf.Module):
    """A recurrence over time, so that anything added at the end shows; of integers, so exact."""

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64, name="x")])
    def serve(self, x):
        state = tf.scan(
            lambda h, x_t: 3 * h + x_t,
            tf.transpose(x),
            initializer=tf.zeros(tf.shape(x)[:1], tf.int64),
        )
        return {"last": state[-1], "all": tf.transpose(state)}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int64, name="x"),
            tf.TensorSpec([None], tf.int64, name="length"),
        ]
    )
    def masked(self, x, length):
        steps = tf.range(tf.shape(x, tf.int64)[1])
        state = tf.scan(
            lambda h, step: tf.where(step[0] < length, 3 * h + step[1], h),
            (tf.broadcast_to(steps[:, None], tf.shape(tf.transpose(x))), tf.transpose(x)),
            initializer=tf.zeros(tf.shape(x)[:1], tf.int64),
        )
        return {"last": state[-1]}


def recurrence(row):
    h, states = 0, []
    for value in row:
        h = 3 * h + value
        states.append(h)
    return states


@pytest.fixture(scope="module")
def sequences(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sequences") / "1"
    module = Sequences()
    tf.saved_model.save(
        module,
        str(directory),
        signatures={"serving_default": module.serve, "masked": module.masked},
    )
    return directory


@pytest.fixture(scope="module")
def batched(sequences):
    """batched(**options) -> a predictor of the same SavedModel with that batching."""
    scheduler = BatchScheduler(PoolOptions(2, "test"))
    made = {}

    def build(**options):
        key = tuple(sorted(options.items()))
        if key not in made:
            session = GraphSession(sequences)
            made[key] = Predictor(BatchingSession(session, scheduler, BatchingOptions(**options)))
        return made[key]

    yield build
    for predictor in made.values():
        predictor.close()
    scheduler.close()


ROWS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(0, 2)), min_size=2, max_size=16
)
OPTIONS = st.sampled_from(
    [
        {},
        {"batch_timeout_micros": 2000, "max_batch_size": 4},
        {"max_batch_size": 8, "allowed_batch_sizes": (2, 4, 8)},
        {"max_batch_size": 3, "max_execution_batch_size": 2, "enable_large_batch_splitting": True},
    ]
)
FEW = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FEW
@given(requests=ROWS, options=OPTIONS)
def test_neighbours_do_not_matter(batched, callers, requests, options):
    predictor = batched(max_enqueued_batches=100, **options)
    rng = np.random.default_rng(len(requests))
    asked = []
    for rows, steps, kind in requests:
        x = rng.integers(-9, 9, (rows, steps))
        filtered = [(), ("last",), ("all", "last")][kind]
        asked.append((x, filtered, callers.submit(predictor.predict, {"x": x}, "", filtered)))
    for x, filtered, answer in asked:
        outputs = answer.result(20)
        assert list(outputs) == list(filtered or ("all", "last"))
        expected = np.array([recurrence(row) for row in x.tolist()])
        np.testing.assert_array_equal(outputs["last"], expected[:, -1])
        if "all" in outputs:
            np.testing.assert_array_equal(outputs["all"], expected)


@FEW
@given(requests=ROWS)
def test_neighbours_do_not_matter_with_padding_and_lengths(batched, callers, requests):
    predictor = batched(
        max_enqueued_batches=100, pad_variable_length_inputs=True, batch_timeout_micros=2000
    )
    rng = np.random.default_rng(len(requests))
    asked = []
    for rows, steps, _ in requests:
        inputs = {"x": rng.integers(-9, 9, (rows, steps)), "length": np.full(rows, steps)}
        asked.append((inputs["x"], callers.submit(predictor.predict, inputs, "masked")))
    for x, answer in asked:
        expected = [recurrence(row)[-1] for row in x.tolist()]
        assert answer.result(20)["last"].tolist() == expected


def test_a_wrong_type_harms_nobody_else(batched, callers):
    predictor = batched(batch_timeout_micros=50_000)
    good = callers.submit(predictor.predict, {"x": np.array([[1, 2]])})
    bad = callers.submit(predictor.predict, {"x": np.array([[1.0, 2.0]])})
    with pytest.raises(InvalidArgument, match="Expects arg"):
        bad.result(20)
    assert good.result(20)["last"].tolist() == [5]


def test_a_refused_request_is_not_kept(batched):
    """Not even until the garbage collector runs."""
    predictor = batched()
    x = np.ones((2, 3))
    seen = weakref.ref(x)
    gc.disable()
    try:
        with pytest.raises(InvalidArgument, match="Expects arg"):
            predictor.predict({"x": x})
        del x
        wait_until(lambda: seen() is None, 10)
    finally:
        gc.enable()


def test_order_of_outputs_makes_no_second_queue(batched):
    predictor = batched(max_batch_size=77)
    x = np.array([[1, 2]])
    for wanted in (("last", "all"), ("all", "last"), ()):
        assert list(predictor.predict({"x": x}, "", wanted)) == list(wanted or ("all", "last"))
    assert len(predictor._session._queues) == 1


def test_text_model(models, callers):
    """Strings in, strings and floats out, of very different lengths."""
    scheduler = BatchScheduler(PoolOptions(2))
    session = GraphSession(models / "text" / "1")
    alone = Predictor(models / "text" / "1")
    together = Predictor(
        BatchingSession(
            session, scheduler, BatchingOptions(max_batch_size=16, max_enqueued_batches=100)
        )
    )
    texts = [b"good", b"bad bad", b"", b"great " * 40, b"\xff\xfe", "très".encode()]
    rng = np.random.default_rng(0)
    requests = [np.array(rng.choice(texts, rng.integers(1, 5)), object) for _ in range(100)]
    answers = list(callers.map(lambda x: together.predict({"text": x}), requests))
    for x, answer in zip(requests, answers, strict=True):
        expected = alone.predict({"text": x})
        assert answer["label"].tolist() == expected["label"].tolist()
        np.testing.assert_allclose(answer["scores"], expected["scores"], atol=1e-6)
    together.close()
    alone.close()
    scheduler.close()


def test_errors_are_the_same_as_without_batching(models, batched):
    scheduler = BatchScheduler(PoolOptions(1))
    session = GraphSession(models / "affine" / "1")
    predictor = Predictor(BatchingSession(session, scheduler))
    with pytest.raises(InvalidArgument, match="Matrix size-incompatible"):
        predictor.predict({"x": np.ones((2, 4), "f4"), "b": np.ones((2, 1), "f4")})
    with pytest.raises(FailedPrecondition, match="Batched output tensor has 0 dimensions"):
        predictor.predict({"x": np.ones((2, 3), "f4")}, "total")
    with pytest.raises(InvalidArgument, match="must have at least one dimension"):
        predictor.predict({"steps": np.int64(1)}, "spin")
    with pytest.raises(ServingError, match="must have equal 0th-dimension size"):
        predictor.predict({"x": np.ones((2, 3), "f4"), "b": np.ones((1, 1), "f4")})
    predictor.close()
    scheduler.close()
