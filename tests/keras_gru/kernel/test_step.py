"""One step with weights and inputs in every number of pieces."""

import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRUCell, functional
from keras_gru.functional import Convention, Gates
from keras_gru.kernel.equations import step, step_backward
from keras_gru.kernel.weights import PackedWeights, in_pieces, split_weights
from tests import oracle
from tests.keras_gru.kernel.sequence_problem import CONVENTIONS, problem


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
def test_every_number_of_pieces_equals_the_oracle(reset_after, update_gate, use_bias):
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
    h_new = functional.step(x[:, 0], h, *weights, rule)
    np.testing.assert_allclose(h_new, wanted, rtol=1e-12, atol=1e-12)
    packed = PackedWeights(*(None if v is None else tf.constant(v) for v in weights), None)
    h = tf.constant(h)
    for of_input, of_state in ((2, 1), (3, 1), (2, 2), (3, 2), (3, 3)):
        if of_state == 1 and not reset_after:  # the reset gate is known before the last product
            continue
        (kernel, bias, _), cut = split_weights(packed, reset_after, of_state)
        projected = tf.matmul(x[:, 0], kernel) + (0 if bias is None else bias)
        h_new, saved = step(in_pieces(projected, of_input), h, cut, rule)
        np.testing.assert_allclose(h_new, wanted, rtol=1e-12, atol=1e-12)
        transposed = cut._replace(recurrent=tuple(map(tf.transpose, cut.recurrent)))
        back = step_backward(tf.constant(d_new), saved, h, transposed, rule)
        np.testing.assert_allclose(back.h, d_wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reset_after", [True, False])
def test_masks_of_each_gate_scale_what_its_product_sees(reset_after):
    """With one mask for all gates they are the input and the state, scaled."""
    inputs, _ = problem(T=1, reset_after=reset_after)
    x, h, *weights = inputs.values()
    rng = np.random.default_rng(5)
    of_input, of_state = rng.uniform(0, 2, size=(3, 4)), rng.uniform(0, 2, size=(3, 6))
    found = functional.gates(
        *(x[:, 0], h, *weights, Convention(reset_after)), recurrent_mask=Gates(*[of_state] * 3)
    )
    wanted = functional.gates(x[:, 0], h * of_state, *weights, Convention(reset_after))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    found = functional.step(
        *(x[:, 0], h, *weights, Convention(reset_after)), input_mask=Gates(*[of_input] * 3)
    )
    wanted = functional.step(x[:, 0] * of_input, h, *weights, Convention(reset_after))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


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
