"""Word vectors from unlabelled texts: factorised co-occurrence counts, and latent semantics.

Positive pointwise mutual information of words and the words around them, reduced to its largest
singular vectors, with the settings recommended by Levy, Goldberg and Dagan (2015), "Improving
Distributional Similarity with Lessons Learned from Word Embeddings": counts of frequent words are
thinned (by their expected number, not by chance), context counts smoothed with the power 3/4,
singular values taken to the power 1/2. The same texts give the same vectors.

Neighbouring words show which words can replace each other, so good and bad are similar; the texts
in which a word occurs distinguish them.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.extmath import randomized_svd

from gru_serving.preprocessing.texts import PADDING, UNKNOWN
from gru_training.words.vocabulary import word_counts

_CHUNK = 1_000_000  # tokens whose pairs are counted at once
_MAX_FULL_SHARE = 1e-4  # share of all tokens above which a word counts less
_CONTEXT_POWER = 0.75
_SINGULAR_POWER = 0.5


def word_vectors(
    rows: Sequence[np.ndarray],
    vocabulary_size: int,
    size: int,
    window: int = 5,
    progress: Callable[[str], None] = lambda _: None,
) -> np.ndarray:
    """Compute vectors of all words of a vocabulary.

    Args:
        rows: The word ids of each text, without padding.
        vocabulary_size: V, the reserved ids included.
        size: D, at most the number of words.
        window: Words on either side that count as context.
        progress: Function that is given a line on what is being done.

    Returns:
        (V, D) float32, each with root mean square 1; zeros for the reserved ids and for words
        without neighbours.
    """
    counts = np.zeros(vocabulary_size)
    for row in rows:
        counts += np.bincount(row, minlength=vocabulary_size)
    counts[[PADDING, UNKNOWN]] = 0
    progress("counting neighbours")
    pairs = _co_occurrences(rows, counts, window)
    progress("factorising")
    return _factors(_positive_information(pairs), size)


def _co_occurrences(rows: Sequence[np.ndarray], counts: np.ndarray, window: int) -> sp.csr_matrix:
    """Count how often words stand near each other, (V, V) symmetric; nearer counts more."""
    share = counts / max(1.0, counts.sum())
    kept = np.sqrt(np.minimum(1.0, _MAX_FULL_SHARE / np.maximum(share, 1e-12))) * (counts > 0)
    total = sp.csr_matrix((len(counts), len(counts)))
    for words in _chunks(rows, window):
        for distance in range(1, window + 1):
            left, right = words[:-distance], words[distance:]
            weight = kept[left] * kept[right] * (window + 1 - distance) / window
            known = weight > 0
            pairs = (weight[known], (left[known], right[known]))
            total += sp.coo_matrix(pairs, total.shape).tocsr()
    return total + total.T


def _chunks(rows: Sequence[np.ndarray], window: int) -> Iterator[np.ndarray]:
    """Yield the texts one after the other, with enough padding between them to keep them apart."""
    gap = np.full(window, PADDING, np.int32)
    chunk: list[np.ndarray] = []
    length = 0
    for row in rows:
        chunk += [row, gap]
        length += len(row)
        if length >= _CHUNK:
            yield np.concatenate(chunk)
            chunk, length = [], 0
    if chunk:
        yield np.concatenate(chunk)


def _positive_information(pairs: sp.csr_matrix) -> sp.csr_matrix:
    """Compute the log of the ratio of a context's frequency to chance; 0 if it is below chance."""
    words = np.asarray(pairs.sum(axis=1)).ravel()
    contexts = words**_CONTEXT_POWER
    contexts /= max(contexts.sum(), 1e-12)
    coo = pairs.tocoo()
    information = np.log(coo.data / (words[coo.row] * contexts[coo.col]))
    positive = information > 0
    kept = (information[positive].astype(np.float32), (coo.row[positive], coo.col[positive]))
    return sp.coo_matrix(kept, pairs.shape).tocsr()


def _factors(matrix: sp.csr_matrix, size: int) -> np.ndarray:
    """Compute the words' coordinates along the largest singular vectors, (V, D) float32."""
    u, singular, _ = randomized_svd(matrix, size, n_iter=3, random_state=0)
    # For words without neighbours the factorisation leaves rounding errors.
    return unit_rows(u * singular**_SINGULAR_POWER, matrix.getnnz(axis=1) > 0)


def latent_semantic_vectors(
    rows: Sequence[np.ndarray], vocabulary_size: int, size: int
) -> np.ndarray:
    """Compute vectors of all words of a vocabulary from the texts in which they occur.

    After Deerwester et al. (1990), "Indexing by Latent Semantic Analysis", they are the right
    singular vectors of the texts' weighted word counts, here (1 + log count) times inverse document
    frequency, with texts of length 1.

    Args:
        rows: The word ids of each text, without padding.
        vocabulary_size: V, the reserved ids included.
        size: D, at most the number of words and of texts.

    Returns:
        (V, D) float32, each with root mean square 1; zeros for the reserved ids and for words that
        do not occur.
    """
    counts = word_counts(rows, vocabulary_size)
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    _, _, vectors = randomized_svd(weighted, size, n_iter=3, random_state=0)
    return unit_rows(vectors.T, counts.getnnz(axis=0) > 0)


def unit_rows(vectors: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Scale known rows to root mean square 1, and set others to zero, float32."""
    length = np.sqrt(np.mean(vectors**2, axis=1, keepdims=True))
    scaled = vectors / np.maximum(length, np.finfo(vectors.dtype).tiny)
    return np.where(known[:, None], scaled, 0).astype(np.float32)
