"""The fused sequence against the NumPy oracle, finite differences, and the plain step."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru.functional import Convention, Gates
from keras_gru.kernel import execution
from keras_gru.kernel.equations import step
from keras_gru.kernel.weights import PackedWeights, split_gates, split_weights
from tests import oracle
from tests.covering import covering
from tests.differences import derivative
from tests.keras_gru.kernel.sequence_problem import (
    CONVENTIONS,
    MASKS,
    assert_close,
    computed,
    expected,
    problem,
    sequence,
)

# What `execution.choose_plan` chooses for a problem of this size, and for larger ones.
WAYS = {
    "recall": {},
    "keep": {"MAX_RECALLED_WORK": 0},
    "cut": {"SMALL_WORK": 0, "MAX_RECALLED_WORK": 0},
    "cut and recall": {"SMALL_WORK": 0},
    "cut and project in the loop": {"SMALL_WORK": 0, "UNITS_PER_FEATURE": 0},
}


@pytest.mark.parametrize(
    ("reset_after", "update_gate", "mask", "go_backwards"),
    covering(3, (True, False), ("keep", "replace"), list(MASKS), (False, True)),
)
def test_equals_oracle(reset_after, update_gate, mask, go_backwards):
    inputs, upstream = problem(reset_after=reset_after)
    mask = None if MASKS[mask] is None else np.array(MASKS[mask], bool)
    convention = {"reset_after": reset_after, "update_gate": update_gate}
    states, final, grads = expected(
        inputs, upstream, mask=mask, go_backwards=go_backwards, **convention
    )
    options = {"mask": mask, "go_backwards": go_backwards, "path": "plain"}
    actual = computed(inputs, upstream, Convention(**convention), **options)
    assert_close(actual[:2], (states, final), 1e-12)
    assert_close(actual[2], grads, 1e-11)


@pytest.mark.parametrize(
    ("shape", "path", "use_bias", "reset_after"),
    covering(
        2,
        [(1, 1, 1, 1), (1, 7, 2, 3), (4, 1, 3, 2), (2, 3, 1, 5)],
        ("plain", "xla"),
        (True, False),
        (True, False),
    ),
)
def test_small_shapes(shape, path, use_bias, reset_after):
    inputs, upstream = problem(*shape, reset_after=reset_after, use_bias=use_bias)
    states, final, grads = expected(
        inputs, upstream, mask=None, go_backwards=False, reset_after=reset_after
    )
    run = tf.function if path == "xla" else lambda function: function
    actual = computed(inputs, upstream, Convention(reset_after), run=run, path=path)
    assert_close(actual[:2], (states, final), 1e-12)
    assert_close(actual[2], grads if use_bias else grads[:4], 1e-11)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("way", "mask", "reset_after", "update_gate", "recurrent_dropout", "go_backwards"),
    covering(
        2,
        list(WAYS),
        list(MASKS),
        (True, False),
        ("keep", "replace"),
        (False, True),
        (False, True),
    ),
)
def test_every_way_of_xla_equals_plain_eager_code(
    monkeypatch, way, mask, reset_after, update_gate, recurrent_dropout, go_backwards
):
    """The one comparison of the paths; other tests take the plain one, which compiles nothing."""
    for name, value in WAYS[way].items():
        monkeypatch.setattr(execution, name, value)
    inputs, upstream = problem(reset_after=reset_after)
    with tf.Graph().as_default():
        plan = execution.choose_plan("auto", *inputs["x"].shape, inputs["h0"].shape[1])
    assert plan.compiled
    assert plan.recall == ("recall" in way)
    assert plan.blocks == (min(execution.cores(), 3) if "cut" in way else 1)
    assert plan.project_in_loop == ("project" in way)
    mask = None if MASKS[mask] is None else np.array(MASKS[mask], bool)
    options = {"mask": mask, "go_backwards": go_backwards}
    convention = Convention(reset_after, update_gate)
    if recurrent_dropout:
        drop = np.random.default_rng(1).uniform(0, 2, size=(3, 3, 6))
        options["recurrent_mask"] = Gates(*drop)
    wanted = computed(inputs, upstream, convention, **options)
    actual = computed(inputs, upstream, convention, run=tf.function, **options)
    assert_close(actual[:2], wanted[:2], 1e-12)
    assert_close(actual[2], wanted[2], 1e-11)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("steps", "go_backwards", "reset_after"),
    covering(2, (1, 4, 5), (False, True), (True, False)),
)
def test_inference_that_projects_in_the_loop(monkeypatch, steps, go_backwards, reset_after):
    """The loop takes two steps per iteration, and one more if their number is odd."""
    for name, value in WAYS["cut and project in the loop"].items():
        monkeypatch.setattr(execution, name, value)
    inputs, upstream = problem(T=steps, reset_after=reset_after)
    with tf.Graph().as_default():
        plan = execution.choose_plan("auto", 3, None, 4, 6).for_inference()
    assert (plan.compiled, plan.project_in_loop, plan.unroll) == (True, True, 2)
    mask = np.array(MASKS["interior and empty"], bool)[:, :steps]
    states, final, grads = expected(
        inputs, upstream, mask=mask, go_backwards=go_backwards, reset_after=reset_after
    )
    options = {"mask": mask, "go_backwards": go_backwards, "training": False}
    actual = computed(inputs, upstream, Convention(reset_after), run=tf.function, **options)
    assert_close(actual[:2], (states, final), 1e-12)
    assert_close(actual[2], grads, 1e-11)


@pytest.mark.slow_cases
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("reset_after", [True, False])
def test_only_the_final_state_and_without_saving(reset_after, training):
    inputs, upstream = problem(reset_after=reset_after)
    upstream["states"] *= 0
    _, final, grads = expected(
        inputs, upstream, mask=None, go_backwards=False, reset_after=reset_after
    )
    states, actual, actual_grads = computed(
        inputs,
        upstream,
        Convention(reset_after),
        run=tf.function,
        return_sequences=False,
        training=training,
    )
    assert states is None
    assert_close([actual], [final], 1e-12)
    assert_close(actual_grads, grads, 1e-11)


@pytest.mark.parametrize("normalized", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
@pytest.mark.parametrize("recurrent_dropout", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_finite_differences(recurrent_dropout, reset_after, update_gate, normalized):
    """Central differences for every element of every input."""
    units = 3 if normalized else 2
    inputs, upstream = problem(2, 3, 2, units, reset_after=reset_after, seed=3)
    convention = Convention(reset_after, update_gate)
    drop = np.random.default_rng(1).uniform(0, 2, size=(3, 2, units))
    options = {
        "mask": np.array([[1, 0, 1], [0, 1, 1]], bool),
        "recurrent_mask": Gates(*drop) if recurrent_dropout else None,
        "path": "plain",
    }
    if normalized:
        inputs["gain"] = np.random.default_rng(6).normal(size=(2, 9))
        options["zoneout"] = np.random.default_rng(2).uniform(size=(2, 3, 3))

    @tf.function(reduce_retracing=True)
    def loss(*sources):
        gain = sources[5] if normalized else None
        states, final, *_ = sequence(*sources[:5], convention, layer_norm_gain=gain, **options)
        return tf.reduce_sum(states * upstream["states"]) + tf.reduce_sum(final * upstream["final"])

    sources = [tf.constant(value) for value in inputs.values()]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        value = loss(*sources)
    for name, grad in zip(inputs, tape.gradient(value, sources), strict=True):

        def moved(value, name=name):
            return loss(*map(tf.constant, (inputs | {name: value}).values()))

        # Small variances under the root of a layer normalisation are so curved.
        numeric = derivative(moved, inputs[name], 2e-4 if normalized else 1e-3)
        tolerance = 1e-6 if normalized else 1e-8
        np.testing.assert_allclose(grad, numeric, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    ("activation", "recurrent_activation"),
    [("relu", "hard_sigmoid"), ("linear", "sigmoid"), ("tanh", "hard_sigmoid")],
)
@pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
def test_gradients_equal_autodiff_of_the_step(
    reset_after, update_gate, activation, recurrent_activation
):
    inputs, upstream = problem(reset_after=reset_after, seed=5)
    convention = Convention(
        reset_after,
        update_gate,
        keras.activations.get(activation),
        keras.activations.get(recurrent_activation),
    )
    sources = [tf.constant(v) for v in inputs.values()]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        x, h, kernel, recurrent_kernel, bias = sources
        packed = PackedWeights(kernel, recurrent_kernel, bias, None)
        projection, weights = split_weights(packed, reset_after, 3)
        states = []
        for t in range(x.shape[1]):
            h, _ = step(split_gates(x[:, t] @ kernel + projection.bias), h, weights, convention)
            states.append(h)
        states = tf.stack(states, 1)
        loss = tf.reduce_sum(states * upstream["states"]) + tf.reduce_sum(h * upstream["final"])
    plain = tape.gradient(loss, sources)
    actual = computed(inputs, upstream, convention)
    assert_close(actual[:2], (states, h), 1e-12)
    assert_close(actual[2], plain, 1e-11)


def test_oracle_gradients_by_finite_differences():
    """The reference itself is checked, so that both cannot share a mistake."""
    for reset_after, update_gate in CONVENTIONS:
        inputs, upstream = problem(1, 3, 2, 2, reset_after=reset_after, seed=11)
        convention = {"reset_after": reset_after, "update_gate": update_gate}

        def loss(values, convention=convention, upstream=upstream):
            states, _ = oracle.forward(
                values["x"][0], values["h0"][0], *list(values.values())[2:], **convention
            )
            return np.sum(states * upstream["states"][0]) + np.sum(
                states[-1] * upstream["final"][0]
            )

        _, _, grads = expected(inputs, upstream, mask=None, go_backwards=False, **convention)
        for name, grad in zip(inputs, grads, strict=True):
            moved = lambda value, name=name, inputs=inputs: loss(inputs | {name: value})  # noqa: E731
            numeric = derivative(moved, inputs[name], 1e-3)
            np.testing.assert_allclose(grad, numeric, rtol=1e-8, atol=1e-9)
