"""Words and network of a language model, for a classifier to begin with."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.network.chunks import InChunks
from gru_training.sentiment.pretrained.settings import encoder_of
from gru_training.sentiment.vocabulary.words import SentimentWords
from gru_training.words.vocabulary import (
    RESERVED,
    UNKNOWN,
    Vocabulary,
    build_vocabulary,
    index_tokens,
)
from keras_gru import GRU


class PretrainedEncoder:
    """What the run of `--pretrained` has learned.

    Args:
        config: With one.

    Raises:
        TrainingError: The run cannot be used.
    """

    def __init__(self, config: SentimentConfig):
        self._weights = encoder_of(config).load()

    def words(
        self, texts: Sequence[str], config: SentimentConfig, cleaned: bool = False
    ) -> SentimentWords:
        """The words of the language model, and behind them those that the texts add.

        Args:
            texts: Of all training rows.
            config: How often a word of theirs must occur, and how many of them may be kept.
            cleaned: Whether texts are cleaned before they are read.
        """
        index = index_tokens(texts, cleaned)
        own = build_vocabulary(index, config.data.max_vocabulary, config.data.min_count)
        known = set(self._weights.words)
        further = [word for word in own.tokens[len(RESERVED) :] if word not in known]
        vocabulary = Vocabulary([*self._weights.words, *further])
        return SentimentWords(vocabulary, None, len(vocabulary), None)

    def set_weights(self, model: keras.Model) -> None:
        """Give a classifier the vectors and the GRUs.

        Words that the language model does not know begin with the unknown word's vector, as which
        it has read them.

        Args:
            model: Of `build_sentiment_model`, of these words and sizes.
        """
        table: Any = model.get_layer("embedding").embeddings
        vectors = self._weights.vectors
        further = np.broadcast_to(
            vectors[UNKNOWN], (table.shape[0] - len(vectors), vectors.shape[1])
        )
        table.assign(np.concatenate([vectors, further]))
        for layer, weights in zip(encoder_layers(model)[1:], self._weights.grus, strict=True):
            layer.set_weights(weights)


def encoder_layers(model: keras.Model) -> list[Any]:
    """The layers that come from a language model, the lowest first: embedding, GRUs."""
    kinds = keras.layers.Embedding | GRU | InChunks
    return [layer for layer in model.layers if isinstance(layer, kinds)]


def freeze(model: keras.Model) -> None:
    """Leave what comes from the language model as it is."""
    for layer in encoder_layers(model):
        layer.trainable = False
