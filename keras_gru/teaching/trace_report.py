"""A trace for people: tables in the terminal, gates as bars, gradients split by path."""

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from keras_gru.teaching.cells.cell import Line
from keras_gru.teaching.cells.notebook import Values
from keras_gru.teaching.network import Network
from keras_gru.teaching.paths import last_paths
from keras_gru.teaching.trace import Trace
from keras_gru.teaching.value_table import Layout, ValueTable, matrix

_MOST_PATHS = 4


def render(found: Trace, layout: Layout) -> RenderableType:
    """The whole trace: conventions, steps, states, losses, gradients, updates."""
    network = found.network
    parts: list[RenderableType] = [_conventions(network), ""]
    if network.note:
        parts += [Text(network.note), ""]
    for t, step in enumerate(found.steps):
        lines = network.cell.forward_lines(network)
        parts += [_rule(f"Forward, {_step_title(network, t)}")]
        parts += [_lines(network, lines, step, layout).table, ""]
        if "y" in step:
            parts += [_prediction(network, step, layout), ""]
    parts += [_rule("States"), _states(found, layout), ""]
    if network.targets:
        parts += [_rule("Loss"), _losses(found, layout), ""]
        for t in reversed(range(len(found.steps))):
            step = found.steps[t]
            parts += [_rule(f"Backward, {_step_title(network, t)}")]
            parts += [_backward(network, step, layout), "", _input_gradient(step, layout), ""]
        parts += [_rule("Gradients of the states"), _deltas(found, layout), ""]
        parts += [_rule("Paths from the recurrent weights to one state")]
        parts += [*_paths(found, layout), ""]
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
    steps, features = network.inputs.shape
    return Text(
        f"{network.cell.title}. Steps {steps}, inputs {features}, units {network.units}, "
        f"parameters {network.parameter_count()}; {network.cell.convention(network)}. "
        "Numbers in parentheses: equations of DERIVATION.md. "
        "Vectors are rows: W is (inputs, units), U (units, units)."
    )


def _lines(network: Network, lines: Sequence[Line], step: Values, layout: Layout) -> ValueTable:
    rows = ValueTable(_units(network), layout)
    for line in lines:
        bars = line.kind == "gate" and network.recurrent_activation == "sigmoid"
        strong = line.kind == "result"
        rows.add(line.equation, line.label, step[line.name], bars=bars, strong=strong)
    return rows


def _prediction(network: Network, step: Values, layout: Layout) -> Table:
    names = network.classes or tuple(f"output {i}" for i in range(len(step["y"])))
    rows = ValueTable(names, layout)
    rows.add("16", "scores o = h′V + b_y", step["logits"])
    rows.add("16", "prediction y", step["y"], bars=network.loss != "squared_error")
    if "loss" in step:
        rows.add("", "target", step["target"])
        rows.add("17", "loss of this step", np.atleast_1d(step["loss"]), strong=True)
        rows.add("18", "δo", step["d_logits"])
    return rows.table


def _states(found: Trace, layout: Layout) -> Table:
    rows = ValueTable(_units(found.network), layout, "after")
    rows.add("", "start", found.network.initial_state, signed=True)
    for t, step in enumerate(found.steps):
        rows.add("", _step_title(found.network, t), step["h_new"], signed=True)
        if "c_new" in step:
            rows.add("", "  its cell", step["c_new"], signed=True)
    return rows.table


def _losses(found: Trace, layout: Layout) -> Table:
    rows = ValueTable(["loss"], layout)
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
    rows = _lines(network, network.cell.backward_lines(network), step, layout)
    if "dh_direct" in step:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(step["dh"] == 0, np.nan, 100 * step["dh_direct"] / step["dh"])
        rows.add("", "direct path in % of the sum", share, decimals=0)
    return rows.table


def _deltas(found: Trace, layout: Layout) -> Table:
    """The gradient of every state: from the loss of its own step, and from all later ones."""
    rows = ValueTable(_units(found.network), layout, "δ of the state after")
    for t in reversed(range(len(found.steps))):
        step = found.steps[t]
        rows.add("", _step_title(found.network, t), step["dh_new"], strong=True)
        rows.add("20", "  own loss", step["dh_output"])
        rows.add("6", "  later losses", step["dh_future"])
        if "dc_new" in step:
            rows.add("30", "  δ of its cell", step["dc_new"])
    return rows.table


def _paths(found: Trace, layout: Layout) -> Iterator[RenderableType]:
    """The derivative of one state by the recurrent weights, by the steps at which they act."""
    network, split = found.network, last_paths(found)
    if split is None:
        yield Text("(left out: too many numbers for a network of this size)")
        return
    weights = [f"U_{block}" for block in network.blocks]
    t = split.step
    yield Text(
        f"h_t is the state after step {t}. A weight acts at step k; its effect reaches h_t over "
        "the states between. Norms of ∂h_t/∂h_k, and of each path's part of ∂h_t/∂U, all blocks "
        "of U together:"
    )
    norms = ValueTable(["∂h_t/∂h_k", "∂h_t/∂U"], layout, "path")
    for path in split.paths:
        between = t - path.step
        way = "direct" if between == 0 else f"over {between} step{'s' if between > 1 else ''}"
        part = np.linalg.norm([np.linalg.norm(path.derivatives[weight]) for weight in weights])
        jacobian = np.linalg.norm(path.jacobian, 2)
        norms.add("24", f"k = {path.step}: {way}", np.array([jacobian, part]))
    total = np.linalg.norm([np.linalg.norm(split.total(weight)) for weight in weights])
    norms.add("24", "sum of the paths", np.array([np.nan, total]), strong=True)
    yield norms.table
    if split.delta is None:
        return
    for weight in weights:
        symbol = network.cell.symbol(weight)
        yield Text(f"\n(24) δ{symbol} from the loss of step {t}, path by path", style="dim")
        shares = split.shares(weight)
        parts = [(f"k = {p.step}", share) for p, share in zip(split.paths, shares, strict=True)]
        shown = [*parts[:_MOST_PATHS], ("sum", np.sum(shares, axis=0))]
        if len(parts) > _MOST_PATHS:
            yield Text(f"(the {_MOST_PATHS} shortest of {len(parts)} paths, and the sum of all)")
        beside = max(
            1, layout.width // ((layout.decimals + 5) * min(network.units, layout.most) + 3)
        )
        for start in range(0, len(shown), beside):
            row = shown[start : start + beside]
            table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
            for heading, _ in row:
                table.add_column(heading, no_wrap=True)
            table.add_row(*(matrix(part, layout, layout.width // len(row) - 1) for _, part in row))
            yield table


def _input_gradient(step: Values, layout: Layout) -> Table:
    rows = ValueTable([f"input {i}" for i in range(len(step["dx"]))], layout)
    rows.add("14", "δx", step["dx"])
    return rows.table


def _weights(found: Trace, layout: Layout) -> Iterator[RenderableType]:
    network = found.network
    updated = network.learning_rate is not None
    names = {**network.cell.blocks, "out": "output layer"}
    for block, name in names.items():
        for letter in "WUbc":
            weight = f"{letter}_{block}"
            if f"d{weight}" not in found.totals:
                continue
            symbol = network.cell.symbol(weight)
            equation = "19" if block == "out" else network.cell.weight_equation
            blocks = {f"({equation}) δ{symbol}, {name}": f"d{weight}"}
            if updated:
                blocks[f"(21) new {symbol}"] = f"new_{weight}"
            table = Table(box=None, pad_edge=False)
            for heading in blocks:
                table.add_column(heading, min_width=min(44, layout.width // 2 - 2), no_wrap=True)
            matrices = (np.atleast_2d(found.totals[value]) for value in blocks.values())
            table.add_row(*(matrix(part, layout, layout.width // 2 - 2) for part in matrices))
            yield table


def _units(network: Network) -> list[str]:
    return [f"unit {unit}" for unit in range(network.units)]
