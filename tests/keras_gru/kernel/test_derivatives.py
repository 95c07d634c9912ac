"""Second derivatives and forward mode, compared with central differences."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.ops import gradient_registry

from keras_gru import GRU
from keras_gru.functional import Convention
from tests.keras_gru.kernel.sequence_problem import assert_close, problem, sequence


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("path", "reset_after", "normalized"),
    [(path, after, False) for path in ("plain", "xla") for after in (True, False)]
    + [("plain", True, True)],
)
def test_second_derivatives(path, reset_after, normalized):
    """Hessian-vector product compared with central differences of the gradient."""
    units = 4 if normalized else 2
    inputs, upstream = problem(2, 3, 2, units, reset_after=reset_after, seed=7)
    if normalized:
        inputs["gain"] = np.random.default_rng(6).normal(size=(2, 12))
    sources = [tf.constant(v) for v in inputs.values()]
    direction = tuple(tf.constant(np.random.default_rng(9).normal(size=s.shape)) for s in sources)

    def gradient(*sources):
        with tf.GradientTape() as tape:
            tape.watch(sources)
            gain = sources[5] if normalized else None
            convention = Convention(reset_after)
            states = sequence(*sources[:5], convention, path=path, layer_norm_gain=gain).states
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


@pytest.mark.slow_cases
@pytest.mark.parametrize("path", ["plain", "xla"])
@pytest.mark.parametrize("known", [True, False])
def test_forward_mode_of_a_function(path, known):
    """Its derivative is that of eager code, whatever the graph knows of the sizes."""
    layer = GRU(3, return_sequences=True, path=path)
    rng = np.random.default_rng(0)
    x, direction = (tf.constant(rng.normal(size=(2, 4, 5)), "float32") for _ in range(2))
    mask = tf.constant([[True, False, True, True], [True, True, False, False]])
    layer.build(x.shape)
    spec = None if known else [tf.TensorSpec([None, None, 5]), tf.TensorSpec([None, None], tf.bool)]
    function = tf.function(lambda x, mask: layer(x, mask=mask), input_signature=spec)
    with tf.autodiff.ForwardAccumulator(x, direction) as accumulator:
        actual = accumulator.jvp(function(x, mask))
    eager = GRU(3, return_sequences=True)
    eager.build(x.shape)
    eager.set_weights(layer.get_weights())
    with tf.autodiff.ForwardAccumulator(x, direction) as accumulator:
        wanted = accumulator.jvp(eager(x, mask=mask))
    assert np.abs(wanted).max() > 0.1
    np.testing.assert_allclose(actual, wanted, atol=1e-5)


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


def test_a_function_that_nobody_has_any_more_leaves_no_graph():
    """`tf.custom_gradient` alone would keep it until the process ends."""

    def trace():
        layer = GRU(3)
        function = tf.function(lambda x: layer(x, training=True))
        x = tf.ones((2, 5, 4))
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(function(x))
        assert all(each is not None for each in tape.gradient(total, layer.trainable_variables))
        return weakref.ref(function.get_concrete_function(x).graph)

    gc.collect()
    registered = len(gradient_registry.list())
    graph = trace()
    gc.collect()
    assert graph() is None
    assert len(gradient_registry.list()) == registered


@pytest.mark.slow
@pytest.mark.parametrize("path", ["xla", "plain"])
def test_second_derivatives_with_everything_that_is_drawn(path):
    """Hessian-vector product compared with central differences, with the same draws every time."""
    rates = {"dropout": 0.3, "recurrent_dropout": 0.3, "zoneout": 0.2, "dropconnect": 0.2}
    layer = GRU(3, **rates, seed=5, path=path, dtype="float64")
    rng = np.random.default_rng(0)
    x, direction = (tf.constant(rng.normal(size=(3, 4, 2))) for _ in range(2))
    layer.build(x.shape)

    @tf.function
    def derivatives(x):
        layer.cell.seed_generator.state.assign([5, 0])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                loss = tf.reduce_sum(layer(x, training=True) ** 2)
            gradient = inner.gradient(loss, x)
            along = tf.reduce_sum(gradient * direction)
        return gradient, outer.gradient(along, x)

    epsilon = 1e-5
    ahead, behind = (derivatives(x + way * epsilon * direction)[0] for way in (1, -1))
    assert_close([derivatives(x)[1]], [(ahead - behind) / (2 * epsilon)], 1e-8)
