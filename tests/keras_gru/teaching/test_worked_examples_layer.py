"""The numbers and shapes of the texts compared with the layer (float32)."""

from functools import cache

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from keras_gru.kernel.equations import step, step_backward
from keras_gru.kernel.weights import Gates, PackedWeights, split_gates, split_weights
from keras_gru.teaching.worked_example import AGREES, evaluate, load_example
from tests.keras_gru.teaching.worked_examples import EXAMPLES, WITH_NETWORK, names_at

OF_GRU = [name for name in WITH_NETWORK if EXAMPLES[name].network().cell_name == "gru"]
GATES = ("z", "r", "g")


@cache
def float32_layer(name):
    """Step quantities and totals from the layer, its step function and a tape, in float32."""
    network = EXAMPLES[name].network()
    layer = GRU(
        network.units,
        activation=network.activation,
        recurrent_activation=network.recurrent_activation,
        reset_after=network.reset_after,
        update_gate=network.update_gate,
        return_sequences=True,
    )
    layer.build((1, *network.inputs.shape))
    layer.set_weights(
        [
            np.concatenate([network.kernel[gate] for gate in GATES], axis=1),
            np.concatenate([network.recurrent_kernel[gate] for gate in GATES], axis=1),
            np.concatenate([network.bias[gate] for gate in GATES]),
        ]
    )
    inputs = tf.constant(network.inputs[None], tf.float32)
    h0 = tf.constant(network.initial_state[None], tf.float32)
    T = len(network.inputs)
    totals, d_states = {}, tf.zeros((1, T, network.units))
    with tf.GradientTape(persistent=True) as tape:
        states = layer(inputs, initial_state=h0)
        logits = losses = None
        if network.output_kernel is not None:
            V, b = (
                tf.Variable(tf.cast(a, tf.float32))
                for a in (network.output_kernel, network.output_bias)
            )
            logits = tf.matmul(states[0], V) + b
            if network.targets:
                targets = tf.constant(np.array(network.targets), tf.float32)
                losses = tf.nn.softmax_cross_entropy_with_logits(targets, logits)
                loss = (
                    tf.reduce_sum(losses) if network.reduction == "sum" else tf.reduce_mean(losses)
                )
    if losses is not None:
        dkernel, drecurrent, dbias = tape.gradient(loss, layer.trainable_weights)
        for letter, packed in (("W", dkernel), ("U", drecurrent), ("b", dbias)):
            totals |= {
                f"d{letter}_{g}": v.numpy() for g, v in zip(GATES, split_gates(packed), strict=True)
            }
        totals["dW_out"], totals["db_out"] = (v.numpy() for v in tape.gradient(loss, (V, b)))
        optimizer = keras.optimizers.SGD(network.learning_rate)
        optimizer.apply([tf.constant(totals["dW_out"]), tf.constant(totals["db_out"])], [V, b])
        totals |= {"new_W_out": V.numpy(), "new_b_out": b.numpy(), "loss_mean": np.mean(losses)}
        d_states = tape.gradient(loss, states)
    steps = float32_steps(network, layer, inputs[0], h0, d_states)
    for t in range(T):
        # The layer takes 1 - z out of the activation, so that the last digits may differ.
        np.testing.assert_array_max_ulp(steps[t]["h_new"], states[0, t].numpy(), maxulp=4)
        if logits is not None:
            steps[t] |= {"logits": logits[t].numpy(), "y": tf.nn.softmax(logits[t]).numpy()}
        if losses is not None:
            steps[t]["loss"] = losses[t].numpy()
    return steps, totals


def float32_steps(network, layer, inputs, h, d_states):
    """Gates and gradients of each step from the functions that the layer uses."""
    kernel, recurrent, bias = layer.trainable_weights
    packed = PackedWeights(kernel, tf.convert_to_tensor(recurrent), None, None)
    _, weights = split_weights(packed, layer.cell.reset_after, 3)
    transposed = weights._replace(recurrent=tuple(map(tf.transpose, weights.recurrent)))
    steps, saved = [], []
    for x in inputs:
        projected = split_gates(tf.matmul(x[None], kernel) + bias)
        h_new, kept = step(projected, h, weights, layer.cell.convention)
        saved.append((h, kept))
        steps.append({"h": h, "z": kept[0], "r": kept[1], "g": kept[2], "h_new": h_new})
        h = h_new
    dh = tf.zeros_like(h)
    for t in reversed(range(len(steps))):
        dh_output, dh_future = d_states[:, t], dh
        found = step_backward(
            dh_output + dh_future,
            saved[t][1],
            saved[t][0],
            transposed,
            layer.cell.convention,
        )
        dh = found.h
        assert isinstance(found.x, Gates)
        steps[t] |= {
            "dh_output": dh_output,
            "dh_future": dh_future,
            "dh_new": dh_output + dh_future,
            "dh": dh,
        }
        steps[t] |= {f"d_a_{gate}": getattr(found.x, gate) for gate in GATES}
    return [{name: value.numpy()[0] for name, value in values.items()} for values in steps]


def in_layer(verdict, found):
    try:
        return evaluate(verdict.quantity, names_at(found, verdict.claim))
    except ValueError:
        return None


@pytest.mark.parametrize("name", OF_GRU)
def test_the_layer_prints_the_same_numbers_in_float32(name):
    compared = 0
    for verdict in EXAMPLES[name].verdicts:
        if "quantity" not in verdict.claim or "variant" in verdict.claim:
            continue
        value = in_layer(verdict, float32_layer(name))
        if value is None:
            continue
        np.testing.assert_allclose(
            value, verdict.computed, rtol=2e-5, atol=2e-6, err_msg=verdict.quantity
        )
        if verdict.status == AGREES and "range" not in verdict.claim:
            half = 0.5 * 10.0**-verdict.decimals
            np.testing.assert_allclose(value, verdict.printed, rtol=0, atol=half + 1e-6)
        compared += 1
    assert compared >= 6


def test_parameter_counts_are_those_of_the_layers():
    assert counted(GRU(128, reset_after=False), 100) == 87936
    dense = keras.layers.Dense(10)
    dense.build((None, 128))
    assert dense.count_params() == 1290
    rnn, gru, lstm = (
        counted(layer, 100)
        for layer in (
            keras.layers.SimpleRNN(256),
            GRU(256, reset_after=False),
            keras.layers.LSTM(256),
        )
    )
    assert (rnn, gru, lstm) == (91392, 274176, 365568)
    assert gru / rnn == 3.0
    assert lstm / rnn == 4.0
    assert 1 - gru / lstm == 0.25


def counted(layer, features):
    layer.build((None, None, features))
    return layer.count_params()


@pytest.mark.parametrize(
    "fact", load_example("architecture").content["shapes"], ids=lambda fact: fact["where"]
)
def test_printed_shapes_are_those_of_stacked_layers(fact):
    sequences = tf.zeros(fact["inputs"])
    finals = []
    for units in fact["layers"]:
        sequences, final = GRU(units, return_sequences=True, return_state=True)(sequences)
        finals.append(final)
    output = sequences
    if "dense" in fact:
        output = keras.layers.Reshape(fact["reshape"])(
            keras.layers.Dense(fact["dense"])(finals[-1])
        )
    assert list(output.shape) == fact["printed"]["output"]
    if "state" in fact["printed"]:
        assert list(tf.stack(finals).shape) == fact["printed"]["state"]


def test_printed_shapes_of_a_bidirectional_encoder():
    layer = keras.layers.Bidirectional(GRU(6, return_sequences=True, return_state=True))
    outputs, forward, backward = layer(tf.zeros((2, 5, 3)))
    assert outputs.shape == (2, 5, 2 * 6)
    assert tf.concat([forward, backward], axis=-1).shape == (2, 2 * 6)


@pytest.mark.parametrize(("z", "printed", "decimals"), [(0.9, 0.000027, 6), (0.98, 0.133, 3)])
def test_direct_path_of_the_layer_decays_as_printed(z, printed, decimals):
    layer = GRU(1, kernel_initializer="zeros", recurrent_initializer="zeros", dtype="float64")
    layer.build((1, None, 1))
    kernel, recurrent, bias = layer.get_weights()
    bias[0, 0] = np.log(z / (1 - z))
    layer.set_weights([kernel, recurrent, bias])
    h0 = tf.ones((1, 1), tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(h0)
        last = layer(tf.zeros((1, 100, 1), tf.float64), initial_state=h0)
    gradient = tape.gradient(last, h0).numpy().item()
    assert gradient == pytest.approx(z**100, rel=1e-9)
    assert gradient == pytest.approx(printed, abs=0.5 * 10.0**-decimals)
