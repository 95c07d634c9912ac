"""Data of many lengths: padded sizes give the same results, and a few programs serve them all."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from keras_gru.functional import Convention
from keras_gru.kernel import execution
from tests.keras_gru.kernel.sequence_problem import (
    assert_close,
    computed,
    expected,
    problem,
    sequence,
)

SHAPES = [(None, None, 4), (None, 6), (None, None), (None, None, 6), (None, 6)]
MASKS = ("none", "right", "left", "interior")


def mask_of(kind, rows, steps):
    rng = np.random.default_rng(steps)
    lengths = rng.integers(0, steps + 1, (rows, 1))
    return {
        "none": np.ones((rows, steps), bool),
        "right": np.arange(steps) < lengths,
        "left": np.arange(steps) >= lengths,
        "interior": rng.uniform(size=(rows, steps)) < 0.6,
    }[kind]


@pytest.mark.slow
@pytest.mark.parametrize("small_state", [0, execution.SMALL_BLOCK_STATE])
@pytest.mark.parametrize(("reset_after", "go_backwards"), [(True, False), (False, True)])
def test_lengths_around_the_padded_ones(monkeypatch, reset_after, go_backwards, small_state):
    """One step, one row, one step less and more than the padded length; one trace for all."""
    monkeypatch.setattr(execution, "cores", lambda: 2)
    monkeypatch.setattr(execution, "SMALL_BLOCK_STATE", small_state)
    weights, _ = problem(reset_after=reset_after)
    weights = {k: weights[k] for k in ("kernel", "recurrent_kernel", "bias")}
    traces = []

    @tf.function(
        input_signature=[
            tf.TensorSpec(shape, tf.bool if i == 2 else tf.float64)
            for i, shape in enumerate(SHAPES)
        ]
    )
    def run(x, h0, mask, d_states, d_final):
        traces.append(1)
        sources = [x, h0, *map(tf.constant, weights.values())]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            result = sequence(
                *sources, Convention(reset_after), mask=mask, go_backwards=go_backwards
            )
            loss = tf.reduce_sum(result.states * d_states) + tf.reduce_sum(result.final * d_final)
        assert result.path == "xla"
        return result.states, result.final, tape.gradient(loss, sources)

    sizes = [(1, 1), (3, 31), (3, 32), (1, 33), (5, 128), (2, 129)]
    for (rows, steps), kind in zip(sizes, ("none", *MASKS, "right"), strict=True):
        inputs, upstream = problem(rows, steps, reset_after=reset_after, seed=steps)
        inputs |= weights
        mask = mask_of(kind, rows, steps)
        wanted = expected(
            inputs, upstream, mask=mask, go_backwards=go_backwards, reset_after=reset_after
        )
        actual = run(inputs["x"], inputs["h0"], mask, upstream["states"], upstream["final"])
        assert actual[0].shape == (rows, steps, 6)
        assert_close(actual[:2], wanted[:2], 1e-11)
        assert_close(actual[2], wanted[2], 1e-9)
    assert len(traces) == 1


@pytest.mark.slow
@pytest.mark.parametrize("go_backwards", [False, True])
def test_many_known_lengths_are_padded_too(monkeypatch, go_backwards):
    """From the fifth length on, bit for bit as they would have been without padding."""
    monkeypatch.setattr(execution, "_exact_lengths", {})
    options = {"dtype": tf.float32, "run": tf.function, "go_backwards": go_backwards}
    results = {}
    for most in (1, 0):
        monkeypatch.setattr(execution, "EXACT_LENGTHS", most)
        inputs, upstream = problem(4, 37, reset_after=True)
        results[most] = computed(inputs, upstream, Convention(), **options)
        execution._exact_lengths.clear()
    for exact, padded in zip(*(r[:2] for r in results.values()), strict=True):
        np.testing.assert_array_equal(exact, padded)
    assert_close(results[0][2], results[1][2], 1e-5)

    monkeypatch.setattr(execution, "EXACT_LENGTHS", 2)
    exact = [not execution._is_one_of_many(steps, "alike") for steps in (5, 9, 5, 11, 9, 12)]
    assert exact == [True, True, True, False, True, False]


PROGRAM = """
import numpy as np, tensorflow as tf, keras, keras_gru
rng = np.random.default_rng(0)
layer = keras.layers.Bidirectional(keras_gru.GRU(8, return_sequences=True))

@tf.function(reduce_retracing=True)
def step(x, mask):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x, mask=mask, training=True) ** 2)
    return tape.gradient(loss, layer.trainable_variables)

for steps in rng.integers(5, 120, 40):
    step(tf.ones((6, steps, 3)), tf.ones((6, steps), tf.bool))
"""


@pytest.mark.slow
def test_random_lengths_compile_little():
    """According to XLA's own count, in a separate process."""
    log = {"TF_CPP_VMODULE": "device_compilation_profiler=1", "TF_CPP_MIN_LOG_LEVEL": "0"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **log},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    programs = run.stderr.count("] Compiled __inference")
    # Forward and backward pass, shared by both directions: for the first length, which the graph
    # knows, and padded. One more to see whether XLA works.
    assert 3 <= programs <= 5, run.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"reset_after": False}, {"go_backwards": True}])
def test_layer_normalisation_of_padded_lengths(options):
    """The same as the cell's loop under automatic differentiation."""
    x = np.random.default_rng(5).normal(size=(3, 37, 4)).astype("float32")
    mask = mask_of("interior", 3, 37)
    wanted = None
    for path in ("loop", "fused"):
        layer = GRU(6, layer_norm=True, path=path, seed=1, **options)
        layer.build((None, None, 4))
        rng = np.random.default_rng(6)
        layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])

        specs = [tf.TensorSpec((None, None, 4)), tf.TensorSpec((None, None), tf.bool)]

        @tf.function(input_signature=specs)
        def run(x, mask, layer=layer):
            with tf.GradientTape() as tape:
                output = layer(x, mask=mask, training=True)
                loss = tf.reduce_sum(output**2)
            return [output, *tape.gradient(loss, [v.value for v in layer.trainable_variables])]

        got = run(x, mask)
        if wanted is not None:
            assert layer.last_path == "xla"
            assert_close(got, wanted, 2e-4)
        wanted = got
