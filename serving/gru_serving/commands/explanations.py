"""Drawings of gates, and of the words that decided an answer, for terminal, picture and page."""

import html
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from gru_serving.client.results import Attribution, Explanation
from gru_serving.commands.terminal import safe_text, share_bar
from gru_serving.errors import PlotError
from gru_serving.named_files import write_whole
from gru_serving.page import page

_MOST_CELLS = 16
_MOST_TICKS = 120
_TOKEN_WIDTH, _ANSWER_WIDTH = 18, 38
_LONGEST_TOKEN = 200
_LEVELS = "▁▂▃▄▅▆▇█"
_DIRECTIONS = ("→", "←")


def terminal_map(
    explanation: Explanation,
    classes: Sequence[str],
    width: int = 80,
    thresholds: Sequence[float] = (),
) -> Table:
    """Draw a row per token: its gates, or groups of neighbouring ones, followed by any scores.

    Height, and colour if the terminal has it, stand for a gate's value from 0 to 1.

    Args:
        explanation: Explanation of one text.
        classes: The C class names; none for a series, one without a name for a number.
        width: Width of the terminal, in characters.
        thresholds: Probability from which on each label applies, of a model of several labels.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    tokens = [safe_text(token, _LONGEST_TOKEN) for token in explanation.tokens]
    longest = min(_TOKEN_WIDTH, max(map(len, (*tokens, "token"))))
    table.add_column("token", no_wrap=True, min_width=longest, max_width=_TOKEN_WIDTH)
    strips = 2 * len(list(_places(explanation)))
    room = (width - longest - _ANSWER_WIDTH) // strips - 2
    cells_wide = min(_MOST_CELLS, max(4, room))
    names = list(_layer_names(explanation))
    for name in names:
        table.add_column(f"update{name}", no_wrap=True)
        table.add_column(f"reset{name}", no_wrap=True)
    if classes:
        table.add_column("answer so far", no_wrap=True)
    for t, token in enumerate(tokens):
        cells = [Text(token)]
        for layer, direction in _places(explanation):
            for gate in (explanation.update_gate, explanation.reset_gate):
                cells.append(_strip(gate[t, layer, direction], cells_wide))
        if classes:
            cells.append(Text(_answer(explanation.scores[t], classes, thresholds)))
        table.add_row(*cells)
    return table


def _answer(scores: Any, classes: Sequence[str], thresholds: Sequence[float]) -> str:
    """Name the likeliest class, the labels that apply, or the number."""
    if not any(classes):
        return f"{float(scores[0]):.6g}"
    if len(thresholds) == len(classes):
        order = sorted(range(len(classes)), key=lambda k: -scores[k])
        applying = [k for k in order if scores[k] >= thresholds[k]]
        return ", ".join(f"{safe_text(classes[k])} {scores[k]:.3f}" for k in applying) or "-"
    best = int(scores.argmax())
    probability = float(scores[best])
    return f"{safe_text(classes[best]):<10} {probability:.3f} {share_bar(probability, 16)}"


def picture(
    explanation: Explanation, classes: Sequence[str], path: Path, series: Any = None
) -> bool:
    """Write heat-maps of both gates, units over tokens, above the scores or the series.

    Args:
        explanation: Explanation of one text, or of one column of a series.
        classes: The C class names; none for a series.
        path: Path of the picture; its ending says which kind.
        series: Places on the axis of tokens, and the values there, to draw in place of scores.

    Returns:
        Whether the font lacks a letter, which is drawn as a box.

    Raises:
        PlotError: matplotlib is not installed, or cannot write such a file.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotError("a picture needs matplotlib: pip install 'keras-gru[plot]'") from None
    places, names = list(_places(explanation)), list(_layer_names(explanation))
    steps = len(explanation.tokens)
    rows = 2 * len(places) + 1
    wide = min(max(steps, 12), 60)
    figure = Figure(figsize=(2.5 + 0.35 * wide, 2.1 * rows), layout="constrained")
    axes = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    image = None
    for number, ((layer, direction), name) in enumerate(zip(places, names, strict=True)):
        for which, gate in enumerate((explanation.update_gate, explanation.reset_gate)):
            ax = axes[2 * number + which]
            image = ax.imshow(
                gate[:, layer, direction].T, aspect="auto", cmap="viridis", vmin=0, vmax=1
            )
            ax.set_ylabel(f"{('update', 'reset')[which]} gate{name}\nunit")
    if image is not None:
        figure.colorbar(image, ax=list(axes[:-1]), label="gate", fraction=0.03)
    if series is None:
        for k, name in enumerate(classes):
            label = name or "number"
            axes[-1].plot(range(steps), explanation.scores[:, k], marker="o", label=label)
        if any(classes):
            axes[-1].set(ylim=(-0.02, 1.02), ylabel="probability after\nthe token")
        axes[-1].legend(loc="upper left")
    else:
        axes[-1].plot(*series)
        axes[-1].set(ylabel="series", xlim=(-0.5, steps - 0.5))
    every = -(-steps // _MOST_TICKS)
    axes[-1].set_xticks(
        range(0, steps, every), explanation.tokens[::every], rotation=60, ha="right"
    )
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise PlotError(f"{path}: cannot be written: {error}") from None
    return any("missing from font" in str(each.message) for each in found)


def _places(explanation: Explanation) -> Iterator[tuple[int, int]]:
    _, layers, directions, _ = explanation.update_gate.shape
    return ((layer, direction) for layer in range(layers) for direction in range(directions))


def _layer_names(explanation: Explanation) -> Iterator[str]:
    _, layers, directions, _ = explanation.update_gate.shape
    for layer, direction in _places(explanation):
        number = f" {layer + 1}" if layers > 1 else ""
        yield f"{number} {_DIRECTIONS[direction]}" if directions > 1 else number


def _strip(gate: Any, cells: int) -> Text:
    groups = np.array_split(gate, min(cells, len(gate)))
    strip = Text()
    for group in groups:
        value = float(np.nan_to_num(np.clip(group.mean(), 0, 1)))
        strip.append(_LEVELS[min(7, int(value * 8))], style=_colour(value))
    return strip


def _colour(value: float) -> str:
    """Return a CSS colour for a value in [0, 1], from blue through green to yellow."""
    red, green, blue = (round(255 * v) for v in (value**2, 0.15 + 0.8 * value, 0.5 * (1 - value)))
    return f"rgb({red},{green},{blue})"


_BAR = 16
_TOWARDS, _AWAY = "blue", "dark_orange"
_STYLE = "body{line-height:1.9;max-width:48em}span{border-radius:.3em;padding:.1em .2em}"


def terminal_words(attribution: Attribution) -> Table:
    """Draw a row per word: its share as a number and as a bar to the left (against) or right (for).

    Args:
        attribution: Attribution of one text.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("token", overflow="fold")
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("against", justify="right", no_wrap=True, min_width=_BAR)
    table.add_column("for", no_wrap=True, min_width=_BAR)
    for token, score, share in zip(
        attribution.tokens, attribution.scores, _relative(attribution), strict=True
    ):
        table.add_row(
            Text(safe_text(token, _LONGEST_TOKEN)),
            f"{float(score):+.3f}",
            Text(share_bar(-share, _BAR), style=_AWAY),
            Text(share_bar(share, _BAR), style=_TOWARDS),
        )
    return table


def summary(attribution: Attribution) -> str:
    """State the sum of the shares beside the difference that they explain, in one line."""
    what = safe_text(attribution.label) or "the number"
    found = attribution.value - attribution.baseline
    return (
        f"{what}: {attribution.value:+.3f}, without the words {attribution.baseline:+.3f}; the "
        f"shares add up to {float(attribution.scores.sum()):+.3f} of the difference {found:+.3f}"
    )


def write_page(attribution: Attribution, path: Path) -> None:
    """Write the text as a page with its words marked: blue for the answer, orange against it.

    Args:
        attribution: Attribution of one text.
        path: Path of the page.

    Raises:
        OSError: The file cannot be written.
    """
    words = " ".join(
        f'<span style="background:rgba({"11,99,181" if share > 0 else "224,130,20"},'
        f'{abs(share) * 0.6:.2f})" title="{float(score):+.3f}">'
        f"{html.escape(safe_text(token, _LONGEST_TOKEN))}</span>"
        for token, score, share in zip(
            attribution.tokens, attribution.scores, _relative(attribution), strict=True
        )
    )
    what = safe_text(attribution.label) or "the number"
    body = (
        f"<h1>Why {html.escape(what)}?</h1><p>{words}</p>"
        f"<p>{html.escape(summary(attribution))}. Words on blue speak for it, words on orange "
        "against it; the deeper the colour, the larger the share (integrated gradients).</p>"
    )
    write_whole(path, page(what, _STYLE, body))


def _relative(attribution: Attribution) -> list[float]:
    """Scale the shares so that the largest is 1 or -1; values that are not numbers become 0."""
    scores = np.nan_to_num(np.asarray(attribution.scores, np.float64), posinf=0, neginf=0)
    largest = float(np.abs(scores).max(initial=0)) or 1.0
    return [float(score) for score in scores / largest]
