"""Digests of the texts that a run has learned from, so that no later run tests on them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gru_training.errors import RunDirectoryError
from gru_training.sentiment.rows import text_key
from gru_training.sentiment.run import SentimentRun

FILE = "training_texts.npy"
_BYTES = 8


def text_digests(texts: Iterable[str]) -> np.ndarray:
    """One uint64 per text, (N,); the same for texts that differ in case and blanks alone."""
    keys = (text_key(text).encode("utf-8", "surrogatepass") for text in texts)
    joined = b"".join(hashlib.blake2b(key, digest_size=_BYTES).digest() for key in keys)
    return np.frombuffer(joined, "<u8")


def write_digests(folder: Path, digests: np.ndarray) -> None:
    """Write the digests of the texts that a run has learned from.

    Args:
        folder: The run directory.
        digests: (N,) uint64, in any order; each is kept once.
    """
    np.save(folder / FILE, np.unique(digests))


def learned_digests(run: SentimentRun) -> np.ndarray:
    """Read the digests of the texts that a run has learned from, (N,) uint64, ascending.

    Raises:
        RunDirectoryError: The run has none, or the file is damaged.
    """
    path = run.path / FILE
    if not path.is_file():
        raise RunDirectoryError(
            f"{run.path}: expected {FILE}, which tells what texts were learned from and which runs "
            "of earlier versions do not have; train that run again with this version"
        )
    try:
        return np.asarray(np.load(path, allow_pickle=False), "<u8")
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"cannot read {path}: {error}") from error


def is_learned(texts: Iterable[str], run: SentimentRun) -> np.ndarray:
    """Whether a run has learned from each of N texts, (N,) bool.

    Raises:
        RunDirectoryError: As of `learned_digests`.
    """
    return np.isin(text_digests(texts), learned_digests(run))


def split_settings(run: SentimentRun) -> str:
    """The settings that a run's rows were split with, as flags."""
    data = run.config.data
    drawn = f"--split-seed {data.drawn_with(run.config.training.seed)}"
    split = drawn if data.fold is None else f"--fold {data.fold}"
    return split if data.data is None else f"--data {data.data} and {split}"
