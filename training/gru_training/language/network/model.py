"""The language model: embedding, stacked GRUs, projection, softmax that shares the embedding."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from gru_training.language.config import LanguageModelConfig
from keras_gru import GRU

_UNIFORM = 0.05
"""Vectors begin between plus and minus this."""


@keras.saving.register_keras_serializable(package="gru_training")
class LanguageModel(keras.Model):
    """From token ids to the log-odds of what comes next.

    The rows of one table are the vectors of the tokens on their way in and the weights of the
    softmax on the way out (Inan et al. 2017, "Tying Word Vectors and Word Classifiers"). Dropout
    keeps its mask over all steps of a chunk (Gal and Ghahramani 2016, arXiv:1512.05287).

    V tokens, E the embedding size, U units, L layers.

    Args:
        vocabulary_size: V, padding included, which is never predicted.
        embedding_size: E.
        units: U.
        layers: L.
        dropout: Share of features dropped before, between and after the GRUs.
        recurrent_dropout: Share of the state's features dropped on the way to the next step.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        units: int,
        layers: int = 1,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size, self.embedding_size = vocabulary_size, embedding_size
        self.units, self.layer_count = units, layers
        self.dropout, self.recurrent_dropout = dropout, recurrent_dropout
        self.embedding = keras.layers.Embedding(
            vocabulary_size,
            embedding_size,
            embeddings_initializer=keras.initializers.RandomUniform(-_UNIFORM, _UNIFORM),
            name="embedding",
        )
        self.grus = [self.make_gru(f"gru_{number}") for number in range(1, layers + 1)]
        self.drops = [
            keras.layers.SpatialDropout1D(dropout, name=f"dropout_{number}")
            for number in range(layers + 1)
        ]
        self.projection = keras.layers.Dense(embedding_size, name="projection")
        self.output_bias = self.add_weight((vocabulary_size,), "zeros", name="output_bias")
        self.build((None, None))

    def make_gru(self, name: str) -> Any:
        """A layer that returns its states at all steps, (B, T, U), and the last one."""
        return GRU(
            self.units,
            return_sequences=True,
            return_state=True,
            recurrent_dropout=self.recurrent_dropout,
            name=name,
        )

    def build(self, input_shape: Any = None) -> None:  # noqa: ARG002
        """Make the weights."""
        self.embedding.build((None, None))
        width = self.embedding_size
        for gru, drop in zip(self.grus, self.drops[:-1], strict=True):
            drop.build((None, None, width))
            gru.build((None, None, width))
            width = self.units
        self.drops[-1].build((None, None, width))
        self.projection.build((None, None, width))
        self.built = True

    def read(
        self,
        token_ids: Any,
        states: Sequence[Any] | None = None,
        training: bool = False,
        mask: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Read on from a state.

        Args:
            token_ids: (B, T) int32.
            states: L times (B, U); zeros by default.
            training: Whether dropout applies.
            mask: (B, T) bool; steps to pass over. None passes over nothing, not even padding.

        Returns:
            Features (B, T, E), whose products with the table are the log-odds of the next token;
            and the states after the last step, L times (B, U).
        """
        x = self.embedding(token_ids)
        after = []
        for number, gru in enumerate(self.grus):
            x = self.drops[number](x, training=training)
            before = None if states is None else states[number]
            x, state = gru(x, initial_state=before, mask=mask, training=training)
            after.append(state)
        return self.projection(self.drops[-1](x, training=training)), after

    def logits(self, features: Any) -> Any:
        """Log-odds (..., V - 1) of all tokens but padding: place k is of token k + 1."""
        table = tf.convert_to_tensor(self.embedding.embeddings)
        bias = tf.convert_to_tensor(self.output_bias)
        return tf.matmul(features, table[1:], transpose_b=True) + bias[1:]

    def call(self, token_ids: Any, training: bool = False) -> Any:
        """Log-odds (B, T, V - 1) of what follows each token of (B, T), from a new beginning."""
        features, _ = self.read(token_ids, training=training)
        return self.logits(features)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_size": self.embedding_size,
            "units": self.units,
            "layers": self.layer_count,
            "dropout": self.dropout,
            "recurrent_dropout": self.recurrent_dropout,
        }


def build_language_model(config: LanguageModelConfig, vocabulary_size: int) -> LanguageModel:
    """A model of these sizes, with weights of its own.

    Args:
        config: Sizes and dropout rates.
        vocabulary_size: V, number of ids, padding and unknown included.
    """
    return LanguageModel(
        vocabulary_size,
        config.embedding_size,
        config.units,
        config.layers,
        config.dropout,
        config.recurrent_dropout,
        name="language",
    )
