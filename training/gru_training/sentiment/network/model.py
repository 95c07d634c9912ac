"""The text classifier: embedding, GRU, pooling over time, dense layer.

Word dropout follows Iyyer et al. (2015), "Deep Unordered Composition Rivals Syntactic Methods for
Text Classification", section 3; here the dropped word is read as unknown, which also trains the
unknown word's vector.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from gru_training.errors import ConfigError
from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.network.chunks import InChunks
from gru_training.sentiment.network.pooling import pooling_layer
from gru_training.words.embedding import WordEmbedding
from gru_training.words.vocabulary import PADDING, UNKNOWN
from keras_gru import GRU

_RATIO_SCALE = 0.3
"""Makes most ratios about as large as a GRU's other inputs."""


@keras.saving.register_keras_serializable(package="gru_training")
class WordDropout(keras.layers.Layer):
    """Replaces words by the unknown word at random while training; padding stays.

    Args:
        rate: Probability for each word, at least 0 and below 1.
        seed: Of the random numbers; None draws it from Keras' global seed.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"rate must be at least 0 and below 1, got {rate}")
        self.rate, self.seed = rate, seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, token_ids: Any, training: bool = False) -> Any:
        """Map (B, T) integer ids to ids of the same shape."""
        if not training or self.rate == 0:
            return token_ids
        draw = keras.random.uniform(ops.shape(token_ids), seed=self.seed_generator)
        dropped = ops.logical_and(draw < self.rate, ops.not_equal(token_ids, PADDING))
        return ops.where(dropped, ops.full_like(token_ids, UNKNOWN), token_ids)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}


def build_sentiment_model(
    config: ClassifierConfig,
    vocabulary_size: int,
    class_count: int,
    fixed_vectors: np.ndarray | None = None,
    trained_words: int | None = None,
    pieces: np.ndarray | None = None,
    vectors_use: str = "both",
) -> keras.Model:
    """A functional model from word ids to logits.

    Args:
        config: Sizes and dropout rates.
        vocabulary_size: V, number of ids, padding and unknown included.
        class_count: C.
        fixed_vectors: (V, D), pre-trained; none by default.
        trained_words: Ids below it have a vector that is trained; all by default.
        pieces: (V, P) int32, those of each word; their vectors are added to the trained ones.
        vectors_use: Whether pre-trained vectors are `fixed`, with learned ones beside them
            (`both`), or `trained` on in place of those.

    Returns:
        A model from `token_ids` (B, T) int32, 0 = padding, to logits (B, C) float32.
    """
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = WordDropout(config.word_dropout, name="word_dropout")(token_ids)
    if fixed_vectors is None and pieces is None:
        x = keras.layers.Embedding(
            vocabulary_size, config.embedding_size, mask_zero=True, name="embedding"
        )(x)
    else:
        embedding = WordEmbedding(
            vocabulary_size,
            0 if fixed_vectors is None else fixed_vectors.shape[1],
            vocabulary_size if trained_words is None else trained_words,
            config.embedding_size if fixed_vectors is None or vectors_use == "both" else 0,
            0 if pieces is None else pieces.shape[1],
            vectors_use == "trained",
            name="embedding",
        )
        x = embedding(x)
        embedding.set_tables(fixed_vectors, pieces)
    dropout = keras.layers.SpatialDropout1D if config.variational else keras.layers.Dropout
    x = dropout(config.dropout, name="embedding_dropout")(x)
    for number in range(1, config.layers + 1):
        layer = GRU(
            config.units,
            return_sequences=True,
            recurrent_dropout=config.recurrent_dropout,
            name=f"gru_{number}",
        )
        if config.bidirectional:
            layer = keras.layers.Bidirectional(layer, name=f"bidirectional_{number}")
        if config.chunk is not None:
            layer = InChunks(layer, config.chunk, name=f"chunks_{number}")
        x = layer(x)
    x = pooling_layer(config.pooling, config.bidirectional, "pooling")(x)
    x = keras.layers.Dropout(config.dropout, name="pooled_dropout")(x)
    logits = keras.layers.Dense(class_count, dtype="float32", name="logits")(x)
    return keras.Model(token_ids, logits, name="sentiment")


def initialise_words(model: keras.Model, ratios: np.ndarray) -> None:
    """Set the first numbers of the learned word vectors, which training goes on from.

    Args:
        model: Of `build_sentiment_model`.
        ratios: (W, K), `gru_training.words.count_ratios.word_ratios` of the words that have one.

    Raises:
        ConfigError: A learned vector has fewer than K numbers.
    """
    layer = model.get_layer("embedding")
    table: Any = layer.trained if isinstance(layer, WordEmbedding) else layer.embeddings
    if table is None:
        raise ConfigError("--word-ratios needs learned vectors, which only --vectors-use both has")
    if table.shape[1] < ratios.shape[1]:
        raise ConfigError(
            f"--embedding-size must be at least {ratios.shape[1]} with --word-ratios, one for each "
            f"class, got {table.shape[1]}"
        )
    values = table.numpy()
    values[:, : ratios.shape[1]] = _RATIO_SCALE * ratios
    table.assign(values)
