"""Padding, compared with loops that do not use NumPy's broadcasting."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from gru_serving.codecs.batch_parts import join
from gru_serving.config.batching_options import BatchingOptions, PoolOptions
from gru_serving.engine.batching.scheduler import BatchScheduler, Task
from gru_serving.engine.batching.session import BatchingSession, merge, padded_groups
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.session import GraphSession
from gru_serving.errors import (
    FailedPrecondition,
    InvalidArgument,
)
from gru_serving.telemetry.metrics import Metrics
from tests.serving.engine.batching.gate import PATIENT, ask_with_lengths, enqueued
from tests.serving.scrape import parsed, rendered
from tests.waiting import wait_until


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
    counted = parsed(rendered(metrics))
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


@pytest.mark.slow_cases
@pytest.mark.parametrize("beside", [{}, {"mask": np.ones((1, 2), bool)}, {"share": np.ones(1)}])
def test_without_lengths_nothing_is_padded(make, callers, beside):
    """The model could not tell what was added: the answers equal those to the rows alone."""
    session, gate = make(
        max_batch_size=3, batch_timeout_micros=1_000_000, pad_variable_length_inputs=True
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
