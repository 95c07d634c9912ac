"""Why a classifier answers as it does: words that matter most, and texts with words marked."""

import html
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from training.sentiment.evaluation.trained import TrainedClassifier
from training.sentiment.network.attribution import Attribution, against_others

_MOST_ROWS, _MOST_TOKENS = 300, 20_000
_BATCH = 32
_WORDS = 8
_FEWEST_ROWS = 2
"""In which a word must occur to count for a class."""
_TEXTS = 12
_STYLE = (
    "body{font:16px/1.7 system-ui,sans-serif;max-width:48em;margin:2em auto;padding:0 1em;"
    "color:#1b1b1b;background:#fff}p{margin:.3em 0 1.4em}span{border-radius:.2em;padding:0 .1em}"
    "h2{font-size:1em;margin:0}small{color:#555}"
)


class Explained(NamedTuple):
    """A test row and the share of each of its words in the answer, in logits."""

    row: int
    tokens: list[str]
    scores: np.ndarray
    """(T,), above 0 for words that speak for the answer."""


def explain_rows(
    trained: TrainedClassifier, predicted: np.ndarray, first: Sequence[int]
) -> list[Explained]:
    """Explain test rows: those asked for, then others as long as it takes little time.

    Args:
        trained: A model that answers classes.
        predicted: (N,) class numbers that it answers to the test rows.
        first: Rows to explain before others.
    """
    ids = trained.rows["test"].ids
    chosen, tokens = list[int](), 0
    for row in dict.fromkeys([*first, *range(len(ids))]):
        tokens += len(ids[row])
        if len(chosen) == _MOST_ROWS or (tokens > _MOST_TOKENS and chosen):
            break
        chosen.append(row)
    shares = None if trained.alone is None else trained.alone.shares
    attribution = Attribution(trained.model, shares)
    chosen.sort(key=lambda row: len(ids[row]))
    found = []
    for start in range(0, len(chosen), _BATCH):
        rows = chosen[start : start + _BATCH]
        padded = np.zeros((len(rows), max(len(ids[row]) for row in rows)), np.int32)
        for place, row in enumerate(rows):
            padded[place, : len(ids[row])] = ids[row]
        weights = against_others(predicted[rows], len(trained.data.classes))
        scores = attribution(padded, weights)
        texts = tf.constant([trained.data.test.texts[row] for row in rows])
        words = trained.preprocessor.tokens(texts).to_list()
        found += [
            Explained(row, [word.decode("utf-8", "replace") for word in of], scores[k, : len(of)])
            for k, (row, of) in enumerate(zip(rows, words, strict=True))
        ]
    return sorted(found, key=lambda one: one.row)


def deciding_words(
    explained: Sequence[Explained], predicted: np.ndarray, classes: Sequence[str]
) -> dict[str, list[str]]:
    """Of each class the words that spoke for it most in the texts that it was answered to."""
    sums: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    rows: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for one in explained:
        answer = int(predicted[one.row])
        for token, score in zip(one.tokens, one.scores, strict=True):
            sums[answer][token] += float(score)
            rows[answer][token].add(one.row)
    found = {}
    for number, name in enumerate(classes):
        of = sums[number]
        words = [
            word
            for word in sorted(of, key=lambda word: (-of[word], word))
            if of[word] > 0
            and len(rows[number][word]) >= _FEWEST_ROWS
            and any(map(str.isalnum, word))
        ]
        found[name] = words[:_WORDS]
    return found


def write_marked_texts(
    explained: Sequence[Explained],
    shown: Sequence[int],
    predictions: Sequence[Mapping[str, object]],
    path: Path,
) -> None:
    """Write a page with texts whose words are marked: blue for the answer, orange against it.

    Args:
        explained: Test rows.
        shown: Which of them, in this order; the first twelve.
        predictions: All test rows: `label`, `predicted`, `scores`.
        path: Of the page.
    """
    by_row = {one.row: one for one in explained}
    lines = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Why these answers</title>",
        f"<style>{_STYLE}</style><h1>Why these answers</h1>",
        "<p>Words with a blue ground speak for the answer, words with an orange one against it "
        "(integrated gradients; the deeper the colour, the larger the share). The surest mistakes "
        "come first.</p>",
    ]
    for row in [row for row in shown if row in by_row][:_TEXTS]:
        one, prediction = by_row[row], predictions[row]
        scores = prediction["scores"]
        assert isinstance(scores, list)
        right = prediction["label"] == prediction["predicted"]
        verdict = "right" if right else f"wrong, it is {html.escape(str(prediction['label']))}"
        lines.append(
            f"<h2>{html.escape(str(prediction['predicted']))} {max(scores):.1%} "
            f"<small>{verdict}</small></h2><p>{_marked(one)}</p>"
        )
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
