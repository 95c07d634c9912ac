"""The derivative of a state by the weights, path by path, against tapes and differences."""

import numpy as np
import pytest
import tensorflow as tf

from keras_gru.teaching.network import parse_network
from keras_gru.teaching.trace import last_paths, state_paths, trace
from tests.differences import derivative
from tests.keras_gru.plain_network import NUMPY, TENSORFLOW, forward, probe_shapes
from tests.keras_gru.teaching.random_networks import NETWORKS, random_fields

NAMES = ["rnn", "rnn_last_step", "lstm", "lstm_sigmoid", "keep_before", "replace_after", "mgu_keep"]


@pytest.mark.parametrize("name", NAMES)
def test_each_path_is_the_derivative_by_the_weights_of_its_step(name):
    """A probe on the weights of step k alone: what it does to h_t is the path from k to t."""
    network = parse_network(NETWORKS[name])
    t = len(network.inputs) - 1
    split = state_paths(trace(network), t)
    probes = {key: tf.zeros(shape, tf.float64) for key, shape in probe_shapes(network).items()}
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(probes)
        state = forward(network, probes, TENSORFLOW)[0][t, "h_new"][0]
        elements = tf.unstack(state)
    assert [path.step for path in split.paths] == list(range(t, -1, -1))
    for unit, element in enumerate(elements):
        by_tape = tape.gradient(element, probes, unconnected_gradients="zero")
        for path in split.paths:
            arriving = by_tape[path.step, "h_new"][0]
            np.testing.assert_allclose(path.jacobian[unit], arriving, atol=1e-12)
            for weight, by_unit in path.derivatives.items():
                expected = by_tape[path.step, weight].numpy().reshape(by_unit[unit].shape)
                np.testing.assert_allclose(by_unit[unit], expected, atol=1e-12)


@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_each_path_equals_central_differences(name):
    network = parse_network(NETWORKS[name])
    t = len(network.inputs) - 1
    split = state_paths(trace(network), t)
    weight = f"U_{network.blocks[0]}"
    probes = {key: np.zeros(shape) for key, shape in probe_shapes(network).items()}
    for path in split.paths:
        key = path.step, weight

        def state(probe, key=key):
            return forward(network, probes | {key: probe}, NUMPY)[0][t, "h_new"][0]

        numeric = derivative(state, probes[key], 1e-3)
        np.testing.assert_allclose(path.derivatives[weight], numeric, atol=1e-9)


def test_paths_of_the_vanilla_rnn_are_products_as_the_text_writes_them():
    """∂s_4/∂s_k is a product of diag(σ′)W, and the end of each path ∂⁺s_k/∂W is explicit."""
    network = parse_network(NETWORKS["rnn"])
    found = trace(network)
    split = state_paths(found, 3)
    W = network.recurrent_kernel["h"].T  # for columns
    slopes = [1 - step["h_new"] ** 2 for step in found.steps]
    product = np.eye(2)
    for path in split.paths:
        k = path.step
        np.testing.assert_allclose(path.jacobian, product, atol=1e-14)
        explicit = np.einsum("p,pq,r->prq", slopes[k], np.eye(2), found.steps[k]["h"])
        np.testing.assert_allclose(
            path.derivatives["U_h"], np.tensordot(product, explicit, 1), atol=1e-14
        )
        product = product @ (slopes[k][:, None] * W)


@pytest.mark.parametrize("name", NAMES)
def test_paths_of_all_losses_add_up_to_the_gradient(name):
    network = parse_network(NETWORKS[name])
    found = trace(network)
    splits = [state_paths(found, t) for t, step in enumerate(found.steps) if "loss" in step]
    for weight in splits[0].paths[0].derivatives:
        total = sum(sum(split.shares(weight)) for split in splits)
        np.testing.assert_allclose(total, found.totals[f"d{weight}"], atol=1e-12)
        assert split_total_is_the_sum(splits[-1], weight)


def split_total_is_the_sum(split, weight):
    return np.allclose(split.total(weight), sum(p.derivatives[weight] for p in split.paths))


def test_a_large_network_has_no_paths():
    network = parse_network(random_fields(1, T=60, U=40, D=20))
    assert last_paths(trace(network)) is None


def test_the_last_state_with_a_loss_is_split():
    gap = dict(NETWORKS["rnn"], targets=[None, [1, 0], [0, 1], None])
    assert last_paths(trace(parse_network(gap))).step == 2
    without = dict(NETWORKS["rnn"], targets=None)
    split = last_paths(trace(parse_network(without)))
    assert split.step == 3
    with pytest.raises(ValueError, match="step: expected one with a loss, got 3"):
        split.shares("U_h")
    assert "dU_h" not in split.to_json()["paths"][0]
