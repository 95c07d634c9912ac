"""Second derivatives and forward mode, compared with central differences."""

import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from keras_gru.functional import Convention
from tests.keras_gru.kernel.sequence_problem import assert_close, problem, sequence


@pytest.mark.slow
@pytest.mark.parametrize("reset_after", [True, False])
@pytest.mark.parametrize("path", ["xla", "plain"])
def test_second_derivatives(path, reset_after):
    """Hessian-vector product compared with central differences of the gradient."""
    inputs, upstream = problem(2, 3, 2, 2, reset_after=reset_after, seed=7)
    sources = [tf.constant(v) for v in inputs.values()]
    direction = tuple(tf.constant(np.random.default_rng(9).normal(size=s.shape)) for s in sources)

    def gradient(*sources):
        with tf.GradientTape() as tape:
            tape.watch(sources)
            states = sequence(*sources, Convention(reset_after), path=path).states
            loss = tf.reduce_sum(states**2 * upstream["states"])
        return tape.gradient(loss, sources)

    @tf.function
    def product(*sources):
        with tf.GradientTape() as tape:
            tape.watch(sources)
            pairs = zip(gradient(*sources), direction, strict=True)
            dot = tf.add_n([tf.reduce_sum(g * d) for g, d in pairs])
        return tape.gradient(dot, sources)

    first = tf.function(gradient)
    epsilon = 1e-4
    ahead = first(*(s + epsilon * d for s, d in zip(sources, direction, strict=True)))
    behind = first(*(s - epsilon * d for s, d in zip(sources, direction, strict=True)))
    numeric = [(a - b) / (2 * epsilon) for a, b in zip(ahead, behind, strict=True)]
    assert_close(product(*sources), numeric, 1e-6)


@pytest.mark.slow_cases
@pytest.mark.parametrize("reset_after", [True, False])
def test_forward_mode(reset_after):
    """In eager code: derivatives of states and of their gradient, against central differences."""
    inputs, _ = problem(2, 3, 2, 2, reset_after=reset_after, seed=7)
    sources = tuple(tf.constant(v) for v in inputs.values())
    direction = tuple(tf.constant(np.random.default_rng(9).normal(size=s.shape)) for s in sources)

    def run(*sources):
        with tf.GradientTape() as tape:
            tape.watch(sources)
            final = sequence(*sources, Convention(reset_after)).final
            loss = tf.reduce_sum(final**2)
        return [final, *tape.gradient(loss, sources)]

    with tf.autodiff.ForwardAccumulator(sources, direction) as accumulator:
        results = run(*sources)
    epsilon = 1e-5
    ahead = run(*(s + epsilon * d for s, d in zip(sources, direction, strict=True)))
    behind = run(*(s - epsilon * d for s, d in zip(sources, direction, strict=True)))
    numeric = [(a - b) / (2 * epsilon) for a, b in zip(ahead, behind, strict=True)]
    assert_close([accumulator.jvp(result) for result in results], numeric, 1e-8)


def test_forward_mode_in_a_graph_is_a_clear_error():
    x = tf.ones((2, 4, 5))

    @tf.function
    def tangent(x):
        with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
            return accumulator.jvp(GRU(3)(x))

    with pytest.raises(NotImplementedError, match=r"ForwardAccumulator.*eager.*GradientTape"):
        tangent(x)


def test_forward_mode_of_what_was_computed_before_is_a_clear_error():
    layer, x = GRU(3), tf.ones((2, 4, 5))
    with tf.GradientTape() as tape:
        tape.watch(x)
        output = layer(x)
    weigh = tf.ones_like(output)
    with (
        tf.autodiff.ForwardAccumulator(weigh, weigh),
        pytest.raises(NotImplementedError, match="ForwardAccumulator"),
    ):
        tape.gradient(output, x, output_gradients=weigh)
