"""The network of a text classifier, and the reading of long texts in chunks."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from scipy.optimize import minimize, minimize_scalar

from gru_serving.preprocessing.texts import PADDING, UNKNOWN
from gru_training.criterion import ERRORS_TO_BEAT, Judged, judged, standard_error
from gru_training.errors import ConfigError
from gru_training.loop.batches import LengthBucketedBatches
from gru_training.loop.twin import twin_of
from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.decision import negative_log_likelihood
from gru_training.sentiment.network.pooling import pooling_layer
from gru_training.words.embedding import WordEmbedding
from gru_training.words.ngrams import NgramLogits, NgramModel
from keras_gru import GRU


@keras.saving.register_keras_serializable(package="gru_training")
class InChunks(keras.layers.Wrapper):
    """Runs a recurrent layer over adjoining chunks of time, which become further rows.

    Every chunk begins with the layer's initial state, so T steps take the time of `size` steps, and
    nothing is carried between chunks: the next layer must pool over all steps.

    Args:
        layer: Layer from sequences (B, T, D), with a mask, to sequences (B, T, F).
        size: Steps of a chunk; the last one of a row may have fewer.
    """

    def __init__(self, layer: keras.Layer, size: int, **kwargs: Any):
        super().__init__(layer, **kwargs)
        if size < 1:
            raise ValueError(f"size must be at least 1, got {size}")
        self.size, self.supports_masking = size, True

    def call(self, sequence: Any, mask: Any = None, training: bool = False) -> Any:
        """Map (B, T, D) to (B, T, F); the mask is (B, T) bool, by default without padding."""
        if mask is None:
            mask = tf.ones(tf.shape(sequence)[:2], tf.bool)
        cut = self.cut(sequence), self.cut(mask)
        return self.join(self.layer(cut[0], mask=cut[1], training=training), sequence)

    def cut(self, values: Any) -> Any:
        """Cut (B, T, ...) into chunks (B · K, S, ...), S at most `size`, padded with zeros."""
        rows, steps, width, count = self._sizes(values)
        further = values.shape[2:]
        more = [[0, 0], [0, count * width - steps], *([[0, 0]] * len(further))]
        return tf.reshape(tf.pad(values, more), [rows * count, width, *further])

    def join(self, chunks: Any, values: Any) -> Any:
        """Join chunks (B · K, S, ...) to (B, T, ...), as long as `values`; the inverse of `cut`."""
        rows, steps, width, count = self._sizes(values)
        return tf.reshape(chunks, [rows, count * width, *chunks.shape[2:]])[:, :steps]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:  # noqa: ARG002
        """Return the mask of the input."""
        return mask

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> Any:
        """Return the output shape of the layer."""
        return self.layer.compute_output_shape(input_shape)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**super().get_config(), "size": self.size}

    def _sizes(self, values: Any) -> tuple[Any, Any, Any, Any]:
        """Return B, T, S and K; the end of a chunk does not depend on the other rows."""
        rows, steps = tf.unstack(tf.shape(values)[:2])
        width = tf.clip_by_value(steps, 1, self.size)
        return rows, steps, width, -(-steps // width)


_RATIO_SCALE = 0.3
"""Scale that makes most ratios about as large as a GRU's other inputs."""


@keras.saving.register_keras_serializable(package="gru_training")
class WordDropout(keras.layers.Layer):
    """Replaces random words by the unknown word in training; padding stays.

    Args:
        rate: Probability for each word, at least 0 and below 1.
        seed: Seed of the random numbers; None draws it from Keras' global seed.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"rate must be at least 0 and below 1, got {rate}")
        self.rate = rate
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
        """Return the shape of the input."""
        return input_shape


def build_sentiment_model(
    config: ClassifierConfig,
    vocabulary_size: int,
    class_count: int,
    fixed_vectors: np.ndarray | None = None,
    trained_words: int | None = None,
    pieces: np.ndarray | None = None,
) -> keras.Model:
    """Build a functional model from word ids to logits.

    Args:
        config: Sizes and dropout rates.
        vocabulary_size: V, number of ids, padding and unknown included.
        class_count: C.
        fixed_vectors: (V, D), pre-trained, which stay as they are; none by default.
        trained_words: Ids below it have a vector that is trained; all by default.
        pieces: (V, P) int32, those of each word; their vectors are added to the trained ones.

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
            config.embedding_size,
            0 if pieces is None else pieces.shape[1],
            name="embedding",
        )
        x = embedding(x)
        embedding.set_tables(fixed_vectors, pieces)
    x = keras.layers.Dropout(config.dropout, name="embedding_dropout")(x)
    for number in range(1, config.layers + 1):
        layer = GRU(config.units, return_sequences=True, name=f"gru_{number}")
        if config.bidirectional:
            layer = keras.layers.Bidirectional(layer, name=f"bidirectional_{number}")
        if config.chunk is not None:
            layer = InChunks(layer, config.chunk, name=f"chunks_{number}")
        x = layer(x)
    x = pooling_layer(config.pooling, config.bidirectional)(x)
    x = keras.layers.Dropout(config.dropout, name="pooled_dropout")(x)
    logits = keras.layers.Dense(class_count, dtype="float32", name="logits")(x)
    return keras.Model(token_ids, logits, name="sentiment")


def initialise_words(model: keras.Model, ratios: np.ndarray) -> None:
    """Set the first numbers of the learned word vectors, from which training continues.

    Args:
        model: Network of `build_sentiment_model`.
        ratios: (W, K), `gru_training.words.ngrams.word_ratios` of the words that have one.

    Raises:
        ConfigError: A learned vector has fewer than K numbers.
    """
    layer = model.get_layer("embedding")
    table: Any = layer.trained if isinstance(layer, WordEmbedding) else layer.embeddings
    if table.shape[1] < ratios.shape[1]:
        raise ConfigError(
            f"--embedding-size must be at least {ratios.shape[1]} with --word-ratios, one for each "
            f"class, got {table.shape[1]}"
        )
    values = table.numpy()
    values[:, : ratios.shape[1]] = _RATIO_SCALE * ratios
    table.assign(values)


EVALUATION_BATCH = 256
"""Number of rows per batch without gradients."""

_Logits = Callable[[tf.Tensor], tf.Tensor]
_traced: WeakKeyDictionary[keras.Model, _Logits] = WeakKeyDictionary()
"""Traced functions of models not trained in this process, which are called several times."""


def predict_logits(model: keras.Model, rows: Sequence[np.ndarray]) -> np.ndarray:
    """Compute logits (N, C) float32 of N rows of word ids, in the order of the rows."""
    with twin_of(model, new=False) as twin:
        if twin is not None:
            return _logits(twin.function("logits", partial(_trace, twin.model)), rows)
    if model not in _traced:
        _traced[model] = _trace(model)
    return _logits(_traced[model], rows)


def _logits(answer: _Logits, rows: Sequence[np.ndarray]) -> np.ndarray:
    batches = LengthBucketedBatches(rows, np.zeros(len(rows), np.int32), EVALUATION_BATCH)
    answers = np.concatenate(
        [answer(tf.constant(inputs)).numpy() for inputs, _ in batches.in_length_order()]
    )
    restored = np.empty_like(answers)
    restored[batches.length_order()] = answers
    return restored


def _trace(model: keras.Model) -> _Logits:
    """Trace a function of word ids (B, T) that does not keep the model alive."""
    weak = ref(model)

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)], autograph=False)
    def logits(token_ids: tf.Tensor) -> tf.Tensor:
        alive = weak()
        assert alive is not None
        return alive(token_ids, training=False)

    traced: _Logits = logits.get_concrete_function()
    return traced


Loss = Callable[[np.ndarray, np.ndarray], float]
_MAX_SCALE = 10.0
_RATIOS = np.linspace(0, 1, 11)
_FEW_ROWS = 500
"""Fewest held-out rows whose best shares are used unchanged."""


def fit_shares(
    labels: np.ndarray,
    gru_logits: np.ndarray,
    ngram_logits: np.ndarray,
    loss: Loss = negative_log_likelihood,
    score: Loss | None = None,
) -> tuple[float, float]:
    """Find the weights, non-negative, of the sum that does best on held-out rows.

    With fewer than `_FEW_ROWS` rows, the GRU has a weight of 0 unless it improves the regression by
    more than a standard error: a sum of both fits few rows better, and others worse.

    Args:
        labels: Targets of N rows that neither model was trained on.
        gru_logits: Logits of the GRU, (N, C).
        ngram_logits: Logits of the n-gram regression, (N, C).
        loss: Function of targets and logits to minimise.
        score: Function of targets and logits by which the ratio of the weights is chosen, if it
            is given; the loss then chooses their size, and among equals.

    Returns:
        Shares of the GRU and of the regression. The loss is convex; if every row can be right with
        shares of any size, they stay below 10.
    """
    bounds = (0.0, _MAX_SCALE)
    both = minimize(
        lambda s: loss(labels, s[0] * gru_logits + s[1] * ngram_logits),
        x0=(0.5, 0.5),
        bounds=(bounds, bounds),
        method="L-BFGS-B",
    ).x
    alone = minimize(
        lambda s: loss(labels, s[0] * ngram_logits), (0.5,), bounds=(bounds,), method="L-BFGS-B"
    ).x
    ngrams_alone = 0.0, float(alone[0])
    candidates = [(float(both[0]), float(both[1])), ngrams_alone]
    for ratio in () if score is None else _RATIOS:
        mixed = ratio * gru_logits + (1 - ratio) * ngram_logits
        size = minimize_scalar(
            lambda size, mixed=mixed: loss(labels, size * mixed),
            bounds=(1e-3, _MAX_SCALE),
            method="bounded",
        ).x
        candidates.append((float(size * ratio), float(size * (1 - ratio))))

    def summed(shares: tuple[float, float], rows: Any = slice(None)) -> np.ndarray:
        logits = shares[0] * gru_logits[rows] + shares[1] * ngram_logits[rows]
        return np.asarray(logits)

    def value(shares: tuple[float, float]) -> tuple[float, float]:
        least = -loss(labels, summed(shares))
        return (least if score is None else score(labels, summed(shares))), least

    def of_parts(shares: tuple[float, float]) -> Judged:
        of = loss if score is None else score
        return judged(lambda kept: of(labels[kept], summed(shares, kept)), len(labels))

    best = max(candidates, key=value)
    if len(labels) >= _FEW_ROWS:
        return best
    one, other = of_parts(best), of_parts(ngrams_alone)
    error = standard_error(one.left_out, other.left_out) if one.left_out else math.inf
    helps = abs(one.value - other.value) > ERRORS_TO_BEAT * error
    if helps or not ngrams_alone[1]:
        return best
    # If every row is right, no size is the best: the regression keeps its confidence.
    double = loss(labels, 2 * ngrams_alone[1] * ngram_logits)
    is_best = double >= loss(labels, ngrams_alone[1] * ngram_logits)
    return ngrams_alone if is_best else (0.0, 1.0)


def combine(model: keras.Model, ngrams: NgramModel, shares: tuple[float, float]) -> keras.Model:
    """Build a model that answers with the weighted sum of both logits.

    Args:
        model: Network from word ids (B, T) to logits (B, C).
        ngrams: Model of n-grams over the same ids and classes.
        shares: Shares of both, as `fit_shares` finds them.
    """
    count, classes = ngrams.weights.shape
    unit_length = ngrams.squares is not None
    layer = NgramLogits(
        count, classes, ngrams.vocabulary_size, ngrams.order, unit_length, name="ngrams"
    )
    counted = layer(model.input)
    layer.set_model(ngrams)
    parts = [
        keras.layers.Rescaling(share)(logits)
        for share, logits in zip(shares, (model.output, counted), strict=True)
    ]
    logits = keras.layers.Add(name="combined_logits")(parts)
    return keras.Model(model.input, logits, name="combined")


def shares_of(model: keras.Model) -> tuple[float, float]:
    """Return the weights of both logits in a model of `combine`; 1 and 0 for a GRU alone."""
    found = {"logits": 1.0, "ngrams": 0.0}
    for layer in model.layers:
        if isinstance(layer, keras.layers.Rescaling):
            found[layer.input._keras_history.operation.name] = float(layer.scale)
    return found["logits"], found["ngrams"]
