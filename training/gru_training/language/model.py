"""The language model: embedding, stacked GRUs, projection, softmax that shares the embedding."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from gru_training.language.config import LanguageModelConfig
from keras_gru import GRU

_ROWS = 1024
"""Number of targets whose log-odds over all tokens are computed at once."""
_TARGET_PENALTY = -1e9
"""Value added to the log-odds of a drawn token that is the target itself."""


@keras.saving.register_keras_serializable(package="gru_training")
class LanguageModel(keras.Model):
    """A model from token ids to the log-odds of the next token.

    The rows of one table are both the input vectors of the tokens and the weights of the softmax
    (Inan et al. 2017, "Tying Word Vectors and Word Classifiers"). Dropout keeps its mask over all
    steps of a chunk (Gal and Ghahramani 2016, arXiv:1512.05287).

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
            embeddings_initializer=keras.initializers.RandomUniform(
                -_EMBEDDING_RANGE, _EMBEDDING_RANGE
            ),
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
        """Make a layer that returns its states at all steps, (B, T, U), and the last one."""
        return GRU(
            self.units,
            return_sequences=True,
            return_state=True,
            recurrent_dropout=self.recurrent_dropout,
            name=name,
        )

    def build(self, input_shape: Any = None) -> None:  # noqa: ARG002
        """Create the weights."""
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
        """Continue reading from a state.

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
        """Compute log-odds (..., V - 1) of all tokens but padding; place k is token k + 1."""
        table = tf.convert_to_tensor(self.embedding.embeddings)
        bias = tf.convert_to_tensor(self.output_bias)
        return tf.matmul(features, table[1:], transpose_b=True) + bias[1:]

    def call(self, token_ids: Any, training: bool = False) -> Any:
        """Compute log-odds (B, T, V - 1) of the token after each of (B, T), from the start."""
        features, _ = self.read(token_ids, training=training)
        return self.logits(features)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
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
    """Build a model of these sizes with new weights.

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


def full_cross_entropy(model: LanguageModel, features: Any, targets: Any) -> Any:
    """Compute the cross-entropy over all tokens, for training with small vocabularies.

    Args:
        model: Model with the softmax.
        features: Projected states, (N, E).
        targets: (N,) token ids.

    Returns:
        (N,) nats.
    """
    return tf.nn.sparse_softmax_cross_entropy_with_logits(targets - 1, model.logits(features))


def sampled_cross_entropy(
    model: LanguageModel, features: Any, targets: Any, samples: int, seed: Any
) -> Any:
    """Compute the cross-entropy over the target and log-uniformly drawn, shared tokens.

    Class k is drawn with probability log((k + 2) / (k + 1)) / log(C + 1) (Jean et al. 2015,
    arXiv:1412.2007, with the distribution of Zipf's law). The logarithm of the expected number of
    draws of a token is subtracted from its log-odds, so that the gradient approaches that of the
    whole softmax as the number of samples grows. Only the rows of the table that are used have a
    gradient.

    Args:
        model: Model with the softmax.
        features: Projected states, (N, E).
        targets: (N,) token ids.
        samples: S, how many are drawn, with replacement.
        seed: (2,) int, of which the draw is a function.

    Returns:
        (N,) nats; smaller than those over all tokens.
    """
    classes = model.vocabulary_size - 1
    uniform = tf.random.stateless_uniform((samples,), seed)
    span = tf.math.log(tf.cast(classes + 1, tf.float32))
    drawn = tf.cast(tf.exp(uniform * span), tf.int32) - 1
    drawn = tf.clip_by_value(drawn, 0, classes - 1) + 1  # rounding may lead beyond
    ids = tf.concat([targets, drawn], axis=0)
    table, bias = model.embedding.embeddings, model.output_bias
    rows = tf.gather(_resource(table), ids)  # (N + S, E)
    offsets = tf.gather(_resource(bias), ids) - _log_expected(ids, classes, samples)
    count = tf.shape(targets)[0]
    own = tf.reduce_sum(features * rows[:count], axis=1) + offsets[:count]
    others = tf.matmul(features, rows[count:], transpose_b=True) + offsets[count:]
    hits = tf.equal(targets[:, tf.newaxis], drawn)
    others += tf.where(hits, tf.constant(_TARGET_PENALTY, others.dtype), tf.zeros((), others.dtype))
    whole = tf.concat([own[:, tf.newaxis], others], axis=1)  # (N, 1 + S)
    return tf.reduce_logsumexp(whole, axis=1) - own


def target_log_probabilities(model: LanguageModel, features: Any, targets: Any) -> Any:
    """Compute log-probabilities of targets over all tokens, part by part.

    Args:
        model: Model with the softmax.
        features: Projected states, (N, E).
        targets: (N,) token ids; 0 has the log-probability of token 1, to be masked.

    Returns:
        (N,) nats.
    """
    count = tf.shape(targets)[0]
    parts = (count + _ROWS - 1) // _ROWS

    def part(number: Any) -> Any:
        chosen = slice(number * _ROWS, tf.minimum((number + 1) * _ROWS, count))
        classes = tf.maximum(targets[chosen] - 1, 0)
        logits = model.logits(features[chosen])
        found = -tf.nn.sparse_softmax_cross_entropy_with_logits(classes, logits)
        return tf.pad(found, [[0, _ROWS - tf.shape(found)[0]]])

    found = tf.map_fn(
        part, tf.range(parts), fn_output_signature=tf.TensorSpec((_ROWS,), tf.float32),
        parallel_iterations=1,
    )  # fmt: skip
    return tf.reshape(found, [-1])[:count]


def _log_expected(ids: Any, classes: int, samples: int) -> Any:
    """Return the logarithm of the expected number of draws of each token."""
    place = tf.cast(ids, tf.float32)  # class k is token k + 1
    share = tf.math.log1p(1 / place) / tf.math.log(tf.cast(classes + 1, tf.float32))
    return tf.math.log(share * samples)


def _resource(variable: Any) -> Any:
    """Return the variable of TensorFlow, whose gather has a sparse gradient."""
    return getattr(variable, "value", variable)


_EMBEDDING_RANGE = 0.05
"""Bound of the initial vectors, which are drawn between minus and plus this."""
