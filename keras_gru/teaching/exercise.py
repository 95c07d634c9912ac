"""A trace with blanks: the reader calculates, the exercise checks the answers and gives hints."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keras_gru.teaching.cells import Array, Line
from keras_gru.teaching.network import Network
from keras_gru.teaching.trace import Trace
from keras_gru.teaching.trace_report import number, step_title

Ask = Callable[[str], str]
"""A function that shows a prompt and returns the reader's line.

It raises EOFError at the end of the input.
"""
Say = Callable[[str], None]

DECIMALS = 3
_TRIES = 2
_OUTPUT = {
    "cross_entropy": ("y = softmax(o)", "−Σ target log y"),
    "binary_cross_entropy": ("y = σ(o)", "−Σ [target log y + (1 − target) log(1 − y)]"),
    "squared_error": ("y = o", "½ Σ (y − target)²"),
}


@dataclass(frozen=True)
class Item:
    """One line of the calculation."""

    section: str
    line: Line
    values: Array


@dataclass
class Score:
    """The result of an exercise: numbers of blanks by outcome."""

    blanks: int
    first: int = 0
    """Blanks answered correctly at the first try."""
    second: int = 0
    shown: int = 0
    skipped: int = 0

    def __str__(self) -> str:
        done = self.first + self.second + self.shown + self.skipped
        text = f"{self.first + self.second} of {self.blanks} right"
        if self.second:
            text += f", {self.second} of them at the second try"
        for count, name in ((self.shown, "shown"), (self.skipped, "skipped")):
            if count:
                text += f", {count} {name}"
        return text + (f", {self.blanks - done} left" if done < self.blanks else "") + "."


def items(found: Trace) -> Iterator[Item]:
    """Yield every line of the calculation, in the order of a calculation on paper."""
    network = found.network
    for t, step in enumerate(found.steps):
        section = f"Forward, {step_title(network, t)}"
        lines = list(found.forward_lines)
        if "y" in step:
            predicted, lost = _OUTPUT[network.loss]
            lines.append(Line("16", "scores o = h′V + b_y", "logits"))
            lines.append(Line("16", "prediction y", "y", formula=predicted))
        if "loss" in step:
            lines.append(Line("17", "loss of this step", "loss", formula=lost))
        yield from (Item(section, line, np.atleast_1d(step[line.name])) for line in lines)
    if not network.targets:
        return
    for t, step in reversed(list(enumerate(found.steps))):
        section = f"Backward, {step_title(network, t)}"
        lines = list(found.backward_lines)
        if "d_logits" in step:
            lines.insert(0, Line("18", "δo = c (y − target)", "d_logits"))
        yield from (Item(section, line, step[line.name]) for line in lines)


def blanks(lines: Sequence[Item], count: int) -> set[int]:
    """Choose the lines to leave out, spread evenly over those that need a calculation."""
    worth = [i for i, item in enumerate(lines) if item.line.equation and np.any(item.values)]
    chosen = np.linspace(0, len(worth) - 1, min(count, len(worth)))
    return {worth[round(position)] for position in chosen}


def run_exercise(found: Trace, count: int, ask: Ask, say: Say) -> Score:
    """Go through a trace line by line, and ask for the lines that are left blank, at most `count`.

    Returns:
        The score, of all blanks or of those before the end of the input.

    Raises:
        KeyboardInterrupt: The reader stopped; the score was shown.
    """
    lines = list(items(found))
    left_out = blanks(lines, count)
    score = Score(len(left_out))
    say(_given(found.network))
    say(
        f"\n{len(left_out)} blanks, to {DECIMALS} decimals; separate numbers by spaces. "
        "? for a hint, an empty line to skip, Ctrl-C to stop."
    )
    section = ""
    try:
        for index, item in enumerate(lines):
            if item.section != section:
                section = item.section
                say(f"\n{section}")
            if index not in left_out:
                say(_shown(item, _numbers(item.values)))
                continue
            say(_shown(item, " ".join("____" for _ in item.values)))
            _ask_for(item, ask, say, score)
    except (EOFError, KeyboardInterrupt) as end:
        say(f"\nStopped. {score}")
        if isinstance(end, KeyboardInterrupt):
            raise
        return score
    say(f"\n{score}")
    return score


def _ask_for(item: Item, ask: Ask, say: Say, score: Score) -> None:
    tries = 0
    while True:
        text = ask("  > ").strip()
        if text == "?":
            say(f"  {_hint(item)}")
            continue
        if not text:
            say(f"  Skipped: {_numbers(item.values)}")
            score.skipped += 1
            return
        answer = _parsed(text)
        if answer is None or len(answer) != len(item.values):
            expected = f"{len(item.values)} number{'s' if len(item.values) > 1 else ''}"
            say(f"  Expected {expected} such as {number(0.25, DECIMALS)}, got {text!r:.60}.")
            continue
        wrong = ~close_enough(answer, item.values)
        if not np.any(wrong):
            say("  Right.")
            score.first += tries == 0
            score.second += tries > 0
            return
        tries += 1
        if tries == _TRIES:
            say(f"  It is {_numbers(item.values)}. {_hint(item)}")
            score.shown += 1
            return
        say(f"  {_complaint(answer, item.values, wrong)} {_hint(item)}")


def close_enough(answer: Array, values: Array) -> NDArray[np.bool_]:
    """Compare answers to three decimals, or to a thousandth of a large value."""
    tolerance = np.maximum(1.1 * 10.0**-DECIMALS, 1e-3 * np.abs(values))
    # A small gradient must not pass for zero.
    small = np.abs(values) < 2e-3
    return np.asarray(np.abs(answer - values) <= np.where(small, 0.55 * 10.0**-DECIMALS, tolerance))


def _complaint(answer: Array, values: Array, wrong: NDArray[np.bool_]) -> str:
    if np.all(close_enough(-answer, values)):
        return "The sign is the other way round."
    if len(values) == 1:
        return "Not yet."
    places = ", ".join(str(index + 1) for index in np.flatnonzero(wrong))
    return f"Not yet: number {places} of {len(values)}."


def _hint(item: Item) -> str:
    line = item.line
    formula = f": {line.formula}" if line.formula else ""
    return f"Hint: equation ({line.equation}) of DERIVATION.md, {line.label}{formula}."


def _parsed(text: str) -> Array | None:
    parts = re.split(r"[\s,;]+", text.strip("[]() ").replace("−", "-"))
    try:
        answer = np.array([float(part) for part in parts])
    except ValueError:
        return None
    return answer if np.all(np.isfinite(answer)) else None


def _shown(item: Item, values: str) -> str:
    equation = f"({item.line.equation})" if item.line.equation else ""
    return f"{equation:6} {item.line.label:30} {values}"


def _numbers(values: Array) -> str:
    return " ".join(number(value, DECIMALS + 1) for value in values)


def _given(network: Network) -> str:
    """List the inputs, targets and weights, from which everything follows."""
    lines = [f"{network.cell.title}; {network.cell.convention(network)}.", "Given:"]
    for t, x in enumerate(network.inputs):
        target = network.targets[t] if network.targets else None
        aim = "" if target is None else f", target {_short(target)}"
        lines.append(f"  {step_title(network, t)}: x {_short(x)}{aim}")
    for name, weight in network.weights.items():
        head = f"  {network.cell.symbol(name)} = "
        for row in np.atleast_2d(weight):
            lines.append(head + _short(row))
            head = " " * len(head)
    if network.output_kernel is not None and network.targets:
        mean = f"the {network.reduction} of the losses is differentiated"
        lines.append(f"  loss {network.loss}; {mean}")
    return "\n".join(lines)


def _short(values: Array) -> str:
    return " ".join(f"{value:g}" for value in values)
