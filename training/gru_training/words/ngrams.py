"""Logistic regression on weighted n-grams, and its use as a layer of a network.

After Wang and Manning (2012), "Baselines and Bigrams: Simple, Good Sentiment and Topic
Classification", section 2: the n-grams of a text, weighted by naive-Bayes log-count ratios (section
2.1, with counts of texts and one added to each), with logistic regression in place of the support
vector machine. For few texts TF-IDF weights may be used, if they do better. Trigrams are as in
Mesnil et al. (2014), "Ensemble of Generative and Discriminative Techniques for Sentiment Analysis
of Movie Reviews" (arXiv:1412.5335), but without those of a single text, which are most of them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import numpy as np
import scipy.sparse as sp
import tensorflow as tf
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import normalize

from gru_serving.preprocessing.texts import ATTACHED, PADDING, RESERVED
from gru_training.errors import ConfigError
from gru_training.words.vocabulary import TokenRows, members_of, word_counts


def log_count_ratios(held: sp.csr_matrix, is_class: np.ndarray) -> np.ndarray:
    """Compute the log-count ratio of each feature.

    Args:
        held: (N, K) of 0 and 1, which features each text holds.
        is_class: (N,) bool.

    Returns:
        (K,), positive for features of the class, negative for those of the rest.
    """
    members = np.asarray(held[is_class].sum(axis=0)).ravel()
    p, q = 1 + members, 1 + np.asarray(held.sum(axis=0)).ravel() - members
    return np.asarray(np.log((p / p.sum()) / (q / q.sum())))


def word_ratios(rows: TokenRows, classes: int, words: int) -> np.ndarray:
    """Compute the log-count ratios of words.

    Args:
        rows: The training texts.
        classes: C.
        words: W; ids from there on are passed over.

    Returns:
        (W, C), of each class against the rest; for two classes only the second, (W, 1). Zeros for
        the reserved ids.
    """
    held = (word_counts(rows.ids, words) > 0).astype(np.float64)
    of = [1] if classes == 2 and rows.labels.ndim == 1 else range(classes)
    ratios = np.stack([log_count_ratios(held, members_of(rows.labels, k)) for k in of], axis=1)
    ratios[: len(RESERVED)] = 0.0
    return ratios


_INVERSE_PENALTIES = (0.03, 0.3, 3.0)
_INVERSE_PENALTIES_OF_FEW = (0.3, 1.0, 3.0, 10.0)
_RIDGE_PENALTIES = (1.0, 10.0, 100.0)
_INVERSE_PENALTIES_OF_TFIDF = (3.0, 30.0)
_PIECE_SCALE = 0.3
"""Value of a piece relative to that of an n-gram: a word has some twenty pieces."""
MOST_FOLDED = 5_000
"""Most training and validation rows together that are cross-validated."""
_MOST_FOLDED_ANSWERS = 200_000
"""Greatest number of rows times classes for which cross-validation is fast."""
FOLDS = 5
MOST_WEIGHTS = 2**26
"""Greatest number of weights, over all classes, of a regression: 256 MiB as float32."""
_LARGEST_KEY = np.iinfo(np.int64).max
Score = Callable[[np.ndarray, np.ndarray], float]
"""Score of labels and logits; more is better."""


def accuracy_score(labels: np.ndarray, logits: np.ndarray) -> float:
    """Compute the share of the rows (N,) whose likeliest class is the right one."""
    return float(np.mean(logits.argmax(axis=1) == labels))


@dataclass(frozen=True)
class NgramModel:
    """A linear model over the n-grams of the training rows."""

    vocabulary_size: int
    """V, on which the keys depend."""
    keys: np.ndarray
    """(K,) int64, ascending: a word's id; V + id · V + id for two consecutive words; for three V +
    V² + (id · V + id) · V + id.
    """
    weights: np.ndarray
    """(K, C) float32."""
    bias: np.ndarray
    """(C,) float32."""
    penalty: float | None = None
    """Penalty of the regressions, if it is known."""
    order: int = 2
    """Words in the longest n-grams."""
    with_pieces: bool = False
    """Whether pieces of words contributed to the words' weights."""
    squares: np.ndarray | None = None
    """Squares (K,) float32 of the length that each n-gram adds to a text's vector, by which its
    weights are divided; None to divide by 1.
    """

    def indicators(self, rows: Sequence[np.ndarray]) -> sp.csr_matrix:
        """Mark the n-grams in each of N rows of word ids, (N, K) of 0 and 1."""
        return _indicators(rows, self.vocabulary_size, self.order, self.keys)

    def logits(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """Compute logits (N, C) float32 of N rows of word ids."""
        held = self.indicators(rows)
        total = held @ self.weights
        if self.squares is not None:
            lengths = np.sqrt(held @ self.squares)
            total /= np.where(lengths > 0, lengths, 1)[:, np.newaxis]
        return np.asarray(total + self.bias, np.float32)


class FittedNgrams(NamedTuple):
    """A regression, and its model for measurements on validation rows."""

    trained: NgramModel
    """Model of the training rows alone."""
    final: NgramModel
    """Model for answers: of training and validation rows if these are few, otherwise `trained`."""


def fit_ngrams(
    train: TokenRows,
    validation: TokenRows,
    classes: int,
    tokens: Sequence[str],
    score: Score = accuracy_score,
    order: int = 2,
) -> FittedNgrams:
    """Fit one logistic regression, or for more classes one per class against the rest.

    Args:
        train: Rows of word ids to learn from, which may have weights; of several labels each gets
            a regression.
        validation: Rows by which the penalty is chosen, see `_choose`.
        classes: C.
        tokens: The V known words, by id.
        score: Score of labels and logits; the penalty of the greatest is chosen.
        order: Words in the longest n-grams.

    Raises:
        ConfigError: The vocabulary is too large for the order, see `require_keys`.
    """
    few = _few(train, validation, classes)
    binary = classes == 2 and train.labels.ndim == 1
    coordinates = few or not binary

    def fit(
        x: sp.csr_matrix, rows: TokenRows, penalty: float, weighted: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        def against_rest(number: int) -> tuple[np.ndarray, float]:
            is_class = members_of(rows.labels, number)
            return _one_against_rest(
                x, is_class, penalty, rows.row_weights, not weighted, coordinates
            )

        if binary:
            weights, bias = against_rest(1)
            # Either class gets half of it: their difference is the regression's own answer.
            return np.stack([-weights, weights], 1) / 2, np.array([-bias, bias]) / 2
        of_all, biases = np.empty((x.shape[1], classes), np.float32), np.empty(classes)
        for k in range(classes):
            of_all[:, k], biases[k] = against_rest(k)
        return of_all, biases

    penalties: dict[bool, tuple[float, ...]] = {False: _INVERSE_PENALTIES}
    if few:
        penalties = {False: _INVERSE_PENALTIES_OF_FEW, True: _INVERSE_PENALTIES_OF_TFIDF}
    counted = _Counted(tokens, order, MOST_WEIGHTS // classes)
    weigh = _balanced if train.labels.ndim == 1 and train.weights is None else None
    return _choose(train, validation, few, counted, penalties, fit, score, weigh)


def fit_ngram_numbers(
    train: TokenRows,
    validation: TokenRows,
    tokens: Sequence[str],
    score: Score,
    order: int = 2,
) -> FittedNgrams:
    """Fit a ridge regression of numbers on n-grams.

    Args:
        train: Rows of word ids, which may have weights, and numbers in standard units.
        validation: Rows by which the penalty is chosen, see `_choose`.
        tokens: The V known words, by id.
        score: Score of numbers and answers (N, 1); the penalty of the greatest is chosen.
        order: Words in the longest n-grams.

    Raises:
        ConfigError: The vocabulary is too large for the order, see `require_keys`.
    """

    def fit(
        x: sp.csr_matrix,
        rows: TokenRows,
        penalty: float,
        weighted: bool,  # noqa: ARG001
    ) -> tuple[np.ndarray, np.ndarray]:
        model = Ridge(penalty, solver="sparse_cg").fit(x, rows.labels, rows.row_weights)
        return model.coef_[:, np.newaxis], np.array([model.intercept_])

    few = _few(train, validation, 1)
    penalties: dict[bool, tuple[float, ...]] = {False: _RIDGE_PENALTIES}
    if few:
        penalties[True] = tuple(penalty / 10 for penalty in _RIDGE_PENALTIES)
    counted = _Counted(tokens, order, MOST_WEIGHTS)
    return _choose(train, validation, few, counted, penalties, fit, score)


def word_pieces(tokens: Sequence[str]) -> sp.csr_matrix:
    """Mark the pieces of 2 to 5 characters of each word, (V, P), with blanks around the word.

    Args:
        tokens: V words; the reserved ones have no pieces.
    """
    words = ["" if token in RESERVED else token.removeprefix(ATTACHED) for token in tokens]
    if not any(words):
        return sp.csr_matrix((len(words), 0))
    counts = CountVectorizer(analyzer="char_wb", ngram_range=(2, 5), binary=True, lowercase=False)
    return sp.csr_matrix(counts.fit_transform(words), dtype=np.float64)


def first_key(vocabulary_size: int, length: int) -> int:
    """Return the first key of n-grams of this many words."""
    return sum(vocabulary_size**shorter for shorter in range(1, length))


def require_keys(vocabulary_size: int, order: int) -> None:
    """Check that all n-grams have a key of 64 bits.

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


def _few(train: TokenRows, validation: TokenRows, classes: int) -> bool:
    """Tell whether the validation rows are too few to choose by alone, and folds are fast."""
    rows = len(train.ids) + len(validation.ids)
    return rows <= MOST_FOLDED and rows * classes <= _MOST_FOLDED_ANSWERS


class _Counted(NamedTuple):
    """The n-grams used by a regression."""

    tokens: Sequence[str]
    """The V known words, by id."""
    order: int
    """Words in the longest n-grams."""
    most: int
    """Greatest number of n-grams."""

    def spread(self, keys: np.ndarray) -> sp.csr_matrix:
        """Make the matrix from n-grams (K,) to features (F,): themselves and pieces of words.

        A regression on the features is one on the n-grams: a piece's weight is part of the weights
        of all words that contain it.
        """
        held = word_pieces([self.tokens[key] for key in keys[keys < len(self.tokens)]])
        held = sp.csr_matrix(held * _PIECE_SCALE)
        held.resize(len(keys), held.shape[1])
        return sp.csr_matrix(sp.hstack([sp.identity(len(keys)), held]))


class _Features(NamedTuple):
    """The features (F,) of a regression, computed from n-grams (K,)."""

    spread: sp.csr_matrix | None = None
    """Matrix (K, F) of `_Counted.spread`; None for the n-grams themselves."""
    frequencies: np.ndarray | None = None
    """Inverse document frequencies (K,), for vectors of length 1 (TF-IDF); None for 0 and 1."""

    def of(self, held: sp.csr_matrix) -> sp.csr_matrix:
        """Compute the features (N, F) of texts from their n-grams, (N, K)."""
        if self.frequencies is not None:
            held = normalize(held @ sp.diags(self.frequencies))
        return held if self.spread is None else sp.csr_matrix(held @ self.spread)

    def model(
        self, keys: np.ndarray, fitted: tuple[np.ndarray, np.ndarray], penalty: float, of: _Counted
    ) -> NgramModel:
        """Convert weights (F, C) and biases (C,) to a model of n-grams."""
        weights, bias = fitted
        squares = None
        if self.spread is not None:
            weights = self.spread @ weights
        if self.frequencies is not None:
            weights = self.frequencies[:, np.newaxis] * weights
            squares = np.asarray(self.frequencies**2, np.float32)
        return NgramModel(
            len(of.tokens),
            keys,
            np.asarray(weights, np.float32),
            np.asarray(bias, np.float32),
            penalty,
            of.order,
            self.spread is not None,
            squares,
        )


def _inverse_frequencies(held: sp.csr_matrix) -> np.ndarray:
    """Compute inverse document frequencies (K,), as scikit-learn does."""
    count = held.shape[0]
    return np.asarray(np.log((1 + count) / (1 + np.asarray(held.sum(axis=0)).ravel())) + 1)


_Fit = Callable[[sp.csr_matrix, TokenRows, float, bool], tuple[np.ndarray, np.ndarray]]
"""Function from features (N, F), rows, a penalty and whether the features are weighted already, to
weights (F, C) and biases (C,)."""


def _choose(
    train: TokenRows,
    validation: TokenRows,
    few: bool,
    counted: _Counted,
    penalties: Mapping[bool, Sequence[float]],
    fit: _Fit,
    score: Score,
    weigh: Callable[[TokenRows], TokenRows] | None = None,
) -> FittedNgrams:
    """Choose the penalty for both kinds of weights, the use of pieces, and the best of these.

    The choice is scored on the validation rows. If these are few, the training rows count as well,
    each answered by a model of the other folds, and the model is refitted on all rows, which it
    needs more than a measurement does.

    Args:
        train: Rows to learn from.
        validation: Rows to choose by.
        few: Whether the rows are few.
        counted: N-grams to count.
        penalties: Penalties to try, by whether n-grams have TF-IDF weights; else `fit` weighs them.
        fit: Function that fits the regression.
        score: Score of labels and logits; more is better.
        weigh: Function that weighs rows, which few rows are tried with in the end, too.
    """
    size, order = len(counted.tokens), counted.order
    folds = _folds(train.labels) if few else None
    labels = np.concatenate([train.labels, validation.labels]) if few else validation.labels

    def counts(rows: TokenRows) -> tuple[np.ndarray, sp.csr_matrix]:
        keys = _keys_of(rows, size, order, counted.most)
        return keys, _indicators(rows.ids, size, order, keys)

    def features(keys: np.ndarray, held: sp.csr_matrix, tfidf: bool, pieces: bool) -> _Features:
        spread = counted.spread(keys) if pieces else None
        return _Features(spread, _inverse_frequencies(held) if tfidf else None)

    keys, held = counts(train)

    def tried(
        penalty: float, tfidf: bool, made: _Features, x: sp.csr_matrix, rows: TokenRows = train
    ) -> tuple[float, NgramModel]:
        model = made.model(keys, fit(x, rows, penalty, tfidf), penalty, counted)
        logits = model.logits(validation.ids)
        if folds is not None:
            others = _out_of_fold(x, rows, folds, lambda x, some: fit(x, some, penalty, tfidf))
            logits = np.concatenate([others, logits])
        return score(labels, logits), model

    found: list[tuple[float, NgramModel, float]] = []
    for tfidf, of_either in penalties.items():
        if not of_either:
            continue
        made = features(keys, held, tfidf, False)
        x = made.of(held)
        best = max(((*tried(one, tfidf, made, x), one) for one in of_either), key=lambda it: it[0])
        found.append(best)
        if few:
            made = features(keys, held, tfidf, True)
            found.append((*tried(best[2], tfidf, made, made.of(held)), best[2]))
    least, trained, penalty = max(found, key=lambda one: one[0])
    if not few:
        return FittedNgrams(trained, trained)
    tfidf, rows = trained.squares is not None, _together(train, validation)
    if weigh is not None:
        made = features(keys, held, tfidf, trained.with_pieces)
        reached, weighed = tried(penalty, tfidf, made, made.of(held), weigh(train))
        if reached > least:
            trained, rows = weighed, weigh(rows)
    all_keys, all_held = counts(rows)
    made = features(all_keys, all_held, tfidf, trained.with_pieces)
    fitted = fit(made.of(all_held), rows, penalty, tfidf)
    return FittedNgrams(trained, made.model(all_keys, fitted, penalty, counted))


def _folds(labels: np.ndarray) -> np.ndarray:
    """Assign rows to folds, (N,), as evenly as possible by class or number."""
    order = np.random.default_rng(0).permutation(len(labels))
    if labels.ndim == 1:
        order = order[np.argsort(labels[order], kind="stable")]
    folds = np.empty(len(labels), np.int64)
    folds[order] = np.arange(len(labels)) % FOLDS
    return folds


def _out_of_fold(
    x: sp.csr_matrix,
    rows: TokenRows,
    folds: np.ndarray,
    fit: Callable[[sp.csr_matrix, TokenRows], tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    """Answer each row by a model of the rows of other folds, (N, C)."""
    parts, places = [], []
    for fold in np.unique(folds):
        others, held_out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        weights, bias = fit(x[others], _some(rows, others))
        parts.append(x[held_out] @ weights + bias)
        places.append(held_out)
    restored = np.empty((len(folds), parts[0].shape[1]))
    restored[np.concatenate(places)] = np.concatenate(parts)
    return restored


def _balanced(rows: TokenRows) -> TokenRows:
    """Weigh rows of classes so that all classes count the same."""
    counts = np.bincount(rows.labels)
    return TokenRows(rows.ids, rows.labels, 1 / counts[rows.labels])


def _some(rows: TokenRows, places: np.ndarray) -> TokenRows:
    weights = None if rows.weights is None else rows.weights[places]
    return TokenRows([rows.ids[place] for place in places], rows.labels[places], weights)


def _together(train: TokenRows, validation: TokenRows) -> TokenRows:
    """Join all rows of both parts; those of a part without weights weigh 1."""
    weights = None
    if train.weights is not None or validation.weights is not None:
        weights = np.concatenate(
            [
                np.ones(len(part.ids)) if part.weights is None else part.weights
                for part in (train, validation)
            ]
        )
    labels = np.concatenate([train.labels, validation.labels])
    return TokenRows([*train.ids, *validation.ids], labels, weights)


def _keys_of(train: TokenRows, vocabulary_size: int, order: int, most: int) -> np.ndarray:
    """Return the keys of the rows; of n-grams of three words or more, those in several rows.

    If they are more than `most`, those in the most rows are kept.
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
    by_ratio: bool,
    coordinates: bool,
) -> tuple[np.ndarray, float]:
    """Fit the weights (F,) and the bias of the regression of one class.

    Args:
        x: Features (N, F).
        is_class: Whether each row is of the class, (N,) bool.
        penalty: Inverse penalty.
        row_weights: Weights (N,) of the rows.
        by_ratio: Whether features are weighted by their log-count ratios.
        coordinates: Whether to use dual coordinate descent where there are fewer rows than
            features. With 104 classes of 25 rows it takes a tenth of L-BFGS' time, and is right as
            often; it penalises the intercept, ten times less than a weight.
    """
    if is_class.all() or not is_class.any():  # every training row has the label, or none
        bias = float(np.log((is_class.sum() + 1) / (len(is_class) - is_class.sum() + 1)))
        return np.zeros(x.shape[1]), bias
    ratio = log_count_ratios(x.sign(), is_class) if by_ratio else np.ones(x.shape[1])
    solver: dict[str, Any] = {}
    if coordinates:
        dual = x.shape[0] < x.shape[1]
        solver = {"solver": "liblinear", "dual": dual, "tol": 0.1 if dual else 1e-4}
        solver["intercept_scaling"] = 10.0
    model = LogisticRegression(C=penalty, max_iter=5000, random_state=0, **solver)
    weighted = sp.csr_matrix((x.data * ratio[x.indices], x.indices, x.indptr), x.shape)
    model.fit(weighted, is_class, row_weights)
    return model.coef_[0] * ratio, float(model.intercept_[0])


def _indicators(
    rows: Sequence[np.ndarray], vocabulary_size: int, order: int, keys: np.ndarray
) -> sp.csr_matrix:
    """Mark the n-grams in each row, (N, K) of 0 and 1."""
    columns, ends = [], [0]
    for row in rows:
        held = _keys(row, vocabulary_size, order)
        place = np.minimum(np.searchsorted(keys, held), len(keys) - 1)
        columns.append(place[keys[place] == held])
        ends.append(ends[-1] + len(columns[-1]))
    indices = np.concatenate(columns)
    return sp.csr_matrix((np.ones(len(indices)), indices, ends), (len(rows), len(keys)))


def _keys(row: np.ndarray, vocabulary_size: int, order: int) -> np.ndarray:
    """Return the keys of a row's n-grams, (n,) int64, ascending and distinct."""
    words = row[row != PADDING].astype(np.int64)
    numbers, keys = words, [words]
    for length in range(2, order + 1):
        numbers = numbers[:-1] * vocabulary_size + words[length - 1 :]
        keys.append(first_key(vocabulary_size, length) + numbers)
    return np.unique(np.concatenate(keys))


@keras.saving.register_keras_serializable(package="gru_training")
class NgramLogits(keras.layers.Layer):
    """An `NgramModel` as a layer; its weights are not trained further.

    Args:
        count: K, number of n-grams.
        classes: C.
        vocabulary_size: V.
        order: Words in the longest n-grams.
        unit_length: Whether weights are divided by the length of a text's vector.
    """

    def __init__(
        self,
        count: int,
        classes: int,
        vocabulary_size: int,
        order: int = 2,
        unit_length: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.count, self.classes, self.vocabulary_size = count, classes, vocabulary_size
        self.order, self.unit_length = order, unit_length

    def build(self, input_shape: tuple[int | None, ...]) -> None:  # noqa: ARG002
        """Create keys (K,), weights (K, C), bias (C,) and, for unit length, squares (K,)."""
        fixed = {"initializer": "zeros", "trainable": False}
        self.keys = self.add_weight((self.count,), dtype="int64", name="keys", **fixed)
        self.values = self.add_weight((self.count, self.classes), name="values", **fixed)
        self.bias = self.add_weight((self.classes,), name="bias", **fixed)
        if self.unit_length:
            self.squares = self.add_weight((self.count,), name="squares", **fixed)

    def set_model(self, model: NgramModel) -> None:
        """Set the numbers of a model."""
        self.keys.assign(model.keys)
        self.values.assign(model.weights)
        self.bias.assign(model.bias)
        if model.squares is not None:
            self.squares.assign(model.squares)

    def call(self, token_ids: Any) -> Any:
        """Map ids (B, T) to logits (B, C)."""
        keys = tf.sort(self.keys_of(token_ids), axis=1)
        first = tf.pad(keys[:, 1:] != keys[:, :-1], [[0, 0], [1, 0]], constant_values=True)
        keys = tf.where(first, keys, PADDING)
        found = self.weights_of(tf.reshape(keys, [-1]))
        shape = tf.concat([tf.shape(keys), [self.classes]], 0)
        total = tf.reduce_sum(tf.reshape(found, shape), axis=1)
        if self.unit_length:
            total /= self.lengths_of(keys)[:, tf.newaxis]
        return total + self.bias

    def lengths_of(self, keys: Any) -> Any:
        """Return the lengths (B,) of the vectors of texts by their n-grams (B, T), each once."""
        place, known = self._found(keys)
        total = tf.reduce_sum(tf.where(known, tf.gather(self.squares, place), 0.0), axis=1)
        return tf.where(total > 0, tf.sqrt(total), 1.0)

    def keys_of(self, token_ids: Any) -> Any:
        """Compute the n-grams of ids (B, T): words, then pairs, (B, 2T - 1) int64, and so on.

        They are 0 at padding.
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
        """Return the contributions of n-grams (n,) to the logits, (n, C).

        Zero for unknown ones and padding.
        """
        place, known = self._found(keys)
        return tf.where(known[:, tf.newaxis], tf.gather(self.values, place), 0.0)

    def _found(self, keys: Any) -> tuple[Any, Any]:
        """Find the rows of n-grams in the table; also returns whether they were found."""
        table = tf.convert_to_tensor(self.keys)
        place = tf.minimum(tf.searchsorted(table, tf.reshape(keys, [-1])), self.count - 1)
        place = tf.reshape(place, tf.shape(keys))
        return place, (keys != PADDING) & (tf.gather(table, place) == keys)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape (B, C) for (B, T)."""
        return (input_shape[0], self.classes)
