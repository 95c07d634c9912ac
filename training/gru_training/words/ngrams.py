"""Logistic regression on weighted n-grams, and the same as a layer of a network.

After Wang and Manning (2012), "Baselines and Bigrams: Simple, Good Sentiment and Topic
Classification", section 2: which n-grams a text holds, weighted by naive-Bayes log-count ratios
(section 2.1, with counts of texts and one added to each), with logistic regression in place of the
support vector machine. Trigrams, where they are asked for, as in Mesnil et al. (2014), "Ensemble of
Generative and Discriminative Techniques for Sentiment Analysis of Movie Reviews"
(arXiv:1412.5335), but without those of a single text, which are most of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import scipy.sparse as sp
import tensorflow as tf
from sklearn.linear_model import LogisticRegression, Ridge

from gru_serving.preprocessing.texts import PADDING, RESERVED
from gru_training.errors import ConfigError
from gru_training.words.vocabulary import TokenRows, members_of, word_counts


def log_count_ratios(held: sp.csr_matrix, is_class: np.ndarray) -> np.ndarray:
    """The ratio of each feature.

    Args:
        held: (N, K) of 0 and 1, which features each text holds.
        is_class: (N,) bool.

    Returns:
        (K,), above 0 for features of the class, below for those of the rest.
    """
    members = np.asarray(held[is_class].sum(axis=0)).ravel()
    p, q = 1 + members, 1 + np.asarray(held.sum(axis=0)).ravel() - members
    return np.asarray(np.log((p / p.sum()) / (q / q.sum())))


def word_ratios(rows: TokenRows, classes: int, words: int) -> np.ndarray:
    """The ratios of words.

    Args:
        rows: The training texts.
        classes: C.
        words: W; ids from there on are passed over.

    Returns:
        (W, C), of each class against the rest; of two classes only the second, (W, 1). Zeros for
        the reserved ids.
    """
    held = (word_counts(rows.ids, words) > 0).astype(np.float64)
    of = [1] if classes == 2 and rows.labels.ndim == 1 else range(classes)
    ratios = np.stack([log_count_ratios(held, members_of(rows.labels, k)) for k in of], axis=1)
    ratios[: len(RESERVED)] = 0.0
    return ratios


_INVERSE_PENALTIES = (0.03, 0.3, 3.0)
_RIDGE_PENALTIES = (1.0, 10.0, 100.0)
_ONE_OF_MANY = {"solver": "liblinear", "dual": True, "intercept_scaling": 10.0, "tol": 0.1}
"""Settings of scikit-learn's regression where there are more than two classes.

With 104 classes of 25 rows dual coordinate descent takes a tenth of L-BFGS' time, and is right as
often; it penalises the intercept, ten times less than a weight.
"""
MOST_WEIGHTS = 2**26
"""Number of weights, over all classes, that a regression may have: 256 MiB as float32."""
_LARGEST_KEY = np.iinfo(np.int64).max
Score = Callable[[np.ndarray, np.ndarray], float]
"""Score of labels and logits; more is better."""


def accuracy_score(labels: np.ndarray, logits: np.ndarray) -> float:
    """Share of the rows (N,) whose likeliest class is the right one."""
    return float(np.mean(logits.argmax(axis=1) == labels))


@dataclass(frozen=True)
class NgramModel:
    """A linear model over the n-grams of the training rows."""

    vocabulary_size: int
    """V, which the keys depend on."""
    keys: np.ndarray
    """(K,) int64, ascending: a word's id; V + id · V + id of two words in succession; of three
    V + V² + (id · V + id) · V + id."""
    weights: np.ndarray
    """(K, C) float32."""
    bias: np.ndarray
    """(C,) float32."""
    penalty: float | None = None
    """Penalty of the regressions, where it is known."""
    order: int = 2
    """Words in the longest n-grams."""

    def indicators(self, rows: Sequence[np.ndarray]) -> sp.csr_matrix:
        """Mark the n-grams that each of N rows of word ids holds, (N, K) of 0 and 1."""
        return _indicators(rows, self.vocabulary_size, self.order, self.keys)

    def logits(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """(N, C) float32, of N rows of word ids."""
        return np.asarray(self.indicators(rows) @ self.weights + self.bias, np.float32)


def fit_ngrams(
    train: TokenRows,
    validation: TokenRows,
    classes: int,
    vocabulary_size: int,
    score: Score = accuracy_score,
    class_weights: np.ndarray | None = None,
    order: int = 2,
) -> NgramModel:
    """Fit one logistic regression, or one per class against the rest where there are more.

    Args:
        train: Rows of word ids to learn from, which may have weights; of several labels each gets
            a regression.
        validation: Rows on which the penalty is chosen.
        classes: C.
        vocabulary_size: V, number of ids.
        score: Score of labels and logits; the penalty of the greatest is chosen.
        class_weights: Weight of each training row's class, (N,), beside that of the row; 1 each by
            default.
        order: Words in the longest n-grams.

    Raises:
        ConfigError: The vocabulary is too large for the order, see `require_keys`.
    """
    row_weights = train.row_weights
    if class_weights is not None:
        row_weights = class_weights if row_weights is None else class_weights * row_weights

    def fit(x: sp.csr_matrix, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        if classes == 2 and train.labels.ndim == 1:
            weights, bias = _one_against_rest(x, train.labels == 1, penalty, row_weights)
            # Half of it for either class: their difference is the regression's own answer.
            return np.stack([-weights, weights], 1) / 2, np.array([-bias, bias]) / 2
        of_all, biases = np.empty((x.shape[1], classes), np.float32), np.empty(classes)
        for k in range(classes):
            members = members_of(train.labels, k)
            of_all[:, k], biases[k] = _one_against_rest(
                x, members, penalty, row_weights, **_ONE_OF_MANY
            )
        return of_all, biases

    keys = _keys_of(train, vocabulary_size, order, MOST_WEIGHTS // classes)
    return _best(train, validation, vocabulary_size, order, keys, _INVERSE_PENALTIES, fit, score)


def fit_ngram_numbers(
    train: TokenRows,
    validation: TokenRows,
    vocabulary_size: int,
    score: Score,
    order: int = 2,
) -> NgramModel:
    """Fit a ridge regression of numbers on n-grams.

    Args:
        train: Rows of word ids, which may have weights, and numbers in standard units.
        validation: Rows on which the penalty is chosen.
        vocabulary_size: V, number of ids.
        score: Score of numbers and answers (N, 1); the penalty of the greatest is chosen.
        order: Words in the longest n-grams.

    Raises:
        ConfigError: The vocabulary is too large for the order, see `require_keys`.
    """

    def fit(x: sp.csr_matrix, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        model = Ridge(penalty, solver="sparse_cg").fit(x, train.labels, train.row_weights)
        return model.coef_[:, np.newaxis], np.array([model.intercept_])

    keys = _keys_of(train, vocabulary_size, order, MOST_WEIGHTS)
    return _best(train, validation, vocabulary_size, order, keys, _RIDGE_PENALTIES, fit, score)


def first_key(vocabulary_size: int, length: int) -> int:
    """The key that those of n-grams of so many words begin at."""
    return sum(vocabulary_size**shorter for shorter in range(1, length))


def require_keys(vocabulary_size: int, order: int) -> None:
    """See that all n-grams have a key of 64 bits.

    Raises:
        ConfigError: There are too many words for n-grams of this length.
    """
    if first_key(vocabulary_size, order + 1) > _LARGEST_KEY:
        most = math.ceil(_LARGEST_KEY ** (1 / order))
        while first_key(most, order + 1) > _LARGEST_KEY:
            most -= 1
        raise ConfigError(
            f"--ngram-order {order} is for at most {most:,} words, got {vocabulary_size:,}"
        )


def _best(
    train: TokenRows,
    validation: TokenRows,
    vocabulary_size: int,
    order: int,
    keys: np.ndarray,
    penalties: Sequence[float],
    fit: Callable[[sp.csr_matrix, float], tuple[np.ndarray, np.ndarray]],
    score: Score,
) -> NgramModel:
    """Choose the model whose penalty scores best on the validation rows; the first of equals.

    Args:
        train: Rows whose n-grams count.
        validation: Held-out rows.
        vocabulary_size: V.
        order: Words in the longest n-grams.
        keys: Keys of the n-grams that count, (K,), ascending.
        penalties: Penalties to choose from.
        fit: Function from the n-grams that the training rows hold, (N, K), and a penalty to
            weights (K, C) and biases (C,).
        score: Score of labels and logits; more is better.
    """
    x = _indicators(train.ids, vocabulary_size, order, keys)
    x_validation = _indicators(validation.ids, vocabulary_size, order, keys)
    best: tuple[float, NgramModel] | None = None
    for penalty in penalties:
        weights, bias = fit(x, penalty)
        value = score(validation.labels, x_validation @ weights + bias)
        if best is None or value > best[0]:
            weights, bias = weights.astype(np.float32), bias.astype(np.float32)
            best = value, NgramModel(vocabulary_size, keys, weights, bias, penalty, order)
    assert best is not None
    return best[1]


def _keys_of(train: TokenRows, vocabulary_size: int, order: int, most: int) -> np.ndarray:
    """Return the keys of the rows; of n-grams of three words or more, those in several rows.

    Where they are more than `most`, those in the most rows.
    """
    require_keys(vocabulary_size, order)
    held = np.concatenate([_keys(row, vocabulary_size, order) for row in train.ids])
    keys, counts = np.unique(held, return_counts=True)
    counted = (keys < first_key(vocabulary_size, 3)) | (counts > 1)
    keys, counts = keys[counted], counts[counted]
    if len(keys) > most:
        keys = np.sort(keys[np.argsort(-counts, kind="stable")[:most]])
    return np.asarray(keys)


def _one_against_rest(
    x: sp.csr_matrix,
    is_class: np.ndarray,
    penalty: float,
    row_weights: np.ndarray | None,
    **solver: Any,
) -> tuple[np.ndarray, float]:
    """Fit the weights (K,) and the bias of the regression of one class."""
    if is_class.all() or not is_class.any():  # every training row has the label, or none
        bias = float(np.log((is_class.sum() + 1) / (len(is_class) - is_class.sum() + 1)))
        return np.zeros(x.shape[1]), bias
    ratio = log_count_ratios(x, is_class)
    model = LogisticRegression(C=penalty, max_iter=5000, random_state=0, **solver)
    weighted = sp.csr_matrix((ratio[x.indices], x.indices, x.indptr), x.shape)
    model.fit(weighted, is_class, row_weights)
    return model.coef_[0] * ratio, float(model.intercept_[0])


def _indicators(
    rows: Sequence[np.ndarray], vocabulary_size: int, order: int, keys: np.ndarray
) -> sp.csr_matrix:
    """Mark the n-grams that each row holds, (N, K) of 0 and 1."""
    columns, ends = [], [0]
    for row in rows:
        held = _keys(row, vocabulary_size, order)
        place = np.minimum(np.searchsorted(keys, held), len(keys) - 1)
        columns.append(place[keys[place] == held])
        ends.append(ends[-1] + len(columns[-1]))
    indices = np.concatenate(columns)
    return sp.csr_matrix((np.ones(len(indices)), indices, ends), (len(rows), len(keys)))


def _keys(row: np.ndarray, vocabulary_size: int, order: int) -> np.ndarray:
    """The keys of a row's n-grams, (n,) int64, ascending, each once."""
    words = row[row != PADDING].astype(np.int64)
    numbers, keys = words, [words]
    for length in range(2, order + 1):
        numbers = numbers[:-1] * vocabulary_size + words[length - 1 :]
        keys.append(first_key(vocabulary_size, length) + numbers)
    return np.unique(np.concatenate(keys))


@keras.saving.register_keras_serializable(package="gru_training")
class NgramLogits(keras.layers.Layer):
    """An `NgramModel` in a network; its weights are not trained further.

    Args:
        count: K, number of n-grams.
        classes: C.
        vocabulary_size: V.
        order: Words in the longest n-grams.
    """

    def __init__(
        self, count: int, classes: int, vocabulary_size: int, order: int = 2, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.count, self.classes, self.vocabulary_size = count, classes, vocabulary_size
        self.order = order

    def build(self, input_shape: tuple[int | None, ...]) -> None:  # noqa: ARG002
        """Make keys (K,), weights (K, C) and bias (C,)."""
        fixed = {"initializer": "zeros", "trainable": False}
        self.keys = self.add_weight((self.count,), dtype="int64", name="keys", **fixed)
        self.values = self.add_weight((self.count, self.classes), name="values", **fixed)
        self.bias = self.add_weight((self.classes,), name="bias", **fixed)

    def set_model(self, model: NgramModel) -> None:
        """Take over its numbers."""
        self.keys.assign(model.keys)
        self.values.assign(model.weights)
        self.bias.assign(model.bias)

    def call(self, token_ids: Any) -> Any:
        """Map ids (B, T) to logits (B, C)."""
        keys = tf.sort(self.keys_of(token_ids), axis=1)
        first = tf.pad(keys[:, 1:] != keys[:, :-1], [[0, 0], [1, 0]], constant_values=True)
        keys = tf.where(first, keys, PADDING)
        found = self.weights_of(tf.reshape(keys, [-1]))
        shape = tf.concat([tf.shape(keys), [self.classes]], 0)
        return tf.reduce_sum(tf.reshape(found, shape), axis=1) + self.bias

    def keys_of(self, token_ids: Any) -> Any:
        """The n-grams of ids (B, T): of each word, then of each pair, (B, 2T - 1) int64, and so on.

        Where there is padding they are 0.
        """
        ids = tf.cast(token_ids, tf.int64)
        size = tf.constant(self.vocabulary_size, tf.int64)
        numbers, there, keys = ids, ids != PADDING, [ids]
        for length in range(2, self.order + 1):
            last = ids[:, length - 1 :]
            numbers = numbers[:, :-1] * size + last
            there = there[:, :-1] & (last != PADDING)
            first = tf.constant(first_key(self.vocabulary_size, length), tf.int64)
            keys.append(tf.where(there, first + numbers, PADDING))
        return tf.concat(keys, axis=1)

    def weights_of(self, keys: Any) -> Any:
        """Return what n-grams (n,) add to the logits, (n, C); zero for unknown ones and padding."""
        table = tf.convert_to_tensor(self.keys)
        place = tf.minimum(tf.searchsorted(table, keys), self.count - 1)
        known = (keys != PADDING) & (tf.gather(table, place) == keys)
        return tf.where(known[:, tf.newaxis], tf.gather(self.values, place), 0.0)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """(B, T) becomes (B, C)."""
        return (input_shape[0], self.classes)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "count": self.count,
            "classes": self.classes,
            "vocabulary_size": self.vocabulary_size,
            "order": self.order,
        }
