"""A trace as texts draw it: columns, matrices, and [h, x] in one column.

The GRU and its variants are in the symbols of gru_explained and gru_architecture, which count
their steps from 0. The vanilla RNN and the LSTM are in those of rnn_lstm_gru_notes: its W is the
recurrent matrix and its U the input's, the other way round than in DERIVATION.md, its LSTM calls
the cell s and the output h, and its steps count from 1, as s_0 is the start.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from keras_gru.teaching.cells import Array, Values
from keras_gru.teaching.network import Network
from keras_gru.teaching.trace import Trace
from keras_gru.teaching.trace_report import number

Block = list[str]

_SUBSCRIPTS = str.maketrans("0123456789-", "₀₁₂₃₄₅₆₇₈₉₋")
_LETTERS = {"z": "z", "r": "r", "g": "h"}
"""Index of a block's weights in the texts about the GRU."""
_LSTM_BLOCKS = ("o", "i", "f", "g")


class Product(NamedTuple):
    """A matrix times a column."""

    matrix: Array
    """(rows, columns)."""
    symbol: str
    """Symbol of the column."""
    column: Array
    """(columns,)."""


@dataclass(frozen=True)
class Entry:
    """One equation in a text's symbols, with its value and the matrices and columns in it."""

    symbol: str
    """Left side of the equation."""
    formula: str
    """Right side; empty for what is given or a plain sum of products."""
    value: Array
    products: tuple[Product, ...] = ()
    """Products whose sum is the value or the argument of an activation."""
    added: Array | None = None
    """A column added to the products."""


def columns_report(found: Trace, width: int, decimals: int) -> Iterator[str]:
    """Yield paragraphs: parameters, steps forward, steps backward, gradients, update."""
    yield from _Report(found, Drawing(width, decimals)).paragraphs(width)


class Drawing:
    """Matrices and columns in brackets, beside each other where the width allows it.

    Args:
        width: Width of the terminal in columns.
        decimals: Decimals of computed numbers; given ones have as many as they need.
    """

    def __init__(self, width: int, decimals: int) -> None:
        self._width, self._decimals = width, decimals

    def entry(self, entry: Entry) -> str:
        """Draw one equation, its matrices and its value."""
        head = f"{entry.symbol} = {entry.formula}" if entry.formula else entry.symbol
        if not entry.products:
            return self.line(f"{head} = ", entry.value)
        lines = [f"{head}:"]
        for product in entry.products:
            if product.symbol.startswith("["):
                lines.append("  " + self.line(f"{product.symbol} = ", product.column))
        parts: list[Block | str] = []
        sums: list[Block | str] = ["="]
        total = np.zeros(len(entry.products[0].matrix))
        for product in entry.products:
            if parts:
                parts.append("+")
                sums.append("+")
            times = f"· {product.symbol}"
            parts += [self._matrix(product.matrix, given=True, beside=len(times) + 3), times]
            sums.append(self._column(product.matrix @ product.column))
            total = total + product.matrix @ product.column
        if entry.added is not None:
            sums += ["+", self._column(entry.added, given=True)]
            total = total + entry.added
        if len(sums) > 2:
            sums += ["=", self._column(total)]
        lines += self._beside([*parts, *sums])
        if not np.allclose(total, entry.value, rtol=0, atol=1e-12):
            lines.append("  " + self.line(f"{entry.symbol} = ", entry.value))
        return "\n".join(lines)

    def matrix(self, head: str, values: Array, *, given: bool = False) -> str:
        """Draw a matrix under its symbol or formula."""
        rows, columns = values.shape
        lines = [f"{head} ({rows}×{columns}):"]
        return "\n".join(lines + [f"  {line}" for line in self._matrix(values, given=given)])

    def row(self, values: Array, *, given: bool = False) -> str:
        """Write a column as a row with a ᵀ."""
        return f"[{', '.join(self._number(value, given) for value in values)}]ᵀ"

    def line(self, head: str, values: Array) -> str:
        """Write a column as a row after its symbol, below it where it is too long."""
        text = self.row(values)
        if len(head) + len(text) <= self._width:
            return head + text
        return f"{head.rstrip()}\n    {text}"

    def _matrix(self, values: Array, *, given: bool, beside: int = 0) -> Block:
        """Draw rows in brackets; `beside` columns stay free for the rest of the line."""
        texts = [[self._number(value, given) for value in row] for row in values]
        width = max(len(text) for row in texts for text in row)
        most = max(1, (self._width - 5 - beside) // (width + 1))
        if len(texts[0]) > most:
            most = max(1, (self._width - 7 - beside) // (width + 1))  # two for the …
        rows = [" ".join(f"{text:>{width}}" for text in row[:most]) for row in texts]
        return [f"[{row}{' …' if len(texts[0]) > most else ''}]" for row in rows]

    def _column(self, values: Array, *, given: bool = False) -> Block:
        return self._matrix(np.asarray(values)[:, np.newaxis], given=given)

    def _beside(self, parts: Sequence[Block | str]) -> list[str]:
        """Draw blocks and signs side by side, broken before signs where the line is too long."""
        groups: list[list[Block | str]] = [[]]
        if len(_joined(parts)[0]) + 2 <= self._width:
            groups, parts = [list(parts)], []
        for part in parts:
            wider = len(_joined([*groups[-1], part])[0]) + 2 > self._width
            if groups[-1] and (part == "=" or (part == "+" and wider)):
                groups.append([])
            elif wider and len(groups[-1]) > 2:  # the sign goes with what it stands before
                sign = groups[-1].pop()
                groups.append([sign])
            groups[-1].append(part)
        return [f"  {line}".rstrip() for group in groups for line in _joined(group)]

    def _number(self, value: float, given: bool) -> str:
        if not given:
            return number(value, self._decimals)
        short = f"{round(float(value), 6):.6f}".rstrip("0")
        return short + "0" if short.endswith(".") else short


def _joined(parts: Sequence[Block | str]) -> list[str]:
    """Join blocks side by side, with signs on the middle line."""
    height = max((len(part) for part in parts if not isinstance(part, str)), default=1)
    middle = (height - 1) // 2
    lines = [""] * height
    for part in parts:
        if isinstance(part, str):
            block = [part if row == middle else " " * len(part) for row in range(height)]
        else:
            block = part + [" " * len(part[0])] * (height - len(part))
        lines = [
            f"{line} {cell}" if line else cell for line, cell in zip(lines, block, strict=True)
        ]
    return lines


def _at(symbol: str, t: int) -> str:
    """Write a symbol with its step, such as h₋₁."""
    return f"{symbol}{str(t).translate(_SUBSCRIPTS)}"


class _Report:
    """The paragraphs of one trace."""

    def __init__(self, found: Trace, drawing: Drawing) -> None:
        self._found, self._network, self._drawing = found, found.network, drawing
        cell = self._network.cell_name
        own = {"rnn": (_rnn_forward, _rnn_backward), "lstm": (_lstm_forward, _lstm_backward)}
        self._forward, self._backward = own.get(cell, (_gated_forward, _gated_backward))
        self._is_split = cell in own  # W h + U x instead of W [h, x]
        self._first = 1 if self._is_split else 0
        self._state = "s" if cell == "rnn" else "h"
        self._output, self._output_bias = ("V", "c") if self._is_split else ("W_y", "b_y")
        self._scores = "scores" if self._is_split else "o"  # o is a gate of the LSTM

    def paragraphs(self, width: int) -> Iterator[str]:
        network, steps = self._network, self._found.steps

        def heading(title: str) -> str:
            return f"\n{title} {'═' * max(3, width - len(title) - 1)}"

        yield heading(f"{network.cell.title}: parameters")
        yield from self._parameters()
        for t, step in enumerate(steps):
            yield heading(f"Forward, {self._title(t)}")
            yield self._drawing.line(f"{_at('x', t + self._first)} = ", step["x"])
            for entry in (*self._forward(network, t, step), *self._prediction(t, step)):
                yield self._drawing.entry(entry)
        if not network.targets:
            return
        yield heading("Loss")
        yield self._loss()
        for t in reversed(range(len(steps))):
            yield heading(f"Backward, {self._title(t)}")
            for entry in (*self._incoming(t, steps[t]), *self._backward(network, t, steps[t])):
                yield self._drawing.entry(entry)
        yield heading("Gradients, added over the steps, and the update")
        yield from self._gradients()

    def _title(self, t: int) -> str:
        token = f': "{self._network.tokens[t]}"' if self._network.tokens else ""
        return f"t = {t + self._first}{token}"

    def _symbols(self) -> Iterator[tuple[str, list[str]]]:
        """Pair each parameter's symbol with the trace's weights in it, side by side."""
        for block in self._network.blocks:
            if self._is_split:
                index = "" if block in ("h", "g") else f"_{block}"
                yield f"W{index}", [f"U_{block}"]
                yield f"U{index}", [f"W_{block}"]
                yield f"b{index}", [f"b_{block}"]
                continue
            index = _LETTERS[block]
            if block == "g" and self._network.reset_after:
                yield "W_hh", ["U_g"]
                yield "W_hx", ["W_g"]
            else:
                yield f"W_{index}", [f"U_{block}", f"W_{block}"]
            yield f"b_{index}", [f"b_{block}"]
            if self._network.reset_after:
                yield f"b′_{index}", [f"c_{block}"]
        if self._network.output_kernel is not None:
            yield self._output, ["W_out"]
            yield self._output_bias, ["b_out"]

    def _parameters(self) -> Iterator[str]:
        network, weights = self._network, self._network.weights
        if not self._is_split:
            yield (
                f"Each W is for [h, x]: the first {network.units} columns for h, the other "
                f"{network.inputs.shape[1]} for x."
            )
        for symbol, names in self._symbols():
            value = _side_by_side([weights[name] for name in names])
            if value.ndim == 2:
                yield self._drawing.matrix(symbol, value, given=True)
            else:
                yield f"{symbol} = {self._drawing.row(value, given=True)}"

    def _prediction(self, t: int, step: Values) -> Iterator[Entry]:
        network, now = self._network, t + self._first
        if network.output_kernel is None:
            return
        state, scores = _at(self._state, now), _at(self._scores, now)
        formula = f"{self._output} {state} + {self._output_bias}"
        product = Product(network.output_kernel.T, state, step["h_new"])
        yield Entry(scores, formula, step["logits"], (product,), network.output_bias)
        activation = {"cross_entropy": "softmax", "binary_cross_entropy": "σ"}.get(network.loss)
        yield Entry(_at("y", now), f"{activation}({scores})" if activation else scores, step["y"])

    def _loss(self) -> str:
        lines = [
            f"{_at('L', t + self._first)} = {float(step['loss']):.6f}, target "
            f"{self._drawing.row(step['target'], given=True)}"
            for t, step in enumerate(self._found.steps)
            if "loss" in step
        ]
        total = float(self._found.totals["loss"])
        return "\n".join([*lines, f"L = {self._network.reduction} of these = {total:.6f}"])

    def _incoming(self, t: int, step: Values) -> Iterator[Entry]:
        """Derive the gradient of a step's new state from its output and from later steps."""
        network, now = self._network, t + self._first
        symbol = _at("δ", now) if network.cell_name == "rnn" else f"∂L/∂{_at('h', now)}"
        if "d_logits" in step and network.output_kernel is not None:
            o = f"∂L/∂{_at(self._scores, now)}"
            mean = network.reduction == "mean"
            losses = sum(target is not None for target in network.targets)
            share = f", times 1/{losses} for the mean" if mean and losses > 1 else ""
            yield Entry(o, f"{_at('y', now)} − target{share}", step["d_logits"])
            product = Product(network.output_kernel, o, step["d_logits"])
            formula = f"{self._output}ᵀ {o}"
            yield Entry(f"{symbol} from the output", formula, step["dh_output"], (product,))
        yield Entry(f"{symbol} from the future", "", step["dh_future"])
        yield Entry(symbol, "sum of both", step["dh_new"])

    def _gradients(self) -> Iterator[str]:
        totals, rate = self._found.totals, self._network.learning_rate
        for symbol, names in self._symbols():
            shown = {f"∂L/∂{symbol}": "d"}
            if rate is not None:
                shown[f"new {symbol} = {symbol} − {rate:g} · ∂L/∂{symbol}"] = "new_"
            for head, prefix in shown.items():
                value = _side_by_side([totals[prefix + name] for name in names])
                if value.ndim == 2:
                    yield self._drawing.matrix(head, value)
                else:
                    yield self._drawing.line(f"{head} = ", value)


def _side_by_side(arrays: Sequence[Array]) -> Array:
    """Join weights for row vectors to one for columns; a bias stays as it is."""
    return np.concatenate([array.T for array in arrays], axis=-1)


def _gated_forward(network: Network, t: int, step: Values) -> list[Entry]:
    """Draw reset gate, update gate, candidate and new state of a GRU or a variant."""
    h, x, z, r, new = _at("h", t - 1), _at("x", t), _at("z", t), _at("r", t), _at("h", t)
    keeps = network.update_gate == "keep"
    keep, add = (z, f"(1 − {z})") if keeps else (f"(1 − {z})", z)

    def read(block: str, past: str, state: Array) -> tuple[str, Product]:
        column = np.concatenate([state, step["x"]])
        kernels = [network.recurrent_kernel[block], network.kernel[block]]
        return f"[{past}, {x}]", Product(_side_by_side(kernels), f"[{past}, {x}]", column)

    entries = []
    for gate in ("r", "z") if network.cell_name == "gru" else ("z",):
        symbol, product = read(gate, h, step["h"])
        formula = f"σ(W_{gate} {symbol} + b_{gate})"
        bias = network.bias[gate] + network.recurrent_bias[gate]
        entries.append(Entry(_at(gate, t), formula, step[gate], (product,), bias))
    candidate = _at("h̃", t)
    if network.reset_after:
        past = Product(network.recurrent_kernel["g"].T, h, step["h"])
        given = Product(network.kernel["g"].T, x, step["x"])
        formula = f"{network.activation}(W_hx {x} + b_h + {r} ⊙ q)"
        entries += [
            Entry("q", f"W_hh {h} + b′_h", step["q"], (past,), network.recurrent_bias["g"]),
            Entry(f"{r} ⊙ q", "", step["rq"]),
            Entry(candidate, formula, step["g"], (given,), network.bias["g"] + step["rq"]),
        ]
    else:
        # What multiplies the state: the reset gate, or in a cell of one gate a share of it.
        reset = {"gru": r, "mgu": add, "coupled_gru": keep}.get(network.cell_name)
        state = f"{reset} ⊙ {h}" if reset else h
        if reset:
            entries.append(Entry(state, "", step["rh"]))
        symbol, product = read("g", state, step["rh"])
        formula = f"{network.activation}(W_h {symbol} + b_h)"
        entries.append(Entry(candidate, formula, step["g"], (product,), network.bias["g"]))
    return [
        *entries,
        Entry(f"{keep} ⊙ {h}", "", step["kept"]),
        Entry(f"{add} ⊙ {candidate}", "", step["added"]),
        Entry(new, f"{keep} ⊙ {h} + {add} ⊙ {candidate}", step["h_new"]),
    ]


def _gated_backward(network: Network, t: int, step: Values) -> list[Entry]:
    """Draw the way from ∂L/∂h_t to ∂L/∂h_{t−1} through a GRU or a variant."""
    d, h, z, r = "∂L/∂", _at("h", t - 1), _at("z", t), _at("r", t)
    new, candidate = _at("h", t), _at("h̃", t)
    keeps = network.update_gate == "keep"
    keep, add = (z, f"(1 − {z})") if keeps else (f"(1 − {z})", z)
    difference = f"({h} − {candidate})" if keeps else f"({candidate} − {h})"
    pre = {gate: f"{d}z_{_LETTERS[gate]},{t}" for gate in "zrg"}
    U = network.recurrent_kernel

    def slope(gate: str) -> str:
        return f"{gate} ⊙ (1 − {gate})" if network.recurrent_activation == "sigmoid" else "σ′"

    def back(symbol: str, formula: str, value: str, block: str) -> Entry:
        product = Product(U[block], pre[block], step[f"d_a_{block}"])
        return Entry(symbol, formula, step[value], (product,))

    of_candidate = [
        Entry(f"{d}{candidate}", f"{d}{new} ⊙ {add}", step["d_g"]),
        Entry(pre["g"], f"{d}{candidate} ⊙ {network.activation}′", step["d_a_g"]),
    ]
    of_update_gate = Entry(pre["z"], f"{d}{z} ⊙ {slope(z)}", step["d_a_z"])
    direct = Entry(f"{d}{h}, direct", f"{d}{new} ⊙ {keep}", step["dh_direct"])
    through_past = f"W_hᵀ[0:n, :] {pre['g']}"
    if network.cell_name != "gru":
        has_reset = network.cell_name != "minimal_gru"
        return [
            *of_candidate,
            back(f"{d}p", f"{through_past}, p the state that W_h reads", "d_rh", "g"),
            Entry(f"{d}{z} in h", f"{d}{new} ⊙ {difference}", step["d_z_mixture"]),
            *([Entry(f"{d}{z} in p", "", step["d_z_candidate"])] if has_reset else []),
            of_update_gate,
            direct,
            Entry(f"{d}{h}, candidate", "", step["dh_candidate"]),
            back(f"{d}{h}, gate", "", "dh_update_gate", "z"),
            Entry(f"{d}{h}", "direct + candidate + gate", step["dh"]),
        ]
    if network.reset_after:
        through_reset = [
            Entry(f"{d}q", f"{pre['g']} ⊙ {r}", step["d_q"]),
            Entry(f"{d}{r}", f"{pre['g']} ⊙ q", step["d_r"]),
        ]
        product = Product(U["g"], f"{d}q", step["d_q"])
        through_candidate = Entry(
            f"{d}{h}, candidate", f"W_hhᵀ {d}q", step["dh_candidate"], (product,)
        )
    else:
        past = f"{d}({r} ⊙ {h})"
        through_reset = [
            back(past, through_past, "d_rh", "g"),
            Entry(f"{d}{r}", f"{past} ⊙ {h}", step["d_r"]),
        ]
        through_candidate = Entry(f"{d}{h}, candidate", f"{past} ⊙ {r}", step["dh_candidate"])
    return [
        Entry(f"{d}{z}", f"{d}{new} ⊙ {difference}", step["d_z"]),
        of_update_gate,
        *of_candidate,
        *through_reset,
        Entry(pre["r"], f"{d}{r} ⊙ {slope(r)}", step["d_a_r"]),
        direct,
        through_candidate,
        back(f"{d}{h}, through z", f"W_zᵀ[0:n, :] {pre['z']}", "dh_update_gate", "z"),
        back(f"{d}{h}, through r", f"W_rᵀ[0:n, :] {pre['r']}", "dh_reset_gate", "r"),
        Entry(f"{d}{h}", "direct + candidate + gates", step["dh"]),
    ]


def _split_products(
    network: Network, block: str, h: str, x: str, step: Values
) -> tuple[Product, ...]:
    """Multiply the recurrent and the input matrix apart, each with its own column."""
    return (
        Product(network.recurrent_kernel[block].T, h, step["h"]),
        Product(network.kernel[block].T, x, step["x"]),
    )


def _rnn_forward(network: Network, t: int, step: Values) -> list[Entry]:
    """Draw s_t = σ(W s_{t−1} + U x_t + b)."""
    s, x = _at("s", t), _at("x", t + 1)
    formula = f"{network.activation}(W {s} + U {x} + b)"
    products = _split_products(network, "h", s, x, step)
    return [Entry(_at("s", t + 1), formula, step["h_new"], products, network.bias["h"])]


def _rnn_backward(network: Network, t: int, step: Values) -> list[Entry]:
    """Draw the way from δ_t, the gradient of s_t, to that of s_{t−1}."""
    s, a, slope = _at("s", t + 1), _at("a", t + 1), f"{network.activation}′"
    product = Product(network.recurrent_kernel["h"], f"∂L/∂{a}", step["d_a_h"])
    return [
        Entry(f"∂{s}/∂{a}, its diagonal", slope, step["slope_h"]),
        Entry(f"∂L/∂{a}", f"{_at('δ', t + 1)} ⊙ {slope}", step["d_a_h"]),
        Entry(f"∂L/∂{_at('s', t)}, to step {t}", f"Wᵀ ∂L/∂{a}", step["dh"], (product,)),
    ]


def _lstm_forward(network: Network, t: int, step: Values) -> list[Entry]:
    """Draw gates, candidate, cell s_t and output h_t."""
    h, x, new = _at("h", t), _at("x", t + 1), t + 1
    entries = []
    for block in _LSTM_BLOCKS:
        symbol, index = ("s̃", "") if block == "g" else (block, f"_{block}")
        activation = network.activation if block == "g" else "σ"
        formula = f"{activation}(W{index} {h} + U{index} {x} + b{index})"
        products = _split_products(network, block, h, x, step)
        entries.append(Entry(_at(symbol, new), formula, step[block], products, network.bias[block]))
    s, written = _at("s", new), f"{network.activation}({_at('s', new)}), selectively written"
    return [
        *entries,
        Entry(f"{_at('f', new)} ⊙ {_at('s', t)}, kept", "", step["kept"]),
        Entry(f"{_at('i', new)} ⊙ {_at('s̃', new)}, selectively read", "", step["added"]),
        Entry(s, "sum of both", step["c_new"]),
        Entry(_at("h", new), f"{_at('o', new)} ⊙ {written}", step["h_new"]),
    ]


def _lstm_backward(network: Network, t: int, step: Values) -> list[Entry]:
    """Draw the way from ∂L/∂h_t and ∂L/∂s_t to those of the step before."""
    d, phi, new = "∂L/∂", network.activation, t + 1
    cell, output = _at("s", new), _at("h", new)
    symbols = {block: "s̃" if block == "g" else block for block in _LSTM_BLOCKS}
    entries = [
        Entry(f"{d}{_at('o', new)}", f"{d}{output} ⊙ {phi}({cell})", step["d_o"]),
        Entry(
            f"{d}{cell} from {output}", f"{d}{output} ⊙ {_at('o', new)} ⊙ {phi}′", step["dc_output"]
        ),
        Entry(f"{d}{cell} from the future", "", step["dc_future"]),
        Entry(f"{d}{cell}", "sum of both", step["dc_new"]),
        Entry(f"{d}{_at('f', new)}", f"{d}{cell} ⊙ {_at('s', t)}", step["d_f"]),
        Entry(f"{d}{_at('i', new)}", f"{d}{cell} ⊙ {_at('s̃', new)}", step["d_i"]),
        Entry(f"{d}{_at('s̃', new)}", f"{d}{cell} ⊙ {_at('i', new)}", step["d_g"]),
    ]
    products = []
    for block, symbol in symbols.items():
        a, d_a = f"{d}a_{symbol},{new}", step[f"d_a_{block}"]
        slope = f"{phi}′" if block == "g" else "σ′"
        entries.append(Entry(a, f"{d}{_at(symbol, new)} ⊙ {slope}", d_a))
        products.append(Product(network.recurrent_kernel[block], a, d_a))
    formula = "sum of W_oᵀ, W_iᵀ, W_fᵀ and Wᵀ times their gradients"
    return [
        *entries,
        Entry(f"{d}{_at('s', t)}", f"{d}{cell} ⊙ {_at('f', new)}, direct", step["dc"]),
        Entry(f"{d}{_at('h', t)}", formula, step["dh"], tuple(products)),
    ]
