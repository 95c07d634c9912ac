"""The words that a classifier knows."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.vocabulary.pretrained_words import (
    DEVIATION,
    PretrainedWords,
    pretrained_words,
)
from gru_training.words.pieces import word_pieces
from gru_training.words.tokens import Reading
from gru_training.words.vector_file import read_vectors
from gru_training.words.vocabulary import (
    PADDING,
    RESERVED,
    Vocabulary,
    build_vocabulary,
    index_tokens,
)
from gru_training.words.word_pieces import learn_pieces


class SentimentWords(NamedTuple):
    """A vocabulary, with vectors where there was pre-training."""

    vocabulary: Vocabulary
    vectors: np.ndarray | None
    """(V, D) float32, or None."""
    trained: int
    """Ids below it are of words in the training texts."""
    pieces: np.ndarray | None
    """(V, P) int32, `gru_training.words.pieces.word_pieces`, or None."""


def text_reading(data: SentimentData, config: SentimentConfig) -> Reading:
    """What the tokens of texts are, by default spaced words for data of one's own.

    Models that read in one direction go on from token to token, and pre-trained vectors are of
    words alone: these read plain words.
    """
    if config.data.pieces is not None:
        return "pieces"
    spacing = config.data.spacing
    if spacing is None:
        spacing = data.own and config.model.bidirectional and not config.pretraining.wanted
    return "spaced" if spacing else "words"


def sentiment_words(
    data: SentimentData,
    config: SentimentConfig,
    folder: Path,
    progress: Callable[[str], None] = lambda _: None,
    cleaned: bool = False,
    reading: Reading = "words",
) -> SentimentWords:
    """The words of the training texts, then further ones that were pre-trained; or their pieces.

    Args:
        data: The rows; held-out texts are kept out of the pre-training.
        config: Of the run.
        folder: Where pre-trained vectors are kept.
        progress: Told what is being done.
        cleaned: Whether texts are cleaned before they are read.
        reading: What the tokens of texts are.

    Raises:
        DataError: No word is left, or the texts to pre-train on cannot be used.
    """
    texts = data.train.texts
    if config.data.pieces is not None:
        progress("learning pieces of words")
        index = index_tokens(texts, cleaned, reading)
        vocabulary = Vocabulary(learn_pieces(index.tokens, index.counts, config.data.pieces))
        return SentimentWords(vocabulary, None, len(vocabulary), None)
    index = index_tokens(texts, cleaned, reading)
    own = build_vocabulary(index, config.data.max_vocabulary, config.data.min_count)
    vocabulary, vectors = own, None
    pretraining = config.pretraining
    if pretraining.word_vectors or pretraining.unlabelled is not None:
        held_out = [*data.validation.texts, *data.test.texts]
        learned = pretrained_words(pretraining, texts, held_out, folder, progress, index, cleaned)
        vocabulary, vectors = _with_pretrained(own, learned, config.training.seed)
    elif pretraining.vectors is not None:
        progress("reading the vectors")
        wanted = own.tokens[len(RESERVED) :]
        found = read_vectors(pretraining.vectors, wanted, pretraining.vector_words)
        scale = DEVIATION / float(np.sqrt(np.mean(found.vectors.astype(np.float64) ** 2)))
        learned = PretrainedWords(found.tokens, found.vectors * np.float32(scale), 0)
        vocabulary, vectors = _with_pretrained(own, learned, config.training.seed)
    pieces = word_pieces(vocabulary.tokens) if config.model.subwords else None
    return SentimentWords(vocabulary, vectors, len(own), pieces)


def _with_pretrained(
    own: Vocabulary, learned: PretrainedWords, seed: int
) -> tuple[Vocabulary, np.ndarray]:
    """Further words behind the known ones, and a vector for each; drawn for those not learned."""
    known = set(own.tokens)
    further = [token for token in learned.tokens if token not in known]
    vocabulary = Vocabulary([*own.tokens[len(RESERVED) :], *further])
    rng = np.random.default_rng(seed)
    deviation = 0.5 * learned.vectors.std()
    vectors = rng.normal(0, deviation, (len(vocabulary), learned.vectors.shape[1]))
    vectors[PADDING] = 0
    place = {token: row for row, token in enumerate(learned.tokens)}
    for row, token in enumerate(vocabulary.tokens):
        if token in place:
            vectors[row] = learned.vectors[place[token]]
    return vocabulary, vectors.astype(np.float32)
