"""A trace for people: tables in the terminal, gates as bars, gradients split by path."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from keras_gru.teaching.network import GATES, Network
from keras_gru.teaching.network_fields import Array
from keras_gru.teaching.trace import Trace, Values

_GATE_NAMES = {"z": "update gate", "r": "reset gate", "g": "candidate", "out": "output layer"}
_LABELS = 38  # columns of the terminal taken by equation and label


@dataclass(frozen=True)
class Layout:
    """What fits into a terminal of some width."""

    width: int = 120
    decimals: int = 4
    most: int = 8
    """Columns of numbers, and rows of a matrix, at most; the JSON holds all of them."""

    def shown(self, count: int) -> int:
        """Columns shown of `count`."""
        fitting = (self.width - _LABELS) // (self.decimals + 5)
        return count if count <= min(self.most, fitting) else max(1, min(self.most, fitting - 1))

    def bar(self, count: int) -> int:
        """Width of a bar beside each number; 0 where there is no room."""
        room = (self.width - _LABELS) // self.shown(count) - (self.decimals + 6)
        return 0 if room < 3 or self.shown(count) < count else min(10, room)


def render(found: Trace, layout: Layout) -> RenderableType:
    """The whole trace: conventions, steps, states, losses, gradients, updates."""
    network = found.network
    parts: list[RenderableType] = [_conventions(network), ""]
    for t, step in enumerate(found.steps):
        parts += [_rule(f"Forward, {_step_title(network, t)}"), _forward(network, step, layout), ""]
        if "y" in step:
            parts += [_prediction(network, step, layout), ""]
    parts += [_rule("States"), _states(found, layout), ""]
    if network.targets:
        parts += [_rule("Loss"), _losses(found, layout), ""]
        for t in reversed(range(len(found.steps))):
            step = found.steps[t]
            parts += [_rule(f"Backward, {_step_title(network, t)}")]
            parts += [_backward(network, step, layout), "", _input_gradient(step, layout), ""]
        title = "Weight gradients, summed over steps"
        if network.learning_rate is not None:
            title += f", and the update with learning rate {network.learning_rate:g}"
        parts += [_rule(title), *_weights(found, layout)]
    return Group(*parts)


def _rule(title: str) -> Rule:
    return Rule(title, align="left")


def _step_title(network: Network, t: int) -> str:
    token = f': "{network.tokens[t]}"' if network.tokens else ""
    return f"step {t}{token}"


def _conventions(network: Network) -> Text:
    keep = network.update_gate == "keep"
    update = "h′ = z⊙h + (1−z)⊙g (4a, keep)" if keep else "h′ = (1−z)⊙h + z⊙g (4b, replace)"
    place = "after the matmul (3a)" if network.reset_after else "before the matmul (3b)"
    steps, features = network.inputs.shape
    return Text(
        f"Steps {steps}, inputs {features}, units {network.units}, "
        f"parameters {network.parameter_count()}; reset gate {place}; {update}. "
        "Numbers in parentheses: equations of DERIVATION.md. "
        "Vectors are rows: W is (inputs, units), U (units, units)."
    )


def _forward(network: Network, step: Values, layout: Layout) -> Table:
    rows = _Rows(_units(network), layout)
    candidate = "3a" if network.reset_after else "3b"
    keep = network.update_gate == "keep"
    mixture = "4a" if keep else "4b"
    bars = network.recurrent_activation == "sigmoid"
    rows.add("", "previous state h", step["h"])
    rows.add("1", "a_z = xW_z + b_z + hU_z", step["a_z"])
    rows.add("1", "update gate z = σ(a_z)", step["z"], bars=bars)
    rows.add("2", "a_r = xW_r + b_r + hU_r", step["a_r"])
    rows.add("2", "reset gate r = σ(a_r)", step["r"], bars=bars)
    if network.reset_after:
        rows.add(candidate, "q = hU_g + b′_g", step["q"])
        rows.add(candidate, "a_g = xW_g + b_g + r⊙q", step["a_g"])
    else:
        rows.add(candidate, "r⊙h", step["rh"])
        rows.add(candidate, "a_g = xW_g + b_g + (r⊙h)U_g", step["a_g"])
    rows.add(candidate, "candidate g = φ(a_g)", step["g"])
    rows.add(mixture, "kept: z⊙h" if keep else "kept: (1−z)⊙h", step["kept"])
    rows.add(mixture, "added: (1−z)⊙g" if keep else "added: z⊙g", step["added"])
    rows.add(mixture, "new state h′", step["h_new"], strong=True)
    return rows.table


def _prediction(network: Network, step: Values, layout: Layout) -> Table:
    names = network.classes or tuple(f"output {i}" for i in range(len(step["y"])))
    rows = _Rows(names, layout)
    rows.add("16", "scores o = h′V + b_y", step["logits"])
    rows.add("16", "prediction y", step["y"], bars=network.loss != "squared_error")
    if "loss" in step:
        rows.add("", "target", step["target"])
        rows.add("17", "loss of this step", np.atleast_1d(step["loss"]), strong=True)
        rows.add("18", "δo", step["d_logits"])
    return rows.table


def _states(found: Trace, layout: Layout) -> Table:
    rows = _Rows(_units(found.network), layout, "after")
    rows.add("", "start", found.network.initial_state, signed=True)
    for t, step in enumerate(found.steps):
        rows.add("", _step_title(found.network, t), step["h_new"], signed=True)
    return rows.table


def _losses(found: Trace, layout: Layout) -> Table:
    rows = _Rows(["loss"], layout)
    losses = {t: float(step["loss"]) for t, step in enumerate(found.steps) if "loss" in step}
    largest = max(losses.values()) or 1.0
    for t, loss in losses.items():
        bar = "█" * round(24 * loss / largest)
        rows.table.add_row("", _step_title(found.network, t), f"{bar} {loss:.{layout.decimals}f}")
    for name in ("sum", "mean"):
        used = " (differentiated below)" if found.network.reduction == name else ""
        rows.add("17", f"{name}{used}", np.atleast_1d(found.totals[f"loss_{name}"]))
    return rows.table


def _backward(network: Network, step: Values, layout: Layout) -> Table:
    rows = _Rows(_units(network), layout)
    keep, after = network.update_gate == "keep", network.reset_after
    rows.add("20", "δh′ from this step's output", step["dh_output"])
    rows.add("13", "δh′ from the future", step["dh_future"])
    rows.add("6", "δh′ = sum of both", step["dh_new"], strong=True)
    rows.add("7", "δz = δh′⊙(h−g)" if keep else "δz = δh′⊙(g−h)", step["d_z"])
    rows.add("9", "δa_z = δz⊙σ′", step["d_a_z"])
    rows.add("8", "δg = δh′⊙(1−z)" if keep else "δg = δh′⊙z", step["d_g"])
    rows.add("10", "δa_g = δg⊙φ′", step["d_a_g"])
    if after:
        rows.add("11a", "δq = δa_g⊙r", step["d_q"])
        rows.add("11a", "δr = δa_g⊙q", step["d_r"])
    else:
        rows.add("11b", "δ(r⊙h) = δa_g U_gᵀ", step["d_rh"])
        rows.add("11b", "δr = δ(r⊙h)⊙h", step["d_r"])
    rows.add("12", "δa_r = δr⊙σ′", step["d_a_r"])
    rows.add("13", "δh, direct path", step["dh_direct"])
    rows.add("13", "δh, candidate path", step["dh_candidate"])
    rows.add("13", "δh, through the update gate", step["dh_update_gate"])
    rows.add("13", "δh, through the reset gate", step["dh_reset_gate"])
    rows.add("13", "δh = sum of the paths", step["dh"], strong=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(step["dh"] == 0, np.nan, 100 * step["dh_direct"] / step["dh"])
    rows.add("", "direct path in % of the sum", share, decimals=0)
    return rows.table


def _input_gradient(step: Values, layout: Layout) -> Table:
    rows = _Rows([f"input {i}" for i in range(len(step["dx"]))], layout)
    rows.add("14", "δx", step["dx"])
    return rows.table


def _weights(found: Trace, layout: Layout) -> Iterator[RenderableType]:
    updated = found.network.learning_rate is not None
    for gate in (*GATES, "out"):
        for letter in "WUbc":
            name = f"{letter}_{gate}"
            if f"d{name}" not in found.totals:
                continue
            symbol = {"W_out": "V", "b_out": "b_y"}.get(name, name.replace("c_", "b′_"))
            equation = "19" if gate == "out" else "15"
            blocks = {f"({equation}) δ{symbol}, {_GATE_NAMES[gate]}": f"d{name}"}
            if updated:
                blocks[f"(21) new {symbol}"] = f"new_{name}"
            table = Table(box=None, pad_edge=False)
            for heading in blocks:
                table.add_column(heading, min_width=min(44, layout.width // 2 - 2), no_wrap=True)
            matrices = (np.atleast_2d(found.totals[block]) for block in blocks.values())
            table.add_row(*(_matrix(matrix, layout) for matrix in matrices))
            yield table


def _matrix(values: Array, layout: Layout) -> str:
    digits = layout.decimals + 1
    shown = min(layout.most, max(1, (layout.width // 2 - 4) // (digits + 4)))
    rows = [
        " ".join(f"{_number(value, digits):>{digits + 3}}" for value in row[:shown])
        + (" …" if len(row) > shown else "")
        for row in values[: layout.most]
    ]
    return "\n".join([*rows, "…"] if len(values) > layout.most else rows)


def _units(network: Network) -> list[str]:
    return [f"unit {unit}" for unit in range(network.units)]


class _Rows:
    """A table of labelled vectors."""

    def __init__(self, columns: Sequence[str], layout: Layout, first: str = "") -> None:
        self._layout = layout
        self._shown = layout.shown(len(columns))
        self._bar = layout.bar(len(columns))
        self.table = Table(box=None, pad_edge=False)
        self.table.add_column("", style="dim", no_wrap=True, min_width=5)
        self.table.add_column(first, no_wrap=True, min_width=27)
        for column in columns[: self._shown]:
            self.table.add_column(column, justify="right", no_wrap=True)
        if len(columns) > self._shown:
            self.table.add_column(f"… {len(columns) - self._shown} more", no_wrap=True)

    def add(
        self,
        equation: str,
        label: str,
        values: Array,
        *,
        decimals: int | None = None,
        bars: bool = False,
        signed: bool = False,
        strong: bool = False,
    ) -> None:
        """Add one vector; `bars` and `signed` draw its elements where there is room."""
        places = self._layout.decimals if decimals is None else decimals
        cells = []
        for value in values[: self._shown]:
            number = _number(value, places)
            if self._bar and bars:
                number = f"{gate_bar(float(value), self._bar)} {number}"
            elif self._bar and signed:
                number = f"{signed_bar(float(value), self._bar // 2)} {number:>{places + 3}}"
            cells.append(Text(number, style="bold" if strong else ""))
        self.table.add_row(f"({equation})" if equation else "", label, *cells)


def _number(value: float, decimals: int) -> str:
    return f"{round(float(value), decimals) + 0.0:.{decimals}f}"  # + 0.0: no minus before 0


def gate_bar(value: float, width: int = 10) -> str:
    """A value in [0, 1] as a bar."""
    full = round(width * min(max(value, 0.0), 1.0))
    return "█" * full + "░" * (width - full)


def signed_bar(value: float, width: int = 5) -> str:
    """A value in [−1, 1] as a bar to the left or to the right of the middle."""
    full = round(width * min(abs(value), 1.0))
    left, right = ("", "█" * full) if value >= 0 else ("█" * full, "")
    return f"{left:>{width}}│{right:<{width}}"
