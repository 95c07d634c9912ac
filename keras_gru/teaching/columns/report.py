"""A whole trace as texts draw it."""

from collections.abc import Callable, Iterator

import numpy as np

from keras_gru.teaching.cells.notebook import Values
from keras_gru.teaching.columns import gated, ungated
from keras_gru.teaching.columns.drawing import Drawing
from keras_gru.teaching.columns.entry import Entry, Product
from keras_gru.teaching.columns.symbols import at
from keras_gru.teaching.network import Network
from keras_gru.teaching.trace import Trace

Entries = Callable[[Network, int, Values], list[Entry]]
_OWN: dict[str, tuple[Entries, Entries]] = {
    "rnn": (ungated.rnn_forward, ungated.rnn_backward),
    "lstm": (ungated.lstm_forward, ungated.lstm_backward),
}


def columns_report(found: Trace, width: int, decimals: int) -> Iterator[str]:
    """Paragraphs: parameters, every step forward, every step backward, gradients, update."""
    yield from _Report(found, Drawing(width, decimals)).paragraphs(width)


class _Report:
    def __init__(self, found: Trace, drawing: Drawing) -> None:
        self._found, self._network, self._drawing = found, found.network, drawing
        self._forward, self._backward = _OWN.get(
            self._network.cell_name, (gated.forward, gated.backward)
        )
        # The notes count their steps from 1, as their s_0 is the start; the other texts from 0.
        self._split = self._network.cell_name in _OWN
        self._first = 1 if self._split else 0
        self._state = "s" if self._network.cell_name == "rnn" else "h"
        self._output = "V" if self._split else "W_y"
        self._output_bias = "c" if self._split else "b_y"
        self._scores = "scores" if self._split else "o"  # o is a gate of the LSTM

    def paragraphs(self, width: int) -> Iterator[str]:
        network, steps = self._network, self._found.steps
        yield self._heading(f"{network.cell.title}: parameters", width)
        yield from self._parameters()
        for t, step in enumerate(steps):
            yield self._heading(f"Forward, {self._title(t)}", width)
            yield self._drawing.line(f"{at('x', t + self._first)} = ", step["x"])
            for entry in self._forward(network, t, step):
                yield self._drawing.entry(entry)
            yield from self._prediction(t, step)
        if not network.targets:
            return
        yield self._heading("Loss", width)
        yield self._loss()
        for t in reversed(range(len(steps))):
            yield self._heading(f"Backward, {self._title(t)}", width)
            yield from self._incoming(t, steps[t])
            for entry in self._backward(network, t, steps[t]):
                yield self._drawing.entry(entry)
        yield self._heading("Gradients, added over the steps, and the update", width)
        yield from self._gradients()

    @staticmethod
    def _heading(title: str, width: int) -> str:
        return f"\n{title} {'═' * max(3, width - len(title) - 1)}"

    def _title(self, t: int) -> str:
        token = f': "{self._network.tokens[t]}"' if self._network.tokens else ""
        return f"t = {t + self._first}{token}"

    def _matrices(self) -> Iterator[tuple[str, list[str], bool]]:
        """Symbol of each parameter, the names of the trace's weights in it, side by side."""
        for block in self._network.blocks:
            if self._split:
                index = "" if block in ("h", "g") else f"_{block}"
                yield f"W{index}", [f"U_{block}"], True
                yield f"U{index}", [f"W_{block}"], True
                yield f"b{index}", [f"b_{block}"], False
                continue
            index = gated.LETTER[block]
            if block == "g" and self._network.reset_after:
                yield "W_hh", ["U_g"], True
                yield "W_hx", ["W_g"], True
            else:
                yield f"W_{index}", [f"U_{block}", f"W_{block}"], True
            yield f"b_{index}", [f"b_{block}"], False
            if self._network.reset_after:
                yield f"b′_{index}", [f"c_{block}"], False
        if self._network.output_kernel is not None:
            yield self._output, ["W_out"], True
            yield self._output_bias, ["b_out"], False

    def _parameters(self) -> Iterator[str]:
        network, drawing = self._network, self._drawing
        if not self._split:
            yield (
                f"Each W is for [h, x]: the first {network.units} columns for h, the other "
                f"{network.inputs.shape[1]} for x."
            )
        arrays: Values = {}
        for block in network.blocks:
            arrays[f"U_{block}"] = network.recurrent_kernel[block]
            arrays[f"W_{block}"] = network.kernel[block]
            arrays[f"b_{block}"] = network.bias[block]
            arrays[f"c_{block}"] = network.recurrent_bias[block]
        if network.output_kernel is not None and network.output_bias is not None:
            arrays["W_out"], arrays["b_out"] = network.output_kernel, network.output_bias
        for symbol, names, is_matrix in self._matrices():
            if is_matrix:
                value = np.hstack([arrays[name].T for name in names])
                rows, columns = value.shape
                lines = [f"{symbol} ({rows}×{columns}):"]
                yield "\n".join(lines + [f"  {line}" for line in drawing.matrix(value)])
            else:
                yield f"{symbol} = {drawing.row(arrays[names[0]], given=True)}"

    def _prediction(self, t: int, step: Values) -> Iterator[str]:
        if "y" not in step:
            return
        network, now = self._network, t + self._first
        assert network.output_kernel is not None
        assert network.output_bias is not None
        state = at(self._state, now)
        product = Product(self._output, network.output_kernel.T, state, step["h_new"])
        yield self._drawing.entry(
            Entry(
                at(self._scores, now),
                f"{self._output} {state} + {self._output_bias}",
                step["logits"],
                (product,),
                (self._output_bias, network.output_bias),
            )
        )
        activation = {"cross_entropy": "softmax", "binary_cross_entropy": "σ"}.get(network.loss, "")
        scores = at(self._scores, now)
        formula = f"{activation}({scores})" if activation else scores
        yield self._drawing.entry(Entry(at("y", now), formula, step["y"], result=True))

    def _loss(self) -> str:
        lines = [
            f"{at('L', t + self._first)} = {float(step['loss']):.6f}, target "
            f"{self._drawing.row(step['target'], given=True)}"
            for t, step in enumerate(self._found.steps)
            if "loss" in step
        ]
        totals, reduction = self._found.totals, self._network.reduction
        name = "sum" if reduction == "sum" else "mean"
        return "\n".join([*lines, f"L = {name} of these = {float(totals['loss']):.6f}"])

    def _incoming(self, t: int, step: Values) -> Iterator[str]:
        now = t + self._first
        symbol = at("δ", now) if self._network.cell_name == "rnn" else f"∂L/∂{at('h', now)}"
        if "d_logits" in step:
            kernel = self._network.output_kernel
            assert kernel is not None
            o = f"∂L/∂{at(self._scores, now)}"
            mean = self._network.reduction == "mean"
            losses = sum(target is not None for target in self._network.targets)
            share = f", times 1/{losses} for the mean" if mean and losses > 1 else ""
            yield self._drawing.entry(Entry(o, f"{at('y', now)} − target{share}", step["d_logits"]))
            product = Product(f"{self._output}ᵀ", kernel, o, step["d_logits"])
            head = f"{symbol} from the output"
            yield self._drawing.entry(
                Entry(head, f"{self._output}ᵀ {o}", step["dh_output"], (product,))
            )
        yield self._drawing.entry(Entry(f"{symbol} from the future", "", step["dh_future"]))
        yield self._drawing.entry(Entry(symbol, "sum of both", step["dh_new"], result=True))

    def _gradients(self) -> Iterator[str]:
        totals = self._found.totals
        rate = self._network.learning_rate
        for symbol, names, is_matrix in self._matrices():
            if is_matrix:
                gradient = np.hstack([totals[f"d{name}"].T for name in names])
                yield self._drawing.outer(f"∂L/∂{symbol}", "", gradient)
            else:
                yield self._drawing.line(f"∂L/∂{symbol} = ", totals[f"d{names[0]}"])
            if rate is None:
                continue
            formula = f"{symbol} − {rate:g} · ∂L/∂{symbol}"
            if is_matrix:
                new = np.hstack([totals[f"new_{name}"].T for name in names])
                yield self._drawing.outer(f"new {symbol}", formula, new)
            else:
                head = f"new {symbol} = {formula} = "
                yield self._drawing.line(head, totals[f"new_{names[0]}"])
