"""The gates along a few test rows, as a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from matplotlib.figure import Figure, SubFigure
from scipy.special import softmax

from gru_training.plots.picture import plain_label, save_figure
from gru_training.sentiment.network.steps import SentimentSteps
from gru_training.words.vocabulary import TextPreprocessor
from keras_gru import portable

_EACH, _SHORTEST, _LONGEST = 2, 3, 40
_MOST_CURVES = 5
_DIRECTIONS = ("→", "←")


class ReadText(NamedTuple):
    """A text of T tokens, read by L layers in R directions of U units."""

    label: str
    tokens: list[str]
    update_gate: np.ndarray
    """z, (T, L, R, U)."""
    reset_gate: np.ndarray
    """r, (T, L, R, U)."""
    scores: np.ndarray
    """Class probabilities of the text up to each token, (T, C)."""


def choose_rows(scores: np.ndarray, labels: np.ndarray, lengths: np.ndarray) -> list[int]:
    """Choose answers to texts short enough to be drawn: the most confident right and wrong ones.

    Of each kind these are the most confident of every predicted class, at most two.

    Args:
        scores: (N, C) class probabilities.
        labels: (N,) class numbers.
        lengths: (N,) tokens.
    """
    drawable = (lengths >= _SHORTEST) & (lengths <= _LONGEST)
    predicted = scores.argmax(axis=1)
    surest = np.argsort(-scores.max(axis=1), kind="stable")
    chosen: list[int] = []
    for kind in (predicted == labels, predicted != labels):
        rows = surest[(kind & drawable)[surest]]
        _, first = np.unique(predicted[rows], return_index=True)
        chosen += rows[np.sort(first)[:_EACH]].tolist()
    return chosen


def read_texts(
    model: keras.Model,
    preprocessor: TextPreprocessor,
    temperature: float,
    rows: Sequence[Mapping[str, Any]],
) -> list[ReadText]:
    """Read texts token by token.

    Args:
        model: Network of `gru_training.sentiment.network.model.build_sentiment_model`.
        preprocessor: Preprocessor from texts to the model's word ids.
        temperature: Divisor of the model's logits.
        rows: Rows, each with `text` and `label`.
    """
    texts = tf.constant([row["text"] for row in rows])
    tokens = preprocessor.tokens(texts).to_list()
    ids = preprocessor(texts)
    with portable():  # XLA would compile for the lengths of these few texts
        unroll = tf.function(SentimentSteps(model).unroll, autograph=False)
        shown = unroll.get_concrete_function(tf.TensorSpec((None, None), tf.int32))(ids)
    scores = softmax(shown.logits.numpy() / np.float32(temperature), axis=-1)
    return [
        ReadText(
            row["label"],
            [token.decode("utf-8", "replace") for token in words],
            shown.update_gate[number, : len(words)].numpy(),
            shown.reset_gate[number, : len(words)].numpy(),
            scores[number, : len(words)],
        )
        for number, (row, words) in enumerate(zip(rows, tokens, strict=True))
    ]


def draw_gates(texts: Sequence[ReadText], classes: Sequence[str], path: Path) -> None:
    """Draw for each text both gates of all units over the tokens, above the answers so far.

    Args:
        texts: Texts to draw, below each other.
        classes: C names.
        path: The PNG file.
    """
    longest = max(len(text.tokens) for text in texts)
    figure = Figure(
        figsize=(float(np.clip(2.5 + 0.32 * longest, 7, 16)), 5.6 * len(texts)),
        dpi=100,
        layout="constrained",
    )
    for part, text in zip(figure.subfigures(len(texts), 1, squeeze=False)[:, 0], texts,
                          strict=True):  # fmt: skip
        _draw_text(part, text, classes)
    save_figure(figure, path)


def _draw_text(figure: SubFigure, text: ReadText, classes: Sequence[str]) -> None:
    steps = len(text.tokens)
    update, reset, answers = figure.subplots(3, 1, sharex=True, height_ratios=(3, 3, 2.5))
    layers, directions, units = text.update_gate.shape[1:]
    order = text.update_gate.mean(axis=0).argsort(axis=-1)[np.newaxis]  # (1, L, R, U)
    for axes, name, gate in ((update, "update", text.update_gate),
                             (reset, "reset", text.reset_gate)):  # fmt: skip
        rows = np.take_along_axis(gate, order, axis=-1).reshape(steps, -1).T  # (L·R·U, T)
        image = axes.imshow(rows, aspect="auto", cmap="viridis", vmin=0, vmax=1,
                            interpolation="nearest")  # fmt: skip
        for border in range(units, len(rows), units):
            axes.axhline(border - 0.5, color="white", linewidth=1.2)
        names = [
            (f"layer {layer + 1} " if layers > 1 else "")
            + (_DIRECTIONS[direction] if directions > 1 else "")
            for layer in range(layers)
            for direction in range(directions)
        ]
        axes.set_yticks(np.arange(len(names)) * units + (units - 1) / 2, names)
        axes.tick_params(axis="y", length=0)
        axes.set_ylabel(f"{name} gate")
    figure.colorbar(image, ax=[update, reset], fraction=0.03, pad=0.01)
    best, said = int(text.scores[-1].argmax()), float(text.scores[-1].max())
    drawn = list(range(len(classes)))
    if len(classes) > _MOST_CURVES:
        drawn = sorted({best, classes.index(text.label)})
    for number in drawn:
        answers.plot(range(steps), text.scores[:, number], ".-", label=plain_label(classes[number]))
    answers.set(ylim=(-0.04, 1.04), xlim=(-0.5, steps - 0.5), ylabel="probability")
    answers.grid(alpha=0.25)
    answers.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    answers.set_xticks(range(steps), map(plain_label, text.tokens), rotation=60, ha="right",
                       rotation_mode="anchor")  # fmt: skip
    verdict = "right" if classes[best] == text.label else f"wrong, it is {plain_label(text.label)}"
    figure.suptitle(f"{plain_label(classes[best])} {said:.2%}: {verdict}", x=0.01, ha="left",
                    fontsize="medium")  # fmt: skip
