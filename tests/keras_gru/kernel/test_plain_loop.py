"""Inference without XLA: every length, in unrolled pieces plus the remainder."""

import numpy as np
import pytest
import tensorflow as tf

from keras_gru.kernel import execution, forward_pass, plain_loop
from keras_gru.kernel.convention import Convention
from keras_gru.kernel.plain_loop import infer_rows
from keras_gru.kernel.sequence import gru_sequence
from tests.covering import covering
from tests.keras_gru.kernel.sequence_problem import expected, problem

# One block of rows, projected at once; two blocks, projected inside the loop.
SMALL = {"at once": 1 << 30, "on the way": 0}


@pytest.fixture(params=SMALL)
def ran(request, monkeypatch):
    """Whether each traced loop projects inside, if every batch counts as small or none does."""
    monkeypatch.setattr(execution, "SMALL_PLAIN_STATE", SMALL[request.param])
    ran = []

    def counted(*args):
        ran.append(args[-1])
        return infer_rows(*args)

    monkeypatch.setattr(forward_pass, "infer_rows", counted)
    return ran


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ran", "reset_after", "update_gate", "go_backwards"),
    covering(3, tuple(SMALL), (True, False), ("keep", "replace"), (False, True)),
    indirect=["ran"],
)
def test_every_length_equals_the_oracle(ran, reset_after, update_gate, go_backwards):
    convention = {"reset_after": reset_after, "update_gate": update_gate}
    weights, _ = problem(reset_after=reset_after)
    traces = []

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, None, 4), tf.float64),
            tf.TensorSpec((None, 6), tf.float64),
            tf.TensorSpec((None, None), tf.bool),
        ]
    )
    def run(x, h0, mask):
        traces.append(1)
        result = gru_sequence(
            *(x, h0, weights["kernel"], weights["recurrent_kernel"], weights["bias"]),
            Convention(**convention),
            mask=mask,
            go_backwards=go_backwards,
            training=False,
            path="plain",
        )
        return result.states, result.final

    for steps in range(1, 2 * execution.UNROLL + 2):
        inputs, upstream = problem(3, steps, reset_after=reset_after, seed=steps)
        inputs |= {name: weights[name] for name in ("kernel", "recurrent_kernel", "bias")}
        mask = np.random.default_rng(steps).uniform(size=(3, steps)) < 0.7
        states, final, _ = expected(
            inputs, upstream, mask=mask, go_backwards=go_backwards, **convention
        )
        actual = run(inputs["x"], inputs["h0"], mask)
        np.testing.assert_allclose(actual[0], states, rtol=0, atol=1e-12)
        np.testing.assert_allclose(actual[1], final, rtol=0, atol=1e-12)
    assert len(traces) == 1
    assert ran


@pytest.mark.parametrize(
    ("steps", "zoneout", "use_bias"),
    covering(2, (3, 8, 21), (None, "share", "shares"), (True, False)),
)
def test_known_lengths_and_zoneout_equal_eager_code(ran, steps, zoneout, use_bias):
    inputs, _ = problem(4, steps, reset_after=True, use_bias=use_bias)
    shares = np.random.default_rng(0).uniform(size=(4, steps, 6))
    share = {None: None, "share": np.float64(0.3), "shares": shares}[zoneout]
    options = {"zoneout": share, "go_backwards": steps == 21, "training": False}
    arguments = [*inputs.values(), Convention()]
    eager = gru_sequence(*arguments, **options)
    assert not ran
    traced = tf.function(lambda: gru_sequence(*arguments, path="plain", **options)[:2])()
    assert set(ran) == {execution.SMALL_PLAIN_STATE == 0}
    np.testing.assert_allclose(traced[0], eager.states, rtol=0, atol=1e-13)
    np.testing.assert_allclose(traced[1], eager.final, rtol=0, atol=1e-13)


def test_without_sequences_only_the_final_state_is_kept(ran):
    inputs, upstream = problem(3, 13, reset_after=True)
    arguments = [*inputs.values(), Convention()]
    _, final, _ = expected(inputs, upstream, mask=None, go_backwards=False, reset_after=True)
    result = tf.function(
        lambda: gru_sequence(*arguments, path="plain", return_sequences=False, training=False)[:2]
    )()
    assert ran
    assert result[0] is None
    np.testing.assert_allclose(result[1], final, rtol=0, atol=1e-12)


# The largest product, the kernels and, by number of blocks, the columns of the recurrent kernels.
CUTS = (
    (72, [12, 6], {1: [12, 6], 2: [12, 6]}),
    (40, [18], {1: [6, 6, 6], 2: [6, 6, 6]}),
    (30, [18], {1: [3, 3, 3, 3, 3, 3], 2: None}),
)


@pytest.mark.parametrize(
    ("cut", "reset_after", "update_gate", "use_bias", "blocks"),
    covering(3, CUTS, (True, False), ("keep", "replace"), (True, False), (1, 2)),
)
def test_weights_of_every_size_are_cut_and_equal_the_oracle(
    monkeypatch, cut, reset_after, update_gate, use_bias, blocks
):
    """Six units and four features: each gate has 36 recurrent weights and 24 input weights."""
    large, kernels, columns = cut
    monkeypatch.setattr(execution, "SMALL_PLAIN_STATE", 0 if blocks == 2 else 1 << 30)
    monkeypatch.setattr(plain_loop, "LARGE_PRODUCT", large)
    seen = []

    def noted(rows, weights, *args):
        seen.append([[v.shape[-1] for v in tf.nest.flatten(part)] for part in weights[:3:2]])
        return infer_rows(rows, weights, *args)

    monkeypatch.setattr(forward_pass, "infer_rows", noted)
    convention = {"reset_after": reset_after, "update_gate": update_gate}
    inputs, upstream = problem(4, 11, reset_after=reset_after, use_bias=use_bias)
    states, final, _ = expected(inputs, upstream, mask=None, go_backwards=False, **convention)
    arguments = [*inputs.values(), Convention(**convention)]
    result = tf.function(lambda: gru_sequence(*arguments, path="plain", training=False)[:2])()
    np.testing.assert_allclose(result[0], states, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result[1], final, rtol=0, atol=1e-12)
    # With the reset gate before the product, the candidate has products of its own.
    fewest = [18] if reset_after else [12, 6]
    assert seen == [[kernels, columns[blocks] or fewest]] * blocks
