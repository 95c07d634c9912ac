"""One step with every layout of the recurrent kernels, and errors for layouts that are wrong."""

import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRUCell
from keras_gru.kernel.convention import Convention
from keras_gru.kernel.plain_loop import infer_rows, plain_weights
from keras_gru.kernel.recurrence import Mode, Rows
from keras_gru.kernel.step import joint_step, step, step_backward
from keras_gru.kernel.step_inputs import joint_step_inputs, step_inputs
from keras_gru.kernel.weights import Gates, JointGates, joint_recurrent, split_joint
from tests import oracle
from tests.keras_gru.kernel.sequence_problem import CONVENTIONS, problem

MASK = Gates(*np.random.default_rng(5).uniform(0, 2, size=(3, 3, 6)))


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
def test_every_layout_equals_the_oracle(reset_after, update_gate, use_bias):
    inputs, upstream = problem(T=1, reset_after=reset_after, use_bias=use_bias)
    x, h, *weights = inputs.values()
    convention = {"reset_after": reset_after, "update_gate": update_gate}
    rows = [oracle.forward(x[i], h[i], *weights, **convention) for i in range(3)]
    wanted = np.stack([states[0] for states, _ in rows])
    d_new = upstream["final"]
    d_wanted = [
        oracle.backward(np.zeros((1, 6)), d_new[i], cache, x[i], *weights[:2], **convention)[1]
        for i, (_, cache) in enumerate(rows)
    ]
    rule = Convention(**convention)
    x, h, *weights = (None if v is None else tf.constant(v) for v in inputs.values())
    joint, joint_weights = joint_step_inputs(x[:, 0], *weights, reset_after)
    np.testing.assert_allclose(joint_step(joint, h, joint_weights, rule)[0], wanted, atol=1e-12)

    separate, by_gate = step_inputs(x[:, 0], *weights, None, reset_after)
    layouts = [by_gate.recurrent, joint_recurrent(weights[1], reset_after), split_joint(weights[1])]
    assert [type(layout) for layout in layouts[::2]] == [Gates, JointGates]
    for layout in layouts:
        of_layout = by_gate._replace(recurrent=layout)
        h_new, saved = step(separate, h, of_layout, rule)
        np.testing.assert_allclose(h_new, wanted, rtol=1e-12, atol=1e-12)
        back = step_backward(tf.constant(d_new), saved, h, of_layout.transposed(), rule)
        np.testing.assert_allclose(back.h, d_wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reset_after", [True, False])
def test_a_mask_that_cannot_be_honoured_is_an_error(reset_after):
    inputs, _ = problem(T=1, reset_after=reset_after)
    x, h, *weights = map(tf.constant, inputs.values())
    convention = Convention(reset_after)
    separate, few = step_inputs(x[:, 0], *weights, None, reset_after, separate=False)
    with pytest.raises(ValueError, match="`recurrent_mask` needs one recurrent kernel per gate"):
        step(separate, h, few, convention, MASK)
    _, saved = step(separate, h, few, convention)
    with pytest.raises(ValueError, match="`recurrent_mask` needs one recurrent kernel per gate"):
        step_backward(h, saved, h, few.transposed(), convention, MASK)
    rows = Rows(x, h, None, None, MASK)
    plain = plain_weights(*weights, (None, None), reset_after, few_rows=True)
    with pytest.raises(ValueError, match=r"`rows.recurrent_mask` .* must be None, got a mask"):
        infer_rows(rows, plain, Mode(convention, False, False, 8), True, True)


@pytest.mark.parametrize("reset_after", [True, False])
def test_layer_normalisation_needs_a_kernel_per_gate(reset_after):
    inputs, _ = problem(T=1, reset_after=reset_after)
    x, h, *weights = map(tf.constant, inputs.values())
    gain = np.ones((2, 18))
    joint, few = joint_step_inputs(x[:, 0], *weights, reset_after)
    _, by_gate = step_inputs(x[:, 0], *weights, gain, reset_after)
    with pytest.raises(ValueError, match=r"`weights.gain` needs one recurrent kernel per gate"):
        joint_step(joint, h, few._replace(gain=by_gate.gain), Convention(reset_after))
    with pytest.raises(ValueError, match=r"`weights.recurrent` of a joint step .* kernel per gate"):
        joint_step(joint, h, by_gate._replace(gain=None), Convention(reset_after))


@pytest.mark.parametrize(("reset_after", "products"), [(True, 2), (False, 3)])
@pytest.mark.parametrize("rows", [None, 64])
def test_a_cell_cuts_no_kernel_where_rows_are_unknown_or_many(rows, reset_after, products):
    """Splitting the recurrent kernel gate by gate would copy it at every call."""
    cell = GRUCell(64, reset_after=reset_after)
    cell.build((None, 4))
    graph = tf.function(lambda x, h: cell(x, [h])[0]).get_concrete_function(
        tf.TensorSpec((rows, 4)), tf.TensorSpec((rows, 64))
    )
    kinds = [operation.type for operation in graph.graph.get_operations()]
    assert kinds.count("MatMul") == products
