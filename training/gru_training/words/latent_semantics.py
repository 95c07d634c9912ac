"""Word vectors from the texts in which words occur: latent semantic analysis.

Neighbouring words tell which words can replace each other, so good and bad are similar; the texts
in which a word occurs tell them apart.
"""

from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.extmath import randomized_svd

from gru_training.words.token_rows import word_counts


def latent_semantic_vectors(
    rows: Sequence[np.ndarray], vocabulary_size: int, size: int
) -> np.ndarray:
    """Vectors of all words of a vocabulary.

    After Deerwester et al. (1990), "Indexing by Latent Semantic Analysis": the right singular
    vectors of the texts' weighted word counts, here (1 + log count) times inverse document
    frequency, with texts of length 1.

    Args:
        rows: The word ids of each text, without padding.
        vocabulary_size: V, the reserved ids included.
        size: D, at most the number of words and of texts.

    Returns:
        (V, D) float32, each with root mean square 1; zeros for the reserved ids and for words that
        occur nowhere.
    """
    counts = word_counts(rows, vocabulary_size)
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    _, _, vectors = randomized_svd(weighted, size, n_iter=3, random_state=0)
    return unit_rows(vectors.T, counts.getnnz(axis=0) > 0)


def unit_rows(vectors: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Rows of root mean square 1 where known, zeros elsewhere, float32."""
    length = np.sqrt(np.mean(vectors**2, axis=1, keepdims=True))
    scaled = vectors / np.maximum(length, np.finfo(vectors.dtype).tiny)
    return np.where(known[:, None], scaled, 0).astype(np.float32)
