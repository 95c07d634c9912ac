"""Real graphs: an answer never depends on what others ask at the same time."""

import asyncio
import weakref

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gru_serving.config.batching_options import BatchingOptions, PoolOptions
from gru_serving.engine.batching.scheduler import BatchScheduler
from gru_serving.engine.batching.session import BatchingSession
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.session import GraphSession
from gru_serving.errors import (
    FailedPrecondition,
    InvalidArgument,
    ServingError,
)
from tests.serving.collector import collector_off
from tests.serving.engine.batching.gate import PATIENT
from tests.waiting import wait_until


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
    with collector_off():
        with pytest.raises(InvalidArgument, match="Expects arg"):
            predictor.predict({"x": x})
        del x
        wait_until(lambda: seen() is None, 10)


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


def test_predictor_on_an_event_loop(batched):
    """Many requests are under way, none of them in a thread."""
    predictor = batched(max_batch_size=20, batch_timeout_micros=PATIENT)

    async def ask_many(asked, count):
        runs = [asked.prepare({"x": np.array([[1, 2]])}, "", ["last"]) for _ in range(count)]
        assert all(run.batched for run in runs)
        return await asyncio.wait_for(asyncio.gather(*(run.run_in_batch() for run in runs)), 20)

    assert asyncio.run(ask_many(predictor, 20)) == [{"last": np.array([5])}] * 20
