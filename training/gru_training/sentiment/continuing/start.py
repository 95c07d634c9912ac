"""What a text classifier begins with that goes on from a run: its words, weights and n-grams."""

from collections.abc import Sequence
from typing import Any, cast

import keras
import numpy as np

from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.continuing.growth import grown_ngrams, grown_table, grown_vocabulary
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.targets.scale import Scale
from gru_training.sentiment.vocabulary.words import SentimentWords
from gru_training.words.embedding import WordEmbedding
from gru_training.words.ngram_layer import NgramLogits
from gru_training.words.ngram_model import NgramModel
from gru_training.words.pieces import word_pieces
from gru_training.words.vocabulary import RESERVED, index_tokens


class Start:
    """The model of a run, to go on from.

    Args:
        run: Whose.

    Raises:
        RunDirectoryError: The run cannot be loaded.
    """

    def __init__(self, run: SentimentRun):
        self.run, self.model = run, run.load_model()
        self._embedding: Any = self.model.get_layer("embedding")

    def words(self, texts: Sequence[str], config: SentimentConfig) -> SentimentWords:
        """The words of the run with their ids, and behind them those that the texts add.

        Learned pieces of words stay as they are: any word can be cut into them.

        Args:
            texts: Of all training rows.
            config: How often a word must occur, and how many may be kept.
        """
        known = self.run.vocabulary
        vocabulary = known
        if self.run.reading != "pieces":
            index = index_tokens(texts, self.run.cleaned, self.run.reading)
            room = config.data.max_vocabulary - (self._trained_words - len(RESERVED))
            vocabulary = grown_vocabulary(known, index, room, config.data.min_count)
        vectors = pieces = None
        if isinstance(self._embedding, WordEmbedding):
            if self._embedding.fixed is not None:
                vectors = grown_table(self._embedding.fixed.numpy(), len(vocabulary))
            if self._embedding.pieces is not None:
                pieces = word_pieces(vocabulary.tokens)
        return SentimentWords(vocabulary, vectors, len(vocabulary), pieces)

    @property
    def scale(self) -> Scale | None:
        """Of a number to estimate, in whose units the network answers."""
        return self.run.scale if self.run.kind == "number" else None

    @property
    def penalty(self) -> float | None:
        """Of the n-gram regression, where there is one that says it."""
        return self.run.metrics.get("ngram_penalty")

    @property
    def _trained_words(self) -> int:
        layer = self._embedding
        return layer.trained_words if isinstance(layer, WordEmbedding) else layer.input_dim

    def set_weights(self, model: keras.Model, odds: np.ndarray) -> None:
        """Give a network of the same settings the weights of the run's.

        New words begin with the unknown word's vector, as which they were read before. The logit of
        a new class or label begins with its odds, whatever the text.

        Args:
            model: Of `build_sentiment_model`, of at least as many words and outputs.
            odds: (C,), logarithms of the odds of each class or label in the training rows.
        """
        for layer in model.layers:
            old = self.model.get_layer(layer.name)
            if layer.name == "embedding":
                _set_vectors(layer, old)
            elif layer.name == "logits":
                _set_outputs(layer, old, odds)
            else:
                layer.set_weights(old.get_weights())

    def ngrams(self, vocabulary_size: int, odds: np.ndarray) -> NgramModel:
        """The n-gram regression of a combined model, over more words and classes.

        Args:
            vocabulary_size: V.
            odds: As of `set_weights`.
        """
        layer = next(each for each in self.model.layers if isinstance(each, NgramLogits))
        model = NgramModel(
            layer.vocabulary_size,
            layer.keys.numpy(),
            layer.values.numpy(),
            layer.bias.numpy(),
            self.penalty,
            layer.order,
        )
        return grown_ngrams(model, vocabulary_size, odds)


def log_odds(members: np.ndarray) -> np.ndarray:
    """Of each class or label, (C,) float32, from which of N rows have it, (N, C) bool."""
    held = members.sum(axis=0)
    return np.asarray(np.log((held + 1) / (len(members) - held + 1)), np.float32)


def _set_vectors(layer: Any, old: Any) -> None:
    if not isinstance(layer, WordEmbedding):
        layer.embeddings.assign(grown_table(old.embeddings.numpy(), layer.input_dim))
        return
    for name in ("fixed", "trained"):
        table = getattr(layer, name)
        if table is not None:
            table.assign(grown_table(getattr(old, name).numpy(), table.shape[0]))
    if layer.pieces is not None:
        layer.piece_vectors.assign(old.piece_vectors)


def _set_outputs(layer: keras.layers.Dense, old: keras.layers.Dense, odds: np.ndarray) -> None:
    kernel, bias = (cast(np.ndarray, value) for value in old.get_weights())
    further = np.zeros((len(kernel), layer.units - old.units), kernel.dtype)
    layer.set_weights(
        [np.concatenate([kernel, further], 1), np.concatenate([bias, odds[old.units :]])]
    )
