"""The words of a text, and the number of them that a version's vocabulary lacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gru_serving.preprocessing.description import Description
from gru_serving.preprocessing.texts import UNKNOWN, LookUp, Tokenize, Tokenizer, Words


class TextReader:
    """Tokenizes texts as a version does, with the files that its export wrote for ONNX Runtime.

    Args:
        tokenizer: Tokenizer that splits a text; None splits at blanks.
        words: Words of the version's vocabulary; None where they are unknown.
    """

    def __init__(self, tokenizer: Tokenizer | None = None, words: Words | None = None) -> None:
        self._tokenizer, self._words = tokenizer, words

    @classmethod
    def of_version(cls, version: Path) -> TextReader:
        """Make the reader of a version; a simple one if the version has no such files.

        Raises:
            InvalidArgument: The files are not what an export writes.
        """
        described = Description.read(version)
        for signature in described.signatures.values() if described else ():
            steps = {type(step): step for step in signature.before}
            split, known = steps.get(Tokenize), steps.get(LookUp)
            if isinstance(split, Tokenize) and isinstance(known, LookUp):
                return cls(split.tokenizer, known.words)
        return cls()

    def __call__(self, texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray | None]:
        """Count the words of each text (B,), and compute the share of unknown ones (B,).

        A text without words has a share of 0. Without a vocabulary the shares are None.
        """
        if self._tokenizer is None or self._words is None:
            return np.array([len(text.split()) for text in texts], float), None
        rows = [self._tokenizer(text) for text in texts]
        counts = np.array([len(row) for row in rows], float)
        unknown = (self._words.look_up(rows) == UNKNOWN).sum(axis=1)
        return counts, unknown / np.maximum(counts, 1)
