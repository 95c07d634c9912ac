"""IMDB's film reviews as texts (Maas et al. 2011), with or without their labels."""

from pathlib import Path

from gru_training.data.known_sets.tab_table import tab_table

IMDB_HEADER = ("id", "label", "rating", "movie", "text")
"""Columns of the labelled parts, `imdb_train.tsv.gz` and `imdb_test.tsv.gz`."""
_UNLABELLED_HEADER = ("id", "movie", "text")


def imdb_unlabelled(folder: Path) -> list[str]:
    """Read the texts of IMDB's unlabelled and training reviews, without those of its test reviews.

    Raises:
        DataError: The files are not there, unreadable or malformed.
    """
    unlabelled = tab_table(folder / "imdb_unsup.tsv.gz", _UNLABELLED_HEADER)
    train = tab_table(folder / "imdb_train.tsv.gz", IMDB_HEADER)
    tested = set(imdb_test(folder))
    return [cells["text"] for _, cells in (*unlabelled, *train) if cells["text"] not in tested]


def imdb_test(folder: Path) -> list[str]:
    """Read the texts of IMDB's test reviews.

    Raises:
        DataError: The file is not there, unreadable or malformed.
    """
    return [cells["text"] for _, cells in tab_table(folder / "imdb_test.tsv.gz", IMDB_HEADER)]
