"""A small GRU network written as JSON: its fields, its checks, its reading.

By gate, as texts write it (each `W` is (units, inputs), each `U` is (units, units))::

    {"update_gate": "keep", "reset_after": false,
     "weights": {"z": {"W": [[...]], "U": [[...]], "b": [...]}, "r": {...}, "g": {...}},
     "output": {"W": [[...]], "b": [...], "loss": "cross_entropy"},
     "inputs": [[...], ...], "targets": [[...], ...],
     "reduction": "mean", "learning_rate": 0.01}

or as `layer.get_weights()` gives it: ``"weights": {"kernel": (D, 3U), "recurrent_kernel":
(U, 3U), "bias": (3U,) or (2, 3U)}``, gate order z, r, g.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_gru.teaching.network_fields import Array, NetworkError, array, choice, mapping, required

GATES = ("z", "r", "g")
UPDATE_GATES = ("keep", "replace")
ACTIVATIONS = ("tanh", "sigmoid", "relu", "linear")
LOSSES = ("cross_entropy", "binary_cross_entropy", "squared_error")
REDUCTIONS = ("sum", "mean")

_FIELDS = (
    "update_gate",
    "reset_after",
    "activation",
    "recurrent_activation",
    "weights",
    "output",
    "inputs",
    "initial_state",
    "targets",
    "reduction",
    "learning_rate",
    "tokens",
    "classes",
)


@dataclass(frozen=True)
class Network:
    """A GRU layer with one output layer, and one sequence to run through it.

    Shapes: D inputs, U units, O outputs, T steps. Gate dictionaries have the keys z, r, g.
    """

    update_gate: str
    """`keep`: h′ = z⊙h + (1−z)⊙g; `replace`: h′ = (1−z)⊙h + z⊙g."""
    reset_after: bool
    """Whether the reset gate acts after the recurrent matmul, (3a), or before it, (3b)."""
    activation: str
    recurrent_activation: str
    kernel: Mapping[str, Array]
    """By gate, (D, U)."""
    recurrent_kernel: Mapping[str, Array]
    """By gate, (U, U)."""
    bias: Mapping[str, Array]
    """By gate, (U,)."""
    recurrent_bias: Mapping[str, Array]
    """By gate, (U,); zeros when the reset gate acts before the matmul."""
    inputs: Array
    """(T, D)."""
    initial_state: Array
    """(U,)."""
    output_kernel: Array | None
    """(U, O), or None for a layer without an output."""
    output_bias: Array | None
    loss: str
    targets: tuple[Array | None, ...]
    """T targets of shape (O,); None where a step has no loss. Empty: no loss at all."""
    reduction: str
    """How the losses of the steps become one: their `sum` or their `mean`."""
    learning_rate: float | None
    tokens: tuple[str, ...]
    classes: tuple[str, ...]

    @property
    def units(self) -> int:
        """Size U of the hidden state."""
        return int(self.initial_state.shape[0])

    def parameter_count(self) -> int:
        """Trainable numbers in the GRU and its output layer."""
        arrays = [*self.kernel.values(), *self.recurrent_kernel.values(), *self.bias.values()]
        if self.reset_after:
            arrays += self.recurrent_bias.values()
        if self.output_kernel is not None and self.output_bias is not None:
            arrays += [self.output_kernel, self.output_bias]
        return sum(array.size for array in arrays)


def read_network(path: Path) -> Network:
    """Read a network, or the network of a worked example, from a JSON file.

    Raises:
        NetworkError: The file is not JSON or a field is missing, misshapen or not finite.
        OSError: The file cannot be read.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NetworkError(f"{path}: expected a JSON file, got {error}") from error
    if isinstance(content, dict) and "network" in content:
        content = content["network"]
    return parse_network(content)


def parse_network(content: object) -> Network:
    """Check a network's JSON content (see the module's example) and convert it to arrays.

    Raises:
        NetworkError: Naming the field, what was expected and what came.
    """
    fields = mapping(content, "network", _FIELDS)
    update_gate = choice(fields, "update_gate", UPDATE_GATES)
    reset_after = required(fields, "reset_after", "true or false")
    if not isinstance(reset_after, bool):
        raise NetworkError(f"reset_after: expected true or false, got {reset_after!r}")
    inputs = array(required(fields, "inputs", "a list of input vectors"), "inputs", (None, None))
    if inputs.size == 0:
        raise NetworkError(
            f"inputs: expected at least one step and one feature, got {inputs.shape}"
        )
    steps, features = inputs.shape
    weights = required(fields, "weights", "an object with z, r, g, or kernel, recurrent_kernel")
    kernel, recurrent_kernel, bias, recurrent_bias = _weights(weights, features, reset_after)
    units = recurrent_kernel["z"].shape[0]
    initial_state = (
        array(fields["initial_state"], "initial_state", (units,))
        if fields.get("initial_state") is not None
        else np.zeros(units)
    )
    output_kernel, output_bias, loss = _output(fields.get("output"), units)
    outputs = 0 if output_kernel is None else output_kernel.shape[1]
    return Network(
        update_gate=update_gate,
        reset_after=reset_after,
        activation=choice(fields, "activation", ACTIVATIONS, "tanh"),
        recurrent_activation=choice(fields, "recurrent_activation", ACTIVATIONS, "sigmoid"),
        kernel=kernel,
        recurrent_kernel=recurrent_kernel,
        bias=bias,
        recurrent_bias=recurrent_bias,
        inputs=inputs,
        initial_state=initial_state,
        output_kernel=output_kernel,
        output_bias=output_bias,
        loss=loss,
        targets=_targets(fields.get("targets"), steps, outputs, loss),
        reduction=choice(fields, "reduction", REDUCTIONS, "mean"),
        learning_rate=_learning_rate(fields.get("learning_rate")),
        tokens=_labels(fields.get("tokens"), "tokens", steps),
        classes=_labels(fields.get("classes"), "classes", outputs),
    )


def _weights(
    content: object, features: int, reset_after: bool
) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array], dict[str, Array]]:
    if isinstance(content, dict) and "kernel" in content:
        return _stacked_weights(content, features, reset_after)
    gates = mapping(content, "weights", GATES)
    kernel, recurrent_kernel, bias, recurrent_bias = {}, {}, {}, {}
    units: int | None = None
    for gate in GATES:
        at = f"weights.{gate}"
        known = ("W", "U", "b", "b_recurrent") if reset_after else ("W", "U", "b")
        parts = mapping(required(gates, gate, "an object with W, U, b", "weights."), at, known)
        U = array(
            required(parts, "U", "a (units, units) matrix", f"{at}."), f"{at}.U", (units, units)
        )
        if U.shape[0] != U.shape[1]:
            raise NetworkError(f"{at}.U: expected a square (units, units) matrix, got {U.shape}")
        units = U.shape[0]
        W = required(parts, "W", "a (units, inputs) matrix", f"{at}.")
        kernel[gate] = array(W, f"{at}.W", (units, features)).T
        recurrent_kernel[gate] = U.T
        zeros = [0.0] * units
        bias[gate] = array(parts.get("b", zeros), f"{at}.b", (units,))
        recurrent_bias[gate] = array(parts.get("b_recurrent", zeros), f"{at}.b_recurrent", (units,))
    return kernel, recurrent_kernel, bias, recurrent_bias


def _stacked_weights(
    content: object, features: int, reset_after: bool
) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array], dict[str, Array]]:
    stacked = mapping(content, "weights", ("kernel", "recurrent_kernel", "bias"))
    what = "a (units, 3 * units) matrix"
    recurrent = required(stacked, "recurrent_kernel", what, "weights.")
    U = array(recurrent, "weights.recurrent_kernel", (None, None))
    units = U.shape[0]
    if U.shape != (units, 3 * units) or units == 0:
        raise NetworkError(f"weights.recurrent_kernel: expected {what}, got {U.shape}")
    W = array(stacked["kernel"], "weights.kernel", (features, 3 * units))
    shape = (2, 3 * units) if reset_after else (3 * units,)
    b = array(stacked.get("bias", np.zeros(shape).tolist()), "weights.bias", shape)
    rows = b.reshape(-1, 3 * units)
    recurrent_row = rows[1] if reset_after else np.zeros(3 * units)
    by_gate = [
        dict(zip(GATES, np.split(array, 3, axis=-1), strict=True))
        for array in (W, U, rows[0], recurrent_row)
    ]
    return by_gate[0], by_gate[1], by_gate[2], by_gate[3]


def _output(content: object, units: int) -> tuple[Array | None, Array | None, str]:
    if content is None:
        return None, None, LOSSES[0]
    parts = mapping(content, "output", ("W", "b", "loss"))
    W = array(
        required(parts, "W", "an (outputs, units) matrix", "output."), "output.W", (None, units)
    )
    if W.shape[0] == 0:
        raise NetworkError(f"output.W: expected at least one row, got {W.shape}")
    b = array(parts.get("b", [0.0] * W.shape[0]), "output.b", (W.shape[0],))
    return W.T, b, choice(parts, "loss", LOSSES, prefix="output.")


def _targets(content: object, steps: int, outputs: int, loss: str) -> tuple[Array | None, ...]:
    if content is None:
        return ()
    if outputs == 0:
        raise NetworkError('targets: expected an "output" beside them, got none')
    if not isinstance(content, Sequence) or isinstance(content, str) or len(content) != steps:
        raise NetworkError(f"targets: expected a list of {steps} targets or nulls, got {content!r}")
    targets = tuple(
        None if target is None else array(target, f"targets[{t}]", (outputs,))
        for t, target in enumerate(content)
    )
    if all(target is None for target in targets):
        raise NetworkError("targets: expected a target at one step or more, got only nulls")
    for t, target in enumerate(targets):
        if target is None or loss == "squared_error":
            continue
        if target.min() < 0 or target.max() > 1:
            raise NetworkError(
                f"targets[{t}]: expected probabilities in [0, 1], got {target.tolist()}"
            )
        if loss == "cross_entropy" and not math.isclose(target.sum(), 1.0, rel_tol=1e-9):
            raise NetworkError(
                f"targets[{t}]: expected probabilities that sum to 1, got {target.tolist()}"
            )
    return targets


def _learning_rate(content: object) -> float | None:
    if content is None:
        return None
    rate = float(array(content, "learning_rate", ()))
    if rate <= 0:
        raise NetworkError(f"learning_rate: expected a positive number, got {rate}")
    return rate


def _labels(content: object, name: str, count: int) -> tuple[str, ...]:
    if content is None:
        return ()
    if (
        not isinstance(content, list)
        or len(content) != count
        or not all(isinstance(label, str) for label in content)
    ):
        raise NetworkError(f"{name}: expected a list of {count} strings, got {content!r}")
    return tuple(content)
