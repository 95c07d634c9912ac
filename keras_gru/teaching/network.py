"""A small recurrent network written as JSON: its fields, its checks, its reading.

By gate, as texts write it (each `W` is (units, inputs), each `U` is (units, units))::

    {"cell": "gru", "update_gate": "keep", "reset_after": false,
     "weights": {"z": {"W": [[...]], "U": [[...]], "b": [...]}, "r": {...}, "g": {...}},
     "output": {"W": [[...]], "b": [...], "loss": "cross_entropy"},
     "inputs": [[...], ...], "targets": [[...], ...],
     "reduction": "mean", "learning_rate": 0.01}

or as `layer.get_weights()` gives it: ``"weights": {"kernel": (D, 3U), "recurrent_kernel":
(U, 3U), "bias": (3U,) or (2, 3U)}``, gate order z, r, g. `keras_gru.teaching.cells.CELLS` has the
other cells and their blocks.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_gru.teaching.cells import ACTIVATIONS, CELLS, Array, Cell

UPDATE_GATES = ("keep", "replace")
LOSSES = ("cross_entropy", "binary_cross_entropy", "squared_error")
REDUCTIONS = ("sum", "mean")

_FIELDS = [
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
]
_WEIGHT_FIELDS = ("kernel", "recurrent_kernel", "bias", "recurrent_bias")


class NetworkError(ValueError):
    """A network file that cannot be run; the message names field, expectation and value."""


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
    """Activation of the gates."""
    kernel: Mapping[str, Array]
    """(D, U) by block."""
    recurrent_kernel: Mapping[str, Array]
    """(U, U) by block."""
    bias: Mapping[str, Array]
    """(U,) by block."""
    recurrent_bias: Mapping[str, Array]
    """(U,) by block; zeros unless a reset gate acts after the matmul."""
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
    """Reduction of the steps' losses to one: their `sum` or their `mean`."""
    learning_rate: float | None
    tokens: tuple[str, ...]
    classes: tuple[str, ...]
    note: str
    """A note for the reader of the trace."""

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

    @property
    def weights(self) -> dict[str, Array]:
        """Every trained array by name: W_z, U_z, b_z, …, W_out, b_out."""
        weights: dict[str, Array] = {}
        for block in self.blocks:
            weights[f"W_{block}"] = self.kernel[block]
            weights[f"U_{block}"] = self.recurrent_kernel[block]
            weights[f"b_{block}"] = self.bias[block]
            if self.reset_after:
                weights[f"c_{block}"] = self.recurrent_bias[block]
        if self.output_kernel is not None and self.output_bias is not None:
            weights |= {"W_out": self.output_kernel, "b_out": self.output_bias}
        return weights

    def parameter_count(self) -> int:
        """Count the trained numbers of the cell and its output layer."""
        return sum(weight.size for weight in self.weights.values())


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
        NetworkError: A field is wrong; the message names it, the expectation and the value.
    """
    fields = _Fields(content, "network", _FIELDS, prefix="")
    cell_name = fields.choice("cell", tuple(CELLS), "gru")
    cell = CELLS[cell_name]
    for name in ("update_gate", "reset_after", "recurrent_activation", "initial_cell"):
        if name not in cell.options and fields.get(name) is not None:
            raise NetworkError(
                f"{name}: expected nothing for the cell {cell_name!r}, got {fields.get(name)!r}"
            )
    has_update_gate = "update_gate" in cell.options
    update_gate = fields.choice("update_gate", UPDATE_GATES) if has_update_gate else None
    reset_after = "reset_after" in cell.options and fields.instance(
        "reset_after", bool, "true or false"
    )
    inputs = fields.array("inputs", (None, None), expected="a list of input vectors")
    if inputs.size == 0:
        raise NetworkError(
            f"inputs: expected at least one step and one feature, got {inputs.shape}"
        )
    steps, features = inputs.shape
    blocks = tuple(cell.blocks)
    weights = _weights(fields, blocks, features, reset_after)
    units = weights["recurrent_kernel"][blocks[0]].shape[0]
    output_kernel, output_bias, loss = _output(fields.get("output"), units)
    outputs = 0 if output_kernel is None else output_kernel.shape[1]
    activations = tuple(ACTIVATIONS)
    return Network(
        cell_name=cell_name,
        update_gate=update_gate,
        reset_after=reset_after,
        activation=fields.choice("activation", activations, "tanh"),
        recurrent_activation=fields.choice("recurrent_activation", activations, "sigmoid"),
        **weights,
        inputs=inputs,
        initial_state=_start(fields, "initial_state", units),
        initial_cell=(
            _start(fields, "initial_cell", units) if "initial_cell" in cell.options else None
        ),
        output_kernel=output_kernel,
        output_bias=output_bias,
        loss=loss,
        targets=_targets(fields.get("targets"), steps, outputs, loss),
        reduction=fields.choice("reduction", REDUCTIONS, "mean"),
        learning_rate=_learning_rate(fields),
        tokens=_labels(fields, "tokens", steps),
        classes=_labels(fields, "classes", outputs),
        note=fields.instance("note", str, "a string", ""),
    )


class _Fields:
    """The fields of one JSON object, each checked when it is read.

    Args:
        content: The object.
        name: Name of the object in error messages.
        known: Names of the fields that it may have.
        prefix: Text before a field's name in error messages; `name` and a dot by default.
    """

    def __init__(
        self, content: object, name: str, known: Sequence[str], prefix: str | None = None
    ) -> None:
        if not isinstance(content, dict):
            raise NetworkError(
                f"{name}: expected an object with {', '.join(known)}, got {content!r:.60}"
            )
        unknown = [key for key in content if key not in known]
        if unknown:
            raise NetworkError(f"{name}: expected only {', '.join(known)}, got {unknown[0]!r}")
        self._content: dict[str, Any] = content
        self._prefix = f"{name}." if prefix is None else prefix

    def get(self, name: str, default: Any = None) -> Any:
        return self._content.get(name, default)

    def required(self, name: str, expected: str) -> Any:
        """Return a field that must be there and not null."""
        if self.get(name) is None:
            raise NetworkError(f"{self._prefix}{name}: expected {expected}, got nothing")
        return self.get(name)

    def instance(self, name: str, kind: type, expected: str, default: Any = None) -> Any:
        """Return a field of a kind, which must be there unless it has a default."""
        value = self.required(name, expected) if default is None else self.get(name, default)
        if not isinstance(value, kind):
            raise NetworkError(f"{self._prefix}{name}: expected {expected}, got {value!r}")
        return value

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """Return a field that is one of a few names."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in choices:
            raise NetworkError(
                f"{self._prefix}{name}: expected one of {', '.join(choices)}, got {value!r}"
            )
        return value

    def array(
        self, name: str, shape: tuple[int | None, ...], default: Any = None, *, expected: str = ""
    ) -> Array:
        """Return a field of nested lists as an array; with `expected` it must be there."""
        value = self.required(name, expected) if expected else self.get(name, default)
        return _array(value, self._prefix + name, shape)


def _start(fields: _Fields, name: str, units: int) -> Array:
    return np.zeros(units) if fields.get(name) is None else fields.array(name, (units,))


def _weights(
    fields: _Fields, blocks: tuple[str, ...], features: int, second_bias: bool
) -> dict[str, dict[str, Array]]:
    """Read the weights, by block as texts write them or as `layer.get_weights()` stacks them.

    Returns:
        The fields of a network that hold weights, by name.
    """
    given = fields.required(
        "weights", f"an object with {', '.join(blocks)}, or kernel, recurrent_kernel"
    )
    if isinstance(given, dict) and "kernel" in given:
        return _stacked_weights(given, blocks, features, second_bias)
    parts_of = _Fields(given, "weights", blocks)
    known = ("W", "U", "b", "b_recurrent") if second_bias else ("W", "U", "b")
    found: dict[str, dict[str, Array]] = {name: {} for name in _WEIGHT_FIELDS}
    units: int | None = None
    for block in blocks:
        at = f"weights.{block}"
        parts = _Fields(parts_of.required(block, "an object with W, U, b"), at, known)
        U = parts.array("U", (units, units), expected="a (units, units) matrix")
        if U.shape[0] != U.shape[1]:
            raise NetworkError(f"{at}.U: expected a square (units, units) matrix, got {U.shape}")
        units = U.shape[0]
        W = parts.array("W", (units, features), expected="a (units, inputs) matrix")
        biases = [parts.array(name, (units,), [0.0] * units) for name in ("b", "b_recurrent")]
        for name, array in zip(_WEIGHT_FIELDS, (W.T, U.T, *biases), strict=True):
            found[name][block] = array
    return found


def _stacked_weights(
    content: object, blocks: tuple[str, ...], features: int, second_bias: bool
) -> dict[str, dict[str, Array]]:
    stacked = _Fields(content, "weights", ("kernel", "recurrent_kernel", "bias"))
    count = len(blocks)
    what = f"a (units, {'units' if count == 1 else f'{count} * units'}) matrix"
    U = stacked.array("recurrent_kernel", (None, None), expected=what)
    units = U.shape[0]
    if U.shape != (units, count * units) or units == 0:
        raise NetworkError(f"weights.recurrent_kernel: expected {what}, got {U.shape}")
    W = stacked.array("kernel", (features, count * units))
    shape = (2, count * units) if second_bias else (count * units,)
    rows = stacked.array("bias", shape, np.zeros(shape).tolist()).reshape(-1, count * units)
    recurrent_bias = rows[1] if second_bias else np.zeros(count * units)
    return {
        name: dict(zip(blocks, np.split(part, count, axis=-1), strict=True))
        for name, part in zip(_WEIGHT_FIELDS, (W, U, rows[0], recurrent_bias), strict=True)
    }


def _output(content: object, units: int) -> tuple[Array | None, Array | None, str]:
    """Read the kernel, the bias and the loss of the output layer."""
    if content is None:
        return None, None, LOSSES[0]
    parts = _Fields(content, "output", ("W", "b", "loss"))
    W = parts.array("W", (None, units), expected="an (outputs, units) matrix")
    if W.shape[0] == 0:
        raise NetworkError(f"output.W: expected at least one row, got {W.shape}")
    b = parts.array("b", (W.shape[0],), [0.0] * W.shape[0])
    return W.T, b, parts.choice("loss", LOSSES)


def _targets(content: object, steps: int, outputs: int, loss: str) -> tuple[Array | None, ...]:
    if content is None:
        return ()
    if outputs == 0:
        raise NetworkError('targets: expected an "output" beside them, got none')
    if not isinstance(content, Sequence) or isinstance(content, str) or len(content) != steps:
        raise NetworkError(f"targets: expected a list of {steps} targets or nulls, got {content!r}")
    targets = tuple(
        None if target is None else _array(target, f"targets[{t}]", (outputs,))
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


def _learning_rate(fields: _Fields) -> float | None:
    if fields.get("learning_rate") is None:
        return None
    rate = float(fields.array("learning_rate", ()))
    if rate <= 0:
        raise NetworkError(f"learning_rate: expected a positive number, got {rate}")
    return rate


def _labels(fields: _Fields, name: str, count: int) -> tuple[str, ...]:
    labels = fields.get(name)
    if labels is None:
        return ()
    if (
        not isinstance(labels, list)
        or len(labels) != count
        or not all(isinstance(label, str) for label in labels)
    ):
        raise NetworkError(f"{name}: expected a list of {count} strings, got {labels!r}")
    return tuple(labels)


def _array(content: object, name: str, shape: tuple[int | None, ...]) -> Array:
    """Convert nested lists of finite numbers; None in `shape` stands for any size."""
    _check_numbers(content, name, len(shape))
    try:
        values = np.asarray(content, dtype=np.float64)
    except ValueError as error:
        raise NetworkError(
            f"{name}: expected rows of equal length, got rows that differ"
        ) from error
    fits = len(shape) == values.ndim and all(
        size in (None, got) for size, got in zip(shape, values.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise NetworkError(f"{name}: expected shape ({wanted}), got {values.shape}")
    return values


def _check_numbers(content: object, name: str, depth: int) -> None:
    if isinstance(content, list):
        for index, item in enumerate(content):
            _check_numbers(item, f"{name}[{index}]", depth - 1)
    elif depth > 0:
        raise NetworkError(f"{name}: expected a list, got {content!r}")
    elif isinstance(content, bool) or not isinstance(content, (int, float)):
        raise NetworkError(f"{name}: expected a number, got {content!r}")
    elif not abs(content) <= sys.float_info.max:
        raise NetworkError(f"{name}: expected a finite number, got {content}")
