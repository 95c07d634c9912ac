"""A trace for people: tables in the terminal, gates as bars, gradients split by path."""

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from keras_gru.network import GATES, Array, Network
from keras_gru.trace import Trace, Values

SHOWN = 8
"""Units, and rows of a matrix, that a table shows; the JSON holds all of them."""

_GATE_NAMES = {"z": "update gate", "r": "reset gate", "g": "candidate", "out": "output layer"}


def render(found: Trace, decimals: int = 4) -> RenderableType:
    """The whole trace: conventions, steps, states, losses, gradients, updates.

    Args:
        found: what `keras_gru.trace.trace` returned.
        decimals: digits behind the point.
    """
    network = found.network
    parts: list[RenderableType] = [_conventions(network)]
    for t, step in enumerate(found.steps):
        parts += [Rule(f"Forward, {_step_title(network, t)}", align="left")]
        parts += [_forward(network, step, decimals)]
        if "y" in step:
            parts += ["", _prediction(network, step, decimals)]
        parts += [""]
    parts += [Rule("States", align="left"), _states(found, decimals), ""]
    if network.targets:
        parts += [Rule("Loss", align="left"), _losses(found, decimals), ""]
        for t in reversed(range(len(found.steps))):
            parts += [Rule(f"Backward, {_step_title(network, t)}", align="left")]
            parts += [_backward(network, found.steps[t], decimals), ""]
            parts += [_input_gradient(found.steps[t]["dx"], decimals), ""]
        title = "Weight gradients, summed over steps"
        if network.learning_rate is not None:
            title += f", and the update with learning rate {network.learning_rate:g}"
        parts += [Rule(title, align="left"), *_weights(found, decimals)]
    return Group(*parts)


def _step_title(network: Network, t: int) -> str:
    token = f': "{network.tokens[t]}"' if network.tokens else ""
    return f"step {t}{token}"


def _conventions(network: Network) -> Text:
    keep = network.update_gate == "keep"
    update = "h′ = z⊙h + (1−z)⊙g  (4a, keep)" if keep else "h′ = (1−z)⊙h + z⊙g  (4b, replace)"
    place = "after the matmul (3a)" if network.reset_after else "before the matmul (3b)"
    T, D = network.inputs.shape
    return Text(
        f"{T} steps, {D} inputs, {network.units} units, {network.parameter_count()} parameters; "
        f"reset gate {place}; {update}.\nNumbers in parentheses: equations of DERIVATION.md. "
        "Vectors are rows: W is (inputs, units), U (units, units)."
    )


def _forward(network: Network, step: Values, decimals: int) -> Table:
    table = _unit_table(network.units)
    keep = network.update_gate == "keep"
    rows: list[tuple[str, str, str]] = [
        ("", "previous state h", "h"),
        ("1", "a_z = xW_z + b_z + hU_z", "a_z"),
        ("1", "update gate z = σ(a_z)", "z"),
        ("2", "a_r = xW_r + b_r + hU_r", "a_r"),
        ("2", "reset gate r = σ(a_r)", "r"),
    ]
    if network.reset_after:
        rows += [("3a", "q = hU_g + b′_g", "q"), ("3a", "a_g = xW_g + b_g + r⊙q", "a_g")]
    else:
        rows += [("3b", "r⊙h", "rh"), ("3b", "a_g = xW_g + b_g + (r⊙h)U_g", "a_g")]
    rows += [
        ("3a" if network.reset_after else "3b", "candidate g = φ(a_g)", "g"),
        ("4a" if keep else "4b", "kept: z⊙h" if keep else "kept: (1−z)⊙h", "kept"),
        ("4a" if keep else "4b", "added: (1−z)⊙g" if keep else "added: z⊙g", "added"),
        ("4a" if keep else "4b", "new state h′", "h_new"),
    ]
    for equation, label, name in rows:
        bars = name in ("z", "r") and network.recurrent_activation == "sigmoid"
        _add(table, equation, label, step[name], decimals, bars=bars, strong=name == "h_new")
    return table


def _prediction(network: Network, step: Values, decimals: int) -> Table:
    names = network.classes or tuple(f"output {i}" for i in range(len(step["y"])))
    table = _table(names)
    _add(table, "16", "scores o = h′V + b_y", step["logits"], decimals)
    _add(table, "16", "prediction y", step["y"], decimals, bars=network.loss != "squared_error")
    if "loss" in step:
        _add(table, "", "target", step["target"], decimals)
        _add(table, "17", "loss of this step", np.atleast_1d(step["loss"]), decimals, strong=True)
        _add(table, "18", "δo = y − target", step["d_logits"], decimals)
    return table


def _states(found: Trace, decimals: int) -> Table:
    table = _unit_table(found.network.units, "after")
    _add(table, "", "start", found.network.initial_state, decimals, signed=True)
    for t, step in enumerate(found.steps):
        label = _step_title(found.network, t)
        _add(table, "", label, step["h_new"], decimals, signed=True)
    return table


def _losses(found: Trace, decimals: int) -> Table:
    table = Table("step", "loss", "", box=None)
    losses = {t: float(step["loss"]) for t, step in enumerate(found.steps) if "loss" in step}
    largest = max(losses.values()) or 1.0
    for t, loss in losses.items():
        bar = "█" * round(24 * loss / largest)
        table.add_row(_step_title(found.network, t), f"{loss:.{decimals}f}", bar)
    for name, label in (("loss_sum", "sum"), ("loss_mean", "mean")):
        used = "  ← differentiated below" if found.network.reduction == label else ""
        table.add_row(label, f"{found.totals[name]:.{decimals}f}", used)
    return table


def _backward(network: Network, step: Values, decimals: int) -> Table:
    table = _unit_table(network.units)
    keep, after = network.update_gate == "keep", network.reset_after
    through = "(11a)" if after else "(11b)"
    rows = [
        ("20", "δh′ from this step's output", "dh_output"),
        ("13", "δh′ from the future", "dh_future"),
        ("6", "δh′ = sum of both", "dh_new"),
        ("7", "δz = δh′⊙(h−g)" if keep else "δz = δh′⊙(g−h)", "d_z"),
        ("9", "δa_z = δz⊙σ′", "d_a_z"),
        ("8", "δg = δh′⊙(1−z)" if keep else "δg = δh′⊙z", "d_g"),
        ("10", "δa_g = δg⊙φ′", "d_a_g"),
        (
            through[1:-1],
            "δq = δa_g⊙r" if after else "δ(r⊙h) = δa_g U_gᵀ",
            "d_q" if after else "d_rh",
        ),
        (through[1:-1], "δr = δa_g⊙q" if after else "δr = δ(r⊙h)⊙h", "d_r"),
        ("12", "δa_r = δr⊙σ′", "d_a_r"),
        ("13", "δh, direct path", "dh_direct"),
        ("13", "δh, candidate path", "dh_candidate"),
        ("13", "δh, through the update gate", "dh_update_gate"),
        ("13", "δh, through the reset gate", "dh_reset_gate"),
        ("13", "δh = sum of the paths", "dh"),
    ]
    for equation, label, name in rows:
        _add(table, equation, label, step[name], decimals, strong=name in ("dh_new", "dh"))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(step["dh"] == 0, np.nan, 100 * step["dh_direct"] / step["dh"])
    _add(table, "", "direct path in % of the sum", share, 0)
    return table


def _input_gradient(dx: Array, decimals: int) -> Table:
    table = _table([f"input {i}" for i in range(len(dx))])
    _add(table, "14", "δx", dx, decimals)
    return table


def _weights(found: Trace, decimals: int) -> Iterator[RenderableType]:
    updated = found.network.learning_rate is not None
    for gate in (*GATES, "out"):
        for letter in "WUbc":
            name = f"{letter}_{gate}"
            if f"d{name}" not in found.totals:
                continue
            symbol = f"{letter.replace('c', 'b′')}_{gate.replace('out', 'y')}"
            equation = "19" if gate == "out" else "15"
            blocks = {f"({equation}) δ{symbol}, {_GATE_NAMES[gate]}": f"d{name}"}
            if updated:
                blocks[f"(21) new {symbol}"] = f"new_{name}"
            table = Table(box=None, pad_edge=False)
            for heading in blocks:
                table.add_column(heading, min_width=44)
            matrices = (np.atleast_2d(found.totals[block]) for block in blocks.values())
            table.add_row(*(_matrix(matrix, decimals + 1) for matrix in matrices))
            yield table


def _matrix(values: Array, decimals: int) -> str:
    rows = [
        " ".join(
            f"{round(float(value), decimals) + 0.0:>{decimals + 4}.{decimals}f}"
            for value in row[:SHOWN]
        )
        + (" …" if len(row) > SHOWN else "")
        for row in values[:SHOWN]
    ]
    return "\n".join([*rows, "…"] if len(values) > SHOWN else rows)


def _unit_table(units: int, first: str = "") -> Table:
    return _table([f"unit {unit}" for unit in range(units)], first)


def _table(columns: Sequence[str], first: str = "") -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("", style="dim", no_wrap=True, min_width=5)
    table.add_column(first, no_wrap=True, min_width=27)
    for column in columns[:SHOWN]:
        table.add_column(column, justify="right", no_wrap=True)
    if len(columns) > SHOWN:
        table.add_column(f"… {len(columns) - SHOWN} more")
    return table


def _add(
    table: Table,
    equation: str,
    label: str,
    values: Array,
    decimals: int,
    *,
    bars: bool = False,
    signed: bool = False,
    strong: bool = False,
) -> None:
    cells = []
    for value in values[:SHOWN]:
        number = f"{round(float(value), decimals) + 0.0:.{decimals}f}"  # + 0.0: no minus before 0
        if bars:
            number = f"{gate_bar(float(value))} {number}"
        elif signed:
            number = f"{signed_bar(float(value))} {number:>{decimals + 3}}"
        cells.append(Text(number, style="bold" if strong else ""))
    table.add_row(f"({equation})" if equation else "", label, *cells)


def gate_bar(value: float, width: int = 10) -> str:
    """A value in [0, 1] as a bar."""
    full = round(width * min(max(value, 0.0), 1.0))
    return "█" * full + "░" * (width - full)


def signed_bar(value: float, width: int = 5) -> str:
    """A value in [−1, 1] as a bar to the left or to the right of the middle."""
    full = round(width * min(abs(value), 1.0))
    left, right = ("", "█" * full) if value >= 0 else ("█" * full, "")
    return f"{left:>{width}}│{right:<{width}}"
