"""The word vectors of a run, to be looked at."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from gru_training.runs.directory import RunDirectory

_MOST = 10_000


class EmbeddingTable(NamedTuple):
    """The vectors of the most frequent words."""

    words: list[str]
    vectors: np.ndarray
    """(N, D)."""


def embedding_table(path: Path) -> EmbeddingTable | None:
    """The word vectors of a run that has a vocabulary and a layer `embedding`, else None."""
    vocabulary = path / "vocabulary.txt"
    if not vocabulary.is_file():
        return None
    words = vocabulary.read_text("utf-8").removesuffix("\n").split("\n")[:_MOST]
    model = RunDirectory.open(path).load_model()
    if not any(layer.name == "embedding" for layer in model.layers):
        return None
    ids = np.arange(len(words), dtype=np.int32)[np.newaxis]
    vectors = np.asarray(model.get_layer("embedding")(ids))[0]
    # The projector reads tables of tabs and lines, and drops a first line that is empty.
    return EmbeddingTable([" ".join(word.split()) or "(blank)" for word in words], vectors)
