"""The loss of a language model, over all tokens or over a few drawn ones.

Token ids count from 0, which is padding; classes count from 0, which is token 1, and the first ones
are the most frequent.
"""

from typing import Any

import tensorflow as tf

from gru_training.language.network.model import LanguageModel

_ROWS = 1024
"""Targets whose log-odds over all tokens are computed at once."""
_HIT = -1e9
"""Added to the log-odds of a drawn token that is the target itself."""


def full_cross_entropy(model: LanguageModel, features: Any, targets: Any) -> Any:
    """Cross-entropy over all tokens, for training with few of them.

    Args:
        model: Whose softmax.
        features: (N, E).
        targets: (N,) token ids.

    Returns:
        (N,) nats.
    """
    return tf.nn.sparse_softmax_cross_entropy_with_logits(targets - 1, model.logits(features))


def sampled_cross_entropy(
    model: LanguageModel, features: Any, targets: Any, samples: int, seed: Any
) -> Any:
    """Cross-entropy over the target and tokens drawn log-uniformly, the same for all targets.

    Class k is drawn with probability log((k + 2) / (k + 1)) / log(C + 1) (Jean et al. 2015,
    arXiv:1412.2007, with the distribution of Zipf's law). From each log-odds the logarithm of how
    often the token is expected to be drawn is taken off, so that the gradient is that of the whole
    softmax as the number of samples grows. Only the rows of the table that are used have a
    gradient.

    Args:
        model: Whose softmax.
        features: (N, E).
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
    others += tf.where(hits, tf.constant(_HIT, others.dtype), tf.zeros((), others.dtype))
    whole = tf.concat([own[:, tf.newaxis], others], axis=1)  # (N, 1 + S)
    return tf.reduce_logsumexp(whole, axis=1) - own


def target_log_probabilities(model: LanguageModel, features: Any, targets: Any) -> Any:
    """Log-probabilities of targets over all tokens, a part of them at a time.

    Args:
        model: Whose softmax.
        features: (N, E).
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
    """How often each token is drawn on the average, as a logarithm."""
    place = tf.cast(ids, tf.float32)  # class k is token k + 1
    share = tf.math.log1p(1 / place) / tf.math.log(tf.cast(classes + 1, tf.float32))
    return tf.math.log(share * samples)


def _resource(variable: Any) -> Any:
    """The variable of TensorFlow, whose gather has a sparse gradient."""
    return getattr(variable, "value", variable)
