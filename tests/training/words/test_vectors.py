import numpy as np
import pytest

from gru_training.words.vectors import word_vectors


def plain_vectors(rows, vocabulary, size, window):
    """The same from the formulas, pair by pair and with a full decomposition, in float64."""
    counts = np.zeros(vocabulary)
    for row in rows:
        for word in row:
            if word > 1:
                counts[word] += 1
    share = counts / counts.sum()
    kept = np.array([min(1.0, (1e-4 / s) ** 0.5) if s > 0 else 0.0 for s in share])
    pairs = np.zeros((vocabulary, vocabulary))
    for row in rows:
        for i, word in enumerate(row):
            for j, other in enumerate(row):
                if i != j and abs(i - j) <= window and word > 1 and other > 1:
                    nearness = (window + 1 - abs(i - j)) / window
                    pairs[word, other] += kept[word] * kept[other] * nearness
    words = pairs.sum(1)
    contexts = words**0.75 / (words**0.75).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(pairs / np.outer(words, contexts))
    information = np.where(np.isfinite(information), np.maximum(information, 0), 0)
    u, s, _ = np.linalg.svd(information)
    vectors = u[:, :size] * s[:size] ** 0.5
    vectors[~information.any(1)] = 0
    length = np.sqrt(np.mean(vectors**2, axis=1, keepdims=True))
    return np.divide(vectors, length, out=vectors, where=length > 0)


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 30, 60)
    return [rng.zipf(1.4, n).clip(0, 19).astype(np.int32) for n in lengths]


@pytest.mark.parametrize("window", [1, 4])
def test_the_formulae(rows, window):
    got = word_vectors(rows, 20, 18, window)
    expected = plain_vectors(rows, 20, 18, window)
    assert got.dtype == np.float32
    # Singular vectors are unique only up to their sign, so inner products are compared.
    np.testing.assert_allclose(got @ got.T, expected @ expected.T, atol=2e-4)


def test_reserved_and_lonely_words_have_no_vector(rows):
    got = word_vectors([*rows, np.array([25], np.int32)], 30, 5)
    assert not got[[0, 1, 25, 29]].any()
    assert got[2:19].any(axis=1).all()


def test_texts_do_not_meet():
    apart = [np.array([2, 3], np.int32), np.array([4, 5], np.int32)] * 50
    got = word_vectors(apart, 6, 4, window=5)
    assert abs(got[2] @ got[4]) < 1e-5
    assert abs(got[2] @ got[5]) < 1e-5


def test_same_company_same_meaning():
    rng = np.random.default_rng(0)
    kinds = np.array([[2, 3], [4, 5]])
    company = [np.arange(6, 16), np.arange(16, 26)]
    rows = []
    for _ in range(400):
        kind = rng.integers(2)
        around = rng.choice(company[kind], 4)
        rows.append(np.insert(around, 2, rng.choice(kinds[kind])).astype(np.int32))
    got = word_vectors(rows, 26, 8)
    got /= np.maximum(np.linalg.norm(got, axis=1, keepdims=True), 1e-9)
    assert got[2] @ got[3] > 0.8 > 0.2 > got[2] @ got[4]
    assert got[4] @ got[5] > 0.8
