"""Sequences whose segments run again for the gradients: the oracle, and what is kept."""

import numpy as np
import pytest
import tensorflow as tf

from keras_gru.functional import Convention, Gates
from keras_gru.kernel import sequence as segments
from tests.covering import covering
from tests.keras_gru.kernel.sequence_problem import (
    assert_close,
    computed,
    expected,
    problem,
    sequence,
)

RUNS = {
    "eager": lambda f: f,
    "graph": tf.function,
    "sizes unknown": lambda f: tf.function(f, reduce_retracing=True),
    "xla": lambda f: tf.function(f, jit_compile=True),
}


@pytest.fixture(autouse=True)
def short_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT", 4)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("run", "steps", "masked", "go_backwards", "reset_after", "update_gate"),
    covering(
        2, tuple(RUNS), (1, 4, 21), (False, True), (False, True), (True, False), ("keep", "replace")
    ),
)
def test_equal_to_the_oracle(run, steps, masked, go_backwards, reset_after, update_gate):
    inputs, upstream = problem(3, steps, reset_after=reset_after)
    mask = np.random.default_rng(steps).random((3, steps)) < 0.6 if masked else None
    convention = {"reset_after": reset_after, "update_gate": update_gate}
    wanted = expected(inputs, upstream, mask=mask, go_backwards=go_backwards, **convention)
    actual = computed(
        inputs,
        upstream,
        Convention(**convention),
        run=RUNS[run],
        mask=mask,
        go_backwards=go_backwards,
        recompute=True,
    )
    assert_close(actual[:2], wanted[:2], 1e-11)
    assert_close(actual[2], wanted[2], 1e-9)


OPTIONS = {
    "last state alone": {"return_sequences": False},
    "all randomness": {
        "zoneout": np.random.default_rng(2).uniform(size=(3, 21, 6)),
        "recurrent_mask": Gates(*np.random.default_rng(1).uniform(0, 2, size=(3, 3, 6))),
        "input_mask": Gates(*np.random.default_rng(3).uniform(0, 2, size=(3, 3, 4))),
    },
    "steady zoneout": {"zoneout": np.float64(0.2), "go_backwards": True},
    "layer normalisation": {"layer_norm_gain": np.random.default_rng(4).normal(size=(2, 18))},
}


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("run", ["eager", "graph"])
def test_equal_to_one_piece(run, options):
    inputs, upstream = problem(3, 21, reset_after=False)
    results = [
        computed(inputs, upstream, Convention(False), run=RUNS[run], recompute=again, **options)
        for again in (False, True)
    ]
    for wanted, actual in zip(*map(tf.nest.flatten, results), strict=True):
        if wanted is not None:
            np.testing.assert_allclose(actual, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_half_precision_carries_exact_states_between_segments():
    """As without segments: only outputs are rounded, not the states that go on."""
    inputs, upstream = problem(3, 21, reset_after=True)
    states = [
        computed(
            inputs, upstream, Convention(), dtype=tf.bfloat16, run=tf.function, recompute=again
        )
        for again in (False, True)
    ]
    np.testing.assert_array_equal(*(tf.cast(s[0], tf.float32) for s in states))
    for wanted, actual in zip(states[0][2], states[1][2], strict=True):
        scale = float(tf.reduce_max(tf.abs(wanted)))
        np.testing.assert_allclose(
            tf.cast(actual, tf.float32), tf.cast(wanted, tf.float32), rtol=0, atol=0.02 * scale
        )


@pytest.mark.slow
def test_second_derivatives():
    """A product with the Hessian, compared with that of one piece."""
    inputs, _ = problem(2, 9, 2, 3, reset_after=True, seed=7)
    sources = [tf.constant(v) for v in inputs.values()]
    direction = [tf.constant(np.random.default_rng(9).normal(size=s.shape)) for s in sources]

    def product(recompute):
        with tf.GradientTape() as outer:
            outer.watch(sources)
            with tf.GradientTape() as tape:
                tape.watch(sources)
                states, *_ = sequence(*sources, Convention(), recompute=recompute)
                loss = tf.reduce_sum(states**2)
            pairs = zip(tape.gradient(loss, sources), direction, strict=True)
            dot = tf.add_n([tf.reduce_sum(g * d) for g, d in pairs])
        return outer.gradient(dot, sources)

    assert_close(product(True), product(False), 1e-9)


@pytest.mark.slow
def test_gradients_of_a_graph_without_a_tape():
    inputs, _ = problem(2, 9, reset_after=True)
    with tf.Graph().as_default():
        sources = [tf.constant(v) for v in inputs.values()]
        states, *_ = sequence(*sources, Convention(), recompute=True)
        gradients = tf.gradients(tf.reduce_sum(tf.sin(states)), sources)
        with tf.compat.v1.Session() as session:
            actual = session.run(gradients)
    sources = [tf.constant(v) for v in inputs.values()]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        loss = tf.reduce_sum(tf.sin(sequence(*sources, Convention()).states))
    assert_close(actual, tape.gradient(loss, sources), 1e-9)


@pytest.mark.slow
def test_nothing_as_long_as_the_sequence_is_kept():
    """In the graph of a training step there are only the inputs and their gradients."""
    inputs, _ = problem(2, 21, 4, 6, reset_after=True)

    @tf.function
    def train(x, *others):
        with tf.GradientTape() as tape:
            tape.watch([x, *others])
            found = sequence(x, *others, Convention(), recompute=True, return_sequences=False)
            loss = tf.reduce_sum(found.final)
        return tape.gradient(loss, [x, *others])

    graph = train.get_concrete_function(*map(tf.constant, inputs.values())).graph
    values = [v for op in graph.get_operations() for v in op.outputs]
    long = {tuple(v.shape) for v in values if v.shape.rank and 21 in v.shape.as_list()}
    assert long == {(2, 21, 4)}


@pytest.mark.slow
def test_a_function_with_a_tape_of_its_own_within_another():
    """What the inner tape does not watch, the outer one may."""
    inputs, _ = problem(2, 9, reset_after=True)
    x, *others = (tf.constant(v) for v in inputs.values())

    @tf.function
    def losses(x):
        with tf.GradientTape() as tape:
            tape.watch(others)
            loss = tf.reduce_sum(sequence(x, *others, Convention(), recompute=True).final)
        return loss, tape.gradient(loss, others)

    def whole(x):
        return tf.reduce_sum(sequence(x, *others, Convention()).final)

    gradients = []
    for run in (lambda x: losses(x)[0], whole):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = run(x)
        gradients.append(tape.gradient(loss, x))
    assert_close(gradients[:1], gradients[1:], 1e-9)
