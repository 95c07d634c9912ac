"""The network of a trace as one plain forward function, for autodiff and for differences.

Every quantity has a probe, a zero added to it: the derivative of the loss with respect to a
probe is the gradient at that place. The same function runs on TensorFlow float64, where a tape
differentiates it, and on NumPy float64, where central differences do. No derivative is written.
"""

import re

import numpy as np
import tensorflow as tf

from tests.differences import derivative
from tests.keras_gru.plain_cells import PLAIN, SHARED, Step

NUMPY = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sum": np.sum,
    "relu": lambda a: a * (a > 0),
}
TENSORFLOW = {
    "exp": tf.exp,
    "log": tf.math.log,
    "tanh": tf.tanh,
    "sum": tf.reduce_sum,
    "relu": tf.nn.relu,
}


def gradients_of(network):
    """Name of a trace's gradient: the probes whose derivatives add up to it."""
    blocks, _, own, _ = PLAIN[network.cell_name]
    letters = "WUbc" if network.reset_after else "WUb"
    names = [f"{letter}_{block}" for letter in letters for block in blocks]
    return {**SHARED, **own, **{f"d{name}": [name] for name in names}}


def probe_shapes(network):
    T, D = network.inputs.shape
    U = network.units
    special = {"x": (1, D)}
    for block in PLAIN[network.cell_name][0]:
        special |= {f"W_{block}": (D, U), f"U_{block}": (U, U)}
    if network.output_kernel is not None:
        outputs = network.output_kernel.shape[1]
        special |= {"logits": (1, outputs), "W_out": (U, outputs), "b_out": (1, outputs)}
    names = {name for probes in gradients_of(network).values() for name in probes}
    if network.output_kernel is None:
        names -= {"logits", "W_out", "b_out"}
    if network.cell_name == "gru":
        names -= {"rh"} if network.reset_after else {"q"}
    return {(t, name): special.get(name, (1, U)) for t in range(T) for name in sorted(names)}


def forward(network, probes, ops):
    """Values by (step, name), and the loss of the sequence."""
    values, losses = {}, []
    functions = {
        "sigmoid": lambda a: 1 / (1 + ops["exp"](-a)),
        "tanh": ops["tanh"],
        "relu": ops["relu"],
        "linear": lambda a: a,
    }
    sigma, phi = functions[network.recurrent_activation], functions[network.activation]
    blocks, states, _, run = PLAIN[network.cell_name]
    state = {"h": network.initial_state[None, :]}
    if "c" in states:
        state["c"] = network.initial_cell[None, :]
    given = {
        "W": network.kernel,
        "U": network.recurrent_kernel,
        "b": network.bias,
        "c": network.recurrent_bias,
    }
    for t, x in enumerate(network.inputs):
        p = {name: probe for (at, name), probe in probes.items() if at == t}
        step = Step(network, p, sigma, phi)
        step.w = {
            (letter, block): by_block[block] + p.get(f"{letter}_{block}", 0.0)
            for letter, by_block in given.items()
            for block in blocks
        }
        x = x[None, :] + p["x"]
        state = {name: value + p[name] for name, value in state.items()}
        v = {"x": x, **state, **run(step, x, state)}
        state = {name: v[f"{name}_new"] + p[f"{name}_next"] for name in states}
        if network.output_kernel is not None:
            V = network.output_kernel + p["W_out"]
            bias = network.output_bias + p["b_out"]
            v["logits"] = (v["h_new"] + p["h_output"]) @ V + bias + p["logits"]
            v["y"], loss = _predict(network, t, v["logits"], ops)
            if loss is not None:
                v["loss"] = loss
                losses.append(loss)
        values |= {(t, name): value for name, value in v.items()}
    total = sum(losses)
    return values, total / len(losses) if losses and network.reduction == "mean" else total


def _predict(network, t, logits, ops):
    target = network.targets[t] if network.targets else None
    if network.loss == "cross_entropy":
        y = ops["exp"](logits) / ops["sum"](ops["exp"](logits))
        log_likelihood = None if target is None else ops["sum"](target * ops["log"](y))
    elif network.loss == "binary_cross_entropy":
        y = 1 / (1 + ops["exp"](-logits))
        log_likelihood = (
            None
            if target is None
            else ops["sum"](target * ops["log"](y) + (1 - target) * ops["log"](1 - y))
        )
    else:
        y = logits
        log_likelihood = None if target is None else -0.5 * ops["sum"]((y - target) ** 2)
    return y, None if log_likelihood is None else -log_likelihood


def by_autodiff(network):
    """Values and gradients, (step, name) to array: the gradients by a TensorFlow tape."""
    probes = {key: tf.zeros(shape, tf.float64) for key, shape in probe_shapes(network).items()}
    with tf.GradientTape() as tape:
        tape.watch(probes)
        values, loss = forward(network, probes, TENSORFLOW)
    found = {key: value.numpy() for key, value in values.items()}
    gradients = tape.gradient(loss, probes) if network.targets else {}
    at = {
        key: np.zeros(probes[key].shape) if g is None else g.numpy() for key, g in gradients.items()
    }
    return _named(network, found, at)


def by_differences(network, step=1e-3):
    """The same by fourth-order central differences in NumPy."""
    probes = {key: np.zeros(shape) for key, shape in probe_shapes(network).items()}
    values, _ = forward(network, probes, NUMPY)
    at = {}
    for key, probe in probes.items() if network.targets else ():

        def loss(probe, key=key):
            return forward(network, probes | {key: probe}, NUMPY)[1]

        at[key] = derivative(loss, probe, step)
    return _named(network, values, at)


def _named(network, values, gradients):
    """Squeeze row vectors; add gradients under the trace's names, and their sums over steps."""
    steps = [{} for _ in network.inputs]
    for (t, name), value in values.items():
        steps[t][name] = np.squeeze(value, axis=0) if np.ndim(value) == 2 else np.asarray(value)
    for t, step in enumerate(steps):
        for name, probes in gradients_of(network).items():
            parts = [gradients[t, probe] for probe in probes if (t, probe) in gradients]
            if parts:
                vector = not name.startswith(("dW", "dU"))
                step[name] = np.squeeze(sum(parts), axis=0) if vector else sum(parts)
        if "d_z" in step and network.cell_name == "gru":
            keep = 1 if network.update_gate == "keep" else -1
            step["dz_factor"] = keep * (step["h"] - step["g"])
    totals = {}
    losses = [step["loss"] for step in steps if "loss" in step]
    if losses:
        totals |= {"loss_sum": np.sum(losses), "loss_mean": np.mean(losses)}
        ends = (*PLAIN[network.cell_name][0], "out")
        pattern = re.compile(f"d[WUbc]_({'|'.join(ends)})")
        weights = [name for name in gradients_of(network) if pattern.fullmatch(name)]
        totals |= {name: sum(step[name] for step in steps if name in step) for name in weights}
        if network.learning_rate is not None and network.output_kernel is not None:
            totals["new_W_out"] = network.output_kernel - network.learning_rate * totals["dW_out"]
            totals["new_b_out"] = network.output_bias - network.learning_rate * totals["db_out"]
    return steps, totals
