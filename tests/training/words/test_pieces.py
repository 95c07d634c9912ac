import numpy as np

from gru_training.words.embedding import BUCKETS, word_pieces


def test_pieces_of_short_words():
    table = word_pieces(["[PAD]", "at", "cat", "the cat", "7up", "?"])
    counts = (table > 0).sum(axis=1)
    # <at: <at, at>, <at>; <cat>: 3 of three letters, 2 of four, 1 of five.
    assert counts.tolist() == [0, 3, 6, 18, 0, 0]
    assert table.max() <= BUCKETS
    assert table.dtype == np.int32


def test_related_words_share_pieces():
    film, films, filmed, other = (
        set(row) - {0} for row in word_pieces(["film", "films", "filmed", "zzz"])
    )
    assert len(film & films) == 6  # <fi fil ilm <fil film <film
    assert films & filmed >= film & films
    assert not film & other


def test_the_same_everywhere():
    """Saved models contain the numbers, and new runs must get the same ones."""
    assert word_pieces(["at"]).tolist() == [[9414, 13277, 8684]]


def test_long_words_are_cut():
    (row,) = word_pieces(["x" + "abcdefghij" * 20])
    assert row.shape == (32,)
    assert word_pieces([]).shape == (0, 0)
