"""The presentation of a trace: tables in the terminal, and a page for the browser.

The tables have gates as bars and gradients split by path. The page computes everything anew when a
number is changed.
"""

import dataclasses
import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from keras_gru.teaching.cells import Array, Line, Values
from keras_gru.teaching.network import Network, NetworkError
from keras_gru.teaching.page_file import write_page
from keras_gru.teaching.trace import Trace, last_paths
from keras_gru.teaching.worked_example import Verdict, WorkedExample, target

_MAX_PATHS = 4
"""Paths whose gradients are shown in full."""
_LABEL_WIDTH = 38
"""Columns of the terminal taken by equation and label."""


def render(found: Trace, layout: "Layout") -> RenderableType:
    """Lay out the whole trace: conventions, steps, states, losses, gradients, updates."""
    network = found.network
    parts: list[RenderableType] = [_conventions(network), ""]
    if network.note:
        parts += [Text(network.note), ""]
    for t, step in enumerate(found.steps):
        parts += [_rule(f"Forward, {step_title(network, t)}")]
        parts += [_lines(network, found.forward_lines, step, layout).table, ""]
        if "y" in step:
            parts += [_prediction(network, step, layout), ""]
    parts += [_rule("States"), _states(found, layout), ""]
    if network.targets:
        parts += [_rule("Loss"), _losses(found, layout), ""]
        for t in reversed(range(len(found.steps))):
            step = found.steps[t]
            parts += [_rule(f"Backward, {step_title(network, t)}")]
            parts += [_backward(found, step, layout), "", _input_gradient(step, layout), ""]
        parts += [_rule("Gradients of the states"), _deltas(found, layout), ""]
        parts += [_rule("Paths from the recurrent weights to one state")]
        parts += [*_paths(found, layout), ""]
        title = "Weight gradients, summed over steps"
        if network.learning_rate is not None:
            title += f", and the update with learning rate {network.learning_rate:g}"
        parts += [_rule(title), *_weights(found, layout)]
    return Group(*parts)


def step_title(network: Network, t: int) -> str:
    """Name a step by its number and, if the network has tokens, its token."""
    return f'step {t}: "{network.tokens[t]}"' if network.tokens else f"step {t}"


def number(value: float, decimals: int) -> str:
    """Write a number with fixed decimals and no minus before a zero; empty for NaN."""
    if math.isnan(value):
        return ""
    return f"{round(float(value), decimals) + 0.0:.{decimals}f}"


@dataclass(frozen=True)
class Layout:
    """The space that a terminal has for numbers."""

    width: int = 120
    decimals: int = 4
    most: int = 8
    """Greatest number of columns of numbers, and of rows of a matrix; the JSON holds all."""

    def shown(self, count: int) -> int:
        """Count the columns shown of `count`."""
        fitting = (self.width - _LABEL_WIDTH) // (self.decimals + 5)
        return count if count <= min(self.most, fitting) else max(1, min(self.most, fitting - 1))

    def bar(self, count: int) -> int:
        """Compute the width of a bar beside each of `count` numbers; 0 if there is no room."""
        room = (self.width - _LABEL_WIDTH) // self.shown(count) - (self.decimals + 6)
        return 0 if room < 3 or self.shown(count) < count else min(10, room)


class _ValueTable:
    """A table of labelled vectors.

    Args:
        columns: Names of the elements.
        layout: Layout for the terminal.
        first: Heading of the labels.
    """

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
            text = number(value, places)
            if self._bar and bars:
                text = f"{gate_bar(float(value), self._bar)} {text}"
            elif self._bar and signed:
                text = f"{signed_bar(float(value), self._bar // 2)} {text:>{places + 3}}"
            cells.append(Text(text, style="bold" if strong else ""))
        self.table.add_row(f"({equation})" if equation else "", label, *cells)


def gate_bar(value: float, width: int = 10) -> str:
    """Draw a value in [0, 1] as a bar."""
    full = round(width * min(max(value, 0.0), 1.0))
    return "█" * full + "░" * (width - full)


def signed_bar(value: float, width: int = 5) -> str:
    """Draw a value in [−1, 1] as a bar to the left or to the right of the middle."""
    full = round(width * min(abs(value), 1.0))
    left, right = ("", "█" * full) if value >= 0 else ("█" * full, "")
    return f"{left:>{width}}│{right:<{width}}"


def _matrix(values: Array, layout: Layout, width: int) -> str:
    """Write rows of numbers, cut to a width."""
    digits = layout.decimals + 1
    shown = min(layout.most, max(1, (width - 2) // (digits + 4)))
    rows = [
        " ".join(f"{number(value, digits):>{digits + 3}}" for value in row[:shown])
        + (" …" if len(row) > shown else "")
        for row in values[: layout.most]
    ]
    return "\n".join([*rows, "…"] if len(values) > layout.most else rows)


def _rule(title: str) -> Rule:
    return Rule(title, align="left")


def _unit_table(network: Network, layout: Layout, first: str = "") -> _ValueTable:
    return _ValueTable([f"unit {unit}" for unit in range(network.units)], layout, first)


def _conventions(network: Network) -> Text:
    steps, features = network.inputs.shape
    return Text(
        f"{network.cell.title}. Steps {steps}, inputs {features}, units {network.units}, "
        f"parameters {network.parameter_count()}; {network.cell.convention(network)}. "
        "Numbers in parentheses: equations of DERIVATION.md. "
        "Vectors are rows: W is (inputs, units), U (units, units)."
    )


def _lines(network: Network, lines: Sequence[Line], step: Values, layout: Layout) -> _ValueTable:
    rows = _unit_table(network, layout)
    for line in lines:
        bars = line.kind == "gate" and network.recurrent_activation == "sigmoid"
        strong = line.kind == "result"
        rows.add(line.equation, line.label, step[line.name], bars=bars, strong=strong)
    return rows


def _prediction(network: Network, step: Values, layout: Layout) -> Table:
    names = network.classes or tuple(f"output {i}" for i in range(len(step["y"])))
    rows = _ValueTable(names, layout)
    rows.add("16", "scores o = h′V + b_y", step["logits"])
    rows.add("16", "prediction y", step["y"], bars=network.loss != "squared_error")
    if "loss" in step:
        rows.add("", "target", step["target"])
        rows.add("17", "loss of this step", np.atleast_1d(step["loss"]), strong=True)
        rows.add("18", "δo", step["d_logits"])
    return rows.table


def _states(found: Trace, layout: Layout) -> Table:
    rows = _unit_table(found.network, layout, "after")
    rows.add("", "start", found.network.initial_state, signed=True)
    for t, step in enumerate(found.steps):
        rows.add("", step_title(found.network, t), step["h_new"], signed=True)
        if "c_new" in step:
            rows.add("", "  its cell", step["c_new"], signed=True)
    return rows.table


def _losses(found: Trace, layout: Layout) -> Table:
    rows = _ValueTable(["loss"], layout)
    losses = {t: float(step["loss"]) for t, step in enumerate(found.steps) if "loss" in step}
    largest = max(losses.values()) or 1.0
    for t, loss in losses.items():
        bar = "█" * round(24 * loss / largest)
        rows.table.add_row("", step_title(found.network, t), f"{bar} {loss:.{layout.decimals}f}")
    for name in ("sum", "mean"):
        used = " (differentiated below)" if found.network.reduction == name else ""
        rows.add("17", f"{name}{used}", np.atleast_1d(found.totals[f"loss_{name}"]))
    return rows.table


def _backward(found: Trace, step: Values, layout: Layout) -> Table:
    rows = _lines(found.network, found.backward_lines, step, layout)
    if "dh_direct" in step:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(step["dh"] == 0, np.nan, 100 * step["dh_direct"] / step["dh"])
        rows.add("", "direct path in % of the sum", share, decimals=0)
    return rows.table


def _input_gradient(step: Values, layout: Layout) -> Table:
    rows = _ValueTable([f"input {i}" for i in range(len(step["dx"]))], layout)
    rows.add("14", "δx", step["dx"])
    return rows.table


def _deltas(found: Trace, layout: Layout) -> Table:
    """Tabulate the gradient of every state: from its own step's loss and from all later ones."""
    rows = _unit_table(found.network, layout, "δ of the state after")
    for t in reversed(range(len(found.steps))):
        step = found.steps[t]
        rows.add("", step_title(found.network, t), step["dh_new"], strong=True)
        rows.add("20", "  own loss", step["dh_output"])
        rows.add("6", "  later losses", step["dh_future"])
        if "dc_new" in step:
            rows.add("30", "  δ of its cell", step["dc_new"])
    return rows.table


def _paths(found: Trace, layout: Layout) -> Iterator[RenderableType]:
    """Split the derivative of one state by the recurrent weights by the step where they act."""
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
    norms = _ValueTable(["∂h_t/∂h_k", "∂h_t/∂U"], layout, "path")
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
        shown = [*parts[:_MAX_PATHS], ("sum", np.sum(shares, axis=0))]
        if len(parts) > _MAX_PATHS:
            yield Text(f"(the {_MAX_PATHS} shortest of {len(parts)} paths, and the sum of all)")
        beside = max(
            1, layout.width // ((layout.decimals + 5) * min(network.units, layout.most) + 3)
        )
        for start in range(0, len(shown), beside):
            row = shown[start : start + beside]
            table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
            for heading, _ in row:
                table.add_column(heading, no_wrap=True)
            table.add_row(*(_matrix(part, layout, layout.width // len(row) - 1) for _, part in row))
            yield table


def _weights(found: Trace, layout: Layout) -> Iterator[RenderableType]:
    network = found.network
    names = {**network.cell.blocks, "out": "output layer"}
    for weight in network.weights:
        if f"d{weight}" not in found.totals:
            continue
        block = weight.split("_")[1]
        symbol = network.cell.symbol(weight)
        equation = "19" if block == "out" else network.cell.weight_equation
        matrices = {f"({equation}) δ{symbol}, {names[block]}": f"d{weight}"}
        if network.learning_rate is not None:
            matrices[f"(21) new {symbol}"] = f"new_{weight}"
        width = layout.width // 2 - 2
        table = Table(box=None, pad_edge=False)
        for heading in matrices:
            table.add_column(heading, min_width=min(44, width), no_wrap=True)
        parts = (np.atleast_2d(found.totals[name]) for name in matrices.values())
        table.add_row(*(_matrix(part, layout, width) for part in parts))
        yield table


# The page for the browser ------------------------------------------------------------------------

TEMPLATE = Path(__file__).with_name("trace.html")


def write_trace_page(
    network: Network, path: Path, example: WorkedExample | None = None, variant: str | None = None
) -> None:
    """Write a self-contained page, which needs no other file, server or network.

    Args:
        network: The network to trace.
        path: Path of the page; an existing one is replaced.
        example: The worked example of the network; its printed numbers and errata are shown
            beside the computed ones.
        variant: Name of the example's variant.

    Raises:
        NetworkError: The network is not a GRU.
        OSError: The file cannot be written.
    """
    if network.cell_name != "gru":
        raise NetworkError(f"--html: expected the cell 'gru', got {network.cell_name!r}")
    page = TEMPLATE.read_text("utf-8")
    content = _content(network, example, variant)
    data = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Strings are escaped so that none can end the element that contains the data.
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    for mark, text in (
        ("__DATA__", data),
        ("__BODY__", "<noscript>This page needs JavaScript.</noscript>"),
        ("__TITLE__", html.escape(content["title"])),
    ):
        before, _, after = page.partition(mark)
        page = before + text + after
    write_page(path, page)


def network_content(network: Network) -> dict[str, Any]:
    """Convert a GRU's fields to plain values: arrays for row vectors, by gate."""
    names = [field.name for field in dataclasses.fields(network)]
    left_out = ("cell_name", "initial_cell", "note")
    return {name: _plain(getattr(network, name)) for name in names if name not in left_out}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _content(
    network: Network, example: WorkedExample | None, variant: str | None
) -> dict[str, Any]:
    title, section = "A small GRU, number by number", ""
    errata: list[dict[str, str]] = []
    verdicts: list[Verdict] = []
    if example is not None:
        title = str(example.content.get("title", example.name))
        section = str(example.content.get("section", ""))
        if variant:
            title = f"{title}, {variant}"
        errata = [
            {key: str(erratum.get(key, "")) for key in ("id", "kind", "cause")}
            for erratum in example.errata
        ]
        verdicts = example.verdicts
    causes = {erratum["id"]: erratum["cause"] for erratum in errata}
    claims = [_claim(v, causes) for v in verdicts if v.claim.get("variant") == variant]
    return {
        "title": title,
        "section": section,
        "network": network_content(network),
        "claims": [claim for claim in claims if claim is not None],
        "verdicts": [_listed(verdict) for verdict in verdicts],
        "errata": errata,
    }


def _listed(verdict: Verdict) -> dict[str, str]:
    return {
        "where": str(verdict.claim.get("where", "")),
        "quantity": verdict.quantity,
        "printed": _rounded(verdict.printed, verdict.decimals),
        "computed": _rounded(verdict.computed, verdict.decimals + 2),
        "status": verdict.status,
        "erratum": str(verdict.claim.get("erratum", "")),
    }


def _rounded(value: Array, decimals: int) -> str:
    return str(np.round(value, decimals).tolist())


def _claim(verdict: Verdict, causes: Mapping[str, str]) -> dict[str, Any] | None:
    """Locate the printed number in the trace; None for formulas and calculations."""
    if "calculation" in verdict.claim or "range" in verdict.claim:
        return None
    name, index, transposed = target(verdict.quantity)
    places = [] if index is Ellipsis else list(index) if isinstance(index, tuple) else [index]
    if not name.isidentifier() or not all(isinstance(place, int) for place in places):
        return None
    return {
        "name": name,
        "index": places,
        "transposed": transposed,
        "step": verdict.claim.get("step"),
        "where": str(verdict.claim.get("where", "")),
        "printed": verdict.printed.tolist(),
        "status": verdict.status,
        "cause": causes.get(str(verdict.claim.get("erratum", "")), ""),
    }
