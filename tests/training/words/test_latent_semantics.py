import numpy as np
import pytest

from gru_training.words.vectors import latent_semantic_vectors


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 30, 60)
    return [rng.zipf(1.4, n).clip(0, 19).astype(np.int32) for n in lengths]


def test_the_formulae(rows):
    """Compared with a full decomposition in float64."""
    counts = np.array([np.bincount(row, minlength=20) for row in rows], np.float64)
    counts[:, :2] = 0
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0)
    weights *= np.log((1 + len(rows)) / (1 + (counts > 0).sum(0))) + 1
    weights /= np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), 1e-12)
    _, _, vectors = np.linalg.svd(weights)
    expected = vectors[:16].T
    expected[:2] = 0
    length = np.sqrt(np.mean(expected**2, axis=1, keepdims=True))
    np.divide(expected, length, out=expected, where=length > 0)
    got = latent_semantic_vectors(rows, 20, 16)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got @ got.T, expected @ expected.T, atol=2e-3)


def test_reserved_and_unseen_words_have_none(rows):
    got = latent_semantic_vectors(rows, 30, 5)
    assert not got[:2].any()
    assert not got[20:].any()
    np.testing.assert_allclose(np.mean(got[2:20] ** 2, axis=1), 1, rtol=1e-4)


def test_words_of_the_same_texts_are_alike():
    """Two kinds of texts; every word has the same neighbour on both sides, a filler."""
    rng = np.random.default_rng(0)
    rows = []
    for kind in rng.integers(2, size=300):
        words = rng.choice(np.arange(3, 8) if kind else np.arange(8, 13), 10)
        rows.append(np.column_stack([words, np.full(10, 2)]).ravel().astype(np.int32))
    got = latent_semantic_vectors(rows, 13, 2) / 2**0.5
    assert got[3] @ got[7] > 0.9
    assert abs(got[3] @ got[8]) < 0.3
