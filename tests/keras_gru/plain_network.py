"""The network of a trace as one plain forward function, for autodiff and for differences.

Every quantity has a probe, a zero added to it: the derivative of the loss with respect to a
probe is the gradient at that place. The same function runs on TensorFlow float64, where a tape
differentiates it, and on NumPy float64, where central differences do. No derivative is written.
"""

import numpy as np
import tensorflow as tf

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

# Name of a trace's gradient: the probes whose derivatives add up to it.
GRADIENTS = {
    "d_logits": ["logits"],
    "dh_output": ["h_output"],
    "dh_future": ["h_next"],
    "dh_new": ["h_new"],
    "d_z": ["z"],
    "d_r": ["r"],
    "d_g": ["g"],
    "d_a_z": ["a_z"],
    "d_a_r": ["a_r"],
    "d_a_g": ["a_g"],
    "d_q": ["q"],
    "d_rh": ["rh"],
    "dh_direct": ["h_direct"],
    "dh_candidate": ["h_candidate"],
    "dh_update_gate": ["h_z"],
    "dh_reset_gate": ["h_r"],
    "dh_gates": ["h_z", "h_r"],
    "dh": ["h"],
    "dx": ["x"],
    **{f"d{letter}_{gate}": [f"{letter}_{gate}"] for letter in "WUbc" for gate in "zrg"},
    "dW_out": ["W_out"],
    "db_out": ["b_out"],
}


def probe_shapes(network):
    T, D = network.inputs.shape
    U = network.units
    vectors = ["z", "r", "g", "a_z", "a_r", "a_g", "h_new", "h", "h_output", "h_next", "h_direct"]
    vectors += ["h_candidate", "h_z", "h_r", "q" if network.reset_after else "rh"]
    shapes = dict.fromkeys(vectors, (1, U)) | {"x": (1, D)}
    for gate in "zrg":
        shapes |= {f"W_{gate}": (D, U), f"U_{gate}": (U, U), f"b_{gate}": (1, U)}
        if network.reset_after:
            shapes[f"c_{gate}"] = (1, U)
    if network.output_kernel is not None:
        outputs = network.output_kernel.shape[1]
        shapes |= {"logits": (1, outputs), "W_out": (U, outputs), "b_out": (1, outputs)}
    return {(t, name): shape for t in range(T) for name, shape in shapes.items()}


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
    h = network.initial_state[None, :]
    for t, x in enumerate(network.inputs):
        p = {name: probe for (at, name), probe in probes.items() if at == t}
        W = {gate: network.kernel[gate] + p[f"W_{gate}"] for gate in "zrg"}
        U = {gate: network.recurrent_kernel[gate] + p[f"U_{gate}"] for gate in "zrg"}
        b = {gate: network.bias[gate] + p[f"b_{gate}"] for gate in "zrg"}
        if network.reset_after:
            c = {gate: network.recurrent_bias[gate] + p[f"c_{gate}"] for gate in "zrg"}
        else:
            c = dict.fromkeys("zrg", 0.0)
        x, h = x[None, :] + p["x"], h + p["h"]
        v = {"x": x, "h": h}
        v["a_z"] = (h + p["h_z"]) @ U["z"] + x @ W["z"] + b["z"] + c["z"] + p["a_z"]
        v["a_r"] = (h + p["h_r"]) @ U["r"] + x @ W["r"] + b["r"] + c["r"] + p["a_r"]
        v["z"] = sigma(v["a_z"]) + p["z"]
        v["r"] = sigma(v["a_r"]) + p["r"]
        if network.reset_after:
            v["q"] = (h + p["h_candidate"]) @ U["g"] + c["g"] + p["q"]
            past = v["r"] * v["q"]
        else:
            v["rh"] = v["r"] * (h + p["h_candidate"]) + p["rh"]
            past = v["rh"] @ U["g"]
        v["a_g"] = past + x @ W["g"] + b["g"] + p["a_g"]
        v["g"] = phi(v["a_g"]) + p["g"]
        keep = v["z"] if network.update_gate == "keep" else 1 - v["z"]
        v["keep"], v["add"] = keep, 1 - keep
        v["kept"], v["added"] = keep * (h + p["h_direct"]), (1 - keep) * v["g"]
        v["h_new"] = v["kept"] + v["added"] + p["h_new"]
        h = v["h_new"] + p["h_next"]
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
        at[key] = np.zeros(probe.shape)
        for index in np.ndindex(probe.shape):
            total = 0.0
            for offset, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
                probe[index] = offset * step
                total += weight * forward(network, probes, NUMPY)[1]
            probe[index] = 0.0
            at[key][index] = total / (12 * step)
    return _named(network, values, at)


def _named(network, values, gradients):
    """Squeeze row vectors; add gradients under the trace's names, and their sums over steps."""
    steps = [{} for _ in network.inputs]
    for (t, name), value in values.items():
        steps[t][name] = np.squeeze(value, axis=0) if np.ndim(value) == 2 else np.asarray(value)
    for t, step in enumerate(steps):
        for name, probes in GRADIENTS.items():
            parts = [gradients[t, probe] for probe in probes if (t, probe) in gradients]
            if parts:
                vector = not name.startswith(("dW", "dU"))
                step[name] = np.squeeze(sum(parts), axis=0) if vector else sum(parts)
        if "d_z" in step:
            keep = 1 if network.update_gate == "keep" else -1
            step["dz_factor"] = keep * (step["h"] - step["g"])
    totals = {}
    losses = [step["loss"] for step in steps if "loss" in step]
    if losses:
        totals |= {"loss_sum": np.sum(losses), "loss_mean": np.mean(losses)}
        weights = [name for name in GRADIENTS if name[1] in "WUbc" and name in steps[0]]
        totals |= {name: sum(step[name] for step in steps if name in step) for name in weights}
        if network.learning_rate is not None and network.output_kernel is not None:
            totals["new_W_out"] = network.output_kernel - network.learning_rate * totals["dW_out"]
            totals["new_b_out"] = network.output_bias - network.learning_rate * totals["db_out"]
    return steps, totals
