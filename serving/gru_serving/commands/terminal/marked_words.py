"""Shows which words an answer is due to, in the terminal and as a page."""

from __future__ import annotations

import html
import os
from pathlib import Path

import numpy as np
from rich.table import Table
from rich.text import Text

from gru_serving.client.results import Attribution
from gru_serving.commands.terminal.safe_text import safe_text, share_bar

_BAR = 16
_LONGEST_TOKEN = 200
_TOWARDS, _AWAY = "blue", "dark_orange"
_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.9 system-ui,sans-serif;max-width:48em;"
    "margin:2em auto;padding:0 1em}h1{font-size:1.2em}span{border-radius:.3em;padding:.1em .2em}"
)


def terminal_words(attribution: Attribution) -> Table:
    """A row per word: its share as a number, and as a bar to the left (against) or right (for).

    Args:
        attribution: Of one text.
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
    """What the shares add up to, in one line."""
    what = safe_text(attribution.label) or "the number"
    found = attribution.value - attribution.baseline
    return (
        f"{what}: {attribution.value:+.3f}, without the words {attribution.baseline:+.3f}; the "
        f"shares add up to {float(attribution.scores.sum()):+.3f} of the difference {found:+.3f}"
    )


def write_page(attribution: Attribution, path: Path) -> None:
    """Write the text as a page with its words marked: blue speaks for the answer, orange against.

    Args:
        attribution: Of one text.
        path: Of the page.

    Raises:
        OSError: It cannot be written.
    """
    words = " ".join(
        f'<span style="background:rgba({"11,99,181" if share > 0 else "224,130,20"},'
        f'{abs(share) * 0.6:.2f})" title="{float(score):+.3f}">'
        f"{html.escape(safe_text(token, _LONGEST_TOKEN))}</span>"
        for token, score, share in zip(
            attribution.tokens, attribution.scores, _relative(attribution), strict=True
        )
    )
    what = html.escape(safe_text(attribution.label) or "the number")
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{what}</title>"
        f"<style>{_STYLE}</style><h1>Why {what}?</h1><p>{words}</p>"
        f"<p>{html.escape(summary(attribution))}. Words on blue speak for it, words on orange "
        "against it; the deeper the colour, the larger the share (integrated gradients).</p>\n"
    )
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_text(page, "utf-8")
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _relative(attribution: Attribution) -> list[float]:
    """The shares, the largest of which is 1 or -1; 0 where one is no number."""
    scores = np.nan_to_num(np.asarray(attribution.scores, np.float64), posinf=0, neginf=0)
    largest = float(np.abs(scores).max(initial=0)) or 1.0
    return [float(score) for score in scores / largest]
