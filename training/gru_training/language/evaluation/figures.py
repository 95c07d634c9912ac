"""Perplexity and bits per character, of the model and of simple ones beside it."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gru_training.language.baselines.kneser_ney import KneserNey
from gru_training.language.reading import END_ID, ReadDocuments, TokenPart

ORDERS = {"words": 5, "characters": 6}
"""Tokens in the longest n-gram."""


class Figures(NamedTuple):
    """How well a model predicts held-out documents."""

    perplexity: float
    """e to the mean cost of a token in nats; the ends of documents are tokens, too, and so is
    `unknown`, whichever word it stands for."""
    bits_per_character: float
    """All bits, those for the letters of unknown words too, by the characters of the text."""


def figures_of(nats: float, part: TokenPart, read: ReadDocuments) -> Figures:
    """The figures of a part whose tokens cost so much on the average.

    Args:
        nats: Mean over the tokens of the part.
        part: The documents.
        read: Of which the part is one.
    """
    bits = nats * part.tokens / math.log(2) + read.spelling.bits_of(part.unknown)
    return Figures(math.exp(nats), bits / part.characters)


def baseline_figures(read: ReadDocuments) -> dict[str, dict[str, Figures]]:
    """Figures of simple models, by their name and the part that is held out."""
    train = _with_ends(read.train.rows)
    size = len(read.vocabulary)
    # Each token once more than it occurs: one that does not occur has a probability, too.
    counts = np.bincount(np.concatenate(train), minlength=size)[1:] + 1
    unigram = np.concatenate([[np.nan], np.log(counts / counts.sum())])
    order = ORDERS[read.unit]
    kneser_ney = KneserNey(train, size, order)
    found: dict[str, dict[str, Figures]] = {"unigram": {}, f"Kneser-Ney {order}-gram": {}}
    for name in ("validation", "test"):
        part = read.parts()[name]
        rows = _with_ends(part.rows)
        of_part = {
            "unigram": -unigram[np.concatenate(rows)].mean(),
            f"Kneser-Ney {order}-gram": -np.log(kneser_ney.probabilities(rows)).mean(),
        }
        for model, nats in of_part.items():
            found[model][name] = figures_of(float(nats), part, read)
    return found


def as_json(figures: Mapping[str, Figures]) -> dict[str, dict[str, float]]:
    """Figures by part, as `metrics.json` holds them."""
    return {part: each._asdict() for part, each in figures.items()}


def _with_ends(rows: Sequence[np.ndarray]) -> list[np.ndarray]:
    end = np.array([END_ID], np.int32)
    return [np.concatenate([row, end]) for row in rows]
