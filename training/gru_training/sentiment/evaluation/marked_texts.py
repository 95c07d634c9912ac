"""Texts whose words are marked by what they have to do with an answer: a page, and its numbers."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gru_training.runs.directory import RunWriter
from gru_training.sentiment.evaluation.explained import Explained

MARKED = "marked_texts.json"
MOST = 12
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = (
    "body{font:16px/1.7 system-ui,sans-serif;max-width:48em;margin:2em auto;padding:0 1em;"
    "color:#1b1b1b;background:#fff}p{margin:.3em 0 1.4em}span{border-radius:.2em;padding:0 .1em}"
    "h2{font-size:1em;margin:0}small{color:#555}"
)


class Marked(NamedTuple):
    """A test row with its words marked, and what is said of it."""

    explained: Explained
    answer: str
    """What its words are marked for, such as `billing 98.1 %`."""
    verdict: str
    """Whether that is right, or what would be."""


def write_marked_texts(writer: RunWriter, shown: Sequence[Marked]) -> None:
    """Write `explanations.html`, and the numbers that the report's page draws the same from.

    Args:
        writer: Of the run.
        shown: In this order; the first twelve.
    """
    shown = shown[:MOST]
    _write_page(shown, writer.path / "explanations.html")
    writer.write_json(
        MARKED,
        [
            {
                "answer": each.answer,
                "verdict": each.verdict,
                "tokens": each.explained.tokens,
                "scores": [round(float(score), 4) for score in each.explained.scores],
            }
            for each in shown
        ],
    )


def _write_page(shown: Sequence[Marked], path: Path) -> None:
    lines = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        "<title>Why these answers</title>",
        f"<style>{_STYLE}</style><h1>Why these answers</h1>",
        "<p>Words with a blue ground speak for the answer, words with an orange one against it "
        "(integrated gradients; the deeper the colour, the larger the share). The surest mistakes "
        "come first.</p>",
    ]
    lines += [
        f"<h2>{html.escape(each.answer)} <small>{html.escape(each.verdict)}</small></h2>"
        f"<p>{_marked(each.explained)}</p>"
        for each in shown
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _marked(one: Explained) -> str:
    largest = float(np.abs(one.scores).max(initial=0)) or 1.0
    words = []
    for token, score in zip(one.tokens, one.scores, strict=True):
        colour = "11,99,181" if score > 0 else "224,130,20"
        depth = abs(float(score)) / largest * 0.6
        words.append(
            f'<span style="background:rgba({colour},{depth:.2f})" title="{float(score):+.3f}">'
            f"{html.escape(token)}</span>"
        )
    return " ".join(words)
