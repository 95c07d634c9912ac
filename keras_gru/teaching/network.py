"""A small recurrent network written as JSON: its fields, its checks, its reading.

By gate, as texts write it (each `W` is (units, inputs), each `U` is (units, units))::

    {"cell": "gru", "update_gate": "keep", "reset_after": false,
     "weights": {"z": {"W": [[...]], "U": [[...]], "b": [...]}, "r": {...}, "g": {...}},
     "output": {"W": [[...]], "b": [...], "loss": "cross_entropy"},
     "inputs": [[...], ...], "targets": [[...], ...],
     "reduction": "mean", "learning_rate": 0.01}

or as `layer.get_weights()` gives it: ``"weights": {"kernel": (D, 3U), "recurrent_kernel":
(U, 3U), "bias": (3U,) or (2, 3U)}``, gate order z, r, g. `keras_gru.teaching.cells.registry`
has the other cells and their blocks.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_gru.teaching.cells.cell import Cell
from keras_gru.teaching.cells.registry import CELLS
from keras_gru.teaching.network_fields import Array, NetworkError, array, choice, mapping, required
from keras_gru.teaching.network_weights import read_weights

UPDATE_GATES = ("keep", "replace")
ACTIVATIONS = ("tanh", "sigmoid", "relu", "linear")
LOSSES = ("cross_entropy", "binary_cross_entropy", "squared_error")
REDUCTIONS = ("sum", "mean")

_FIELDS = (
    "cell",
    "update_gate",
    "reset_after",
    "activation",
    "recurrent_activation",
    "weights",
    "output",
    "inputs",
    "initial_state",
    "initial_cell",
    "targets",
    "reduction",
    "learning_rate",
    "tokens",
    "classes",
    "note",
)


@dataclass(frozen=True)
class Network:
    """A recurrent layer with one output layer, and one sequence to run through it.

    Shapes: D inputs, U units, O outputs, T steps. Weights are by block of the cell: z, r, g of a
    GRU.
    """

    cell_name: str
    """A key of `CELLS`."""
    update_gate: str | None
    """`keep`: h′ = z⊙h + (1−z)⊙g; `replace`: h′ = (1−z)⊙h + z⊙g; None: no update gate."""
    reset_after: bool
    """Whether a GRU's reset gate acts after the recurrent matmul, (3a), or before it, (3b)."""
    activation: str
    recurrent_activation: str
    """Of the gates."""
    kernel: Mapping[str, Array]
    """By block, (D, U)."""
    recurrent_kernel: Mapping[str, Array]
    """By block, (U, U)."""
    bias: Mapping[str, Array]
    """By block, (U,)."""
    recurrent_bias: Mapping[str, Array]
    """By block, (U,); zeros unless a reset gate acts after the matmul."""
    inputs: Array
    """(T, D)."""
    initial_state: Array
    """(U,)."""
    initial_cell: Array | None
    """(U,) of an LSTM, None for other cells."""
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
    note: str
    """For the reader of the trace."""

    @property
    def cell(self) -> Cell:
        """The equations of a step."""
        return CELLS[self.cell_name]

    @property
    def blocks(self) -> tuple[str, ...]:
        """Gates and candidate, in the order of `layer.get_weights()`."""
        return tuple(self.cell.blocks)

    @property
    def units(self) -> int:
        """Size U of the hidden state."""
        return int(self.initial_state.shape[0])

    def parameter_count(self) -> int:
        """Trainable numbers in the cell and its output layer."""
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
    cell_name = choice(fields, "cell", tuple(CELLS), "gru")
    cell = CELLS[cell_name]
    for name in ("update_gate", "reset_after", "recurrent_activation", "initial_cell"):
        if name not in cell.options and fields.get(name) is not None:
            raise NetworkError(
                f"{name}: expected nothing for the cell {cell_name!r}, got {fields[name]!r}"
            )
    has_update_gate = "update_gate" in cell.options
    update_gate = choice(fields, "update_gate", UPDATE_GATES) if has_update_gate else None
    reset_after = "reset_after" in cell.options and _reset_after(fields)
    inputs = array(required(fields, "inputs", "a list of input vectors"), "inputs", (None, None))
    if inputs.size == 0:
        raise NetworkError(
            f"inputs: expected at least one step and one feature, got {inputs.shape}"
        )
    steps, features = inputs.shape
    blocks = tuple(cell.blocks)
    what = f"an object with {', '.join(blocks)}, or kernel, recurrent_kernel"
    given = required(fields, "weights", what)
    weights = read_weights(given, blocks, features, reset_after)
    units = weights.recurrent_kernel[blocks[0]].shape[0]
    output_kernel, output_bias, loss = _output(fields.get("output"), units)
    outputs = 0 if output_kernel is None else output_kernel.shape[1]
    return Network(
        cell_name=cell_name,
        update_gate=update_gate,
        reset_after=reset_after,
        activation=choice(fields, "activation", ACTIVATIONS, "tanh"),
        recurrent_activation=choice(fields, "recurrent_activation", ACTIVATIONS, "sigmoid"),
        kernel=weights.kernel,
        recurrent_kernel=weights.recurrent_kernel,
        bias=weights.bias,
        recurrent_bias=weights.recurrent_bias,
        inputs=inputs,
        initial_state=_start(fields, "initial_state", units),
        initial_cell=(
            _start(fields, "initial_cell", units) if "initial_cell" in cell.options else None
        ),
        output_kernel=output_kernel,
        output_bias=output_bias,
        loss=loss,
        targets=_targets(fields.get("targets"), steps, outputs, loss),
        reduction=choice(fields, "reduction", REDUCTIONS, "mean"),
        learning_rate=_learning_rate(fields.get("learning_rate")),
        tokens=_labels(fields.get("tokens"), "tokens", steps),
        classes=_labels(fields.get("classes"), "classes", outputs),
        note=_note(fields.get("note", "")),
    )


def _reset_after(fields: Mapping[str, Any]) -> bool:
    value = required(fields, "reset_after", "true or false")
    if not isinstance(value, bool):
        raise NetworkError(f"reset_after: expected true or false, got {value!r}")
    return value


def _start(fields: Mapping[str, Any], name: str, units: int) -> Array:
    given = fields.get(name)
    return np.zeros(units) if given is None else array(given, name, (units,))


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


def _note(content: object) -> str:
    if not isinstance(content, str):
        raise NetworkError(f"note: expected a string, got {content!r}")
    return content


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
