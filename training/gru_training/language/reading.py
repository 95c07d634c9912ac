"""Conversion of documents to numbers of words or characters."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gru_serving.preprocessing.texts import RESERVED, UNKNOWN
from gru_training.language.config import LanguageDataConfig, Unit
from gru_training.language.data import LanguageData
from gru_training.words.tokens import NEW_LINE
from gru_training.words.vocabulary import TokenIndex, Vocabulary, build_vocabulary, index_tokens

_STOP = ""
"""Letter for the end of a word."""
_LETTERS = 0x110000
"""Number of code points of Unicode, each of which could be the next letter."""


@dataclass(frozen=True)
class Spelling:
    """A unigram model of the letters of rare words, with the end of the word as a letter."""

    counts: Mapping[str, int]
    total: int

    @classmethod
    def of(cls, words: Mapping[str, int]) -> "Spelling":
        """Count the letters of words.

        Args:
            words: Rare words with how often they occur.
        """
        counts: Counter[str] = Counter()
        for word, n in words.items():
            for letter in (*word, _STOP):
                counts[letter] += n
        return cls(counts, sum(counts.values()))

    def bits(self, word: str) -> float:
        """Return the cost of a word's letters, in bits.

        Letters that were never counted share one count, which is divided among all code points.
        """
        return sum(map(self._bits, (*word, _STOP)))

    def bits_of(self, words: Mapping[str, int]) -> float:
        """Return the cost of words, each times its occurrences, in bits."""
        return sum(n * self.bits(word) for word, n in words.items())

    def _bits(self, letter: str) -> float:
        count = self.counts.get(letter, 0)
        if not count:
            return math.log2(self.total + 1) + math.log2(_LETTERS)
        return math.log2(self.total + 1) - math.log2(count)


_CLOSING = frozenset((*".,!?;:)]}%'\u2019", "...", "n't", "'s", "'re", "'ve", "'ll", "'d", "'m"))
"""Words and marks without a preceding blank."""


def shown_texts(tokens: Sequence[str], unit: Unit) -> list[str]:
    """Return the text that each token adds: words with their blank, nothing for the end."""
    return ["" if token == END else _shown(token, unit) for token in tokens]


def joined(tokens: Iterable[str], unit: Unit) -> str:
    """Join tokens to a text."""
    return "".join(shown_texts(list(tokens), unit)).removeprefix(" " if unit == "words" else "")


def _shown(token: str, unit: Unit) -> str:
    if unit == "characters":
        return "\n" if token == NEW_LINE else token
    return token if token in _CLOSING else f" {token}"


END = "[END]"
"""Token of the end of a document, after which the next one begins."""
END_ID = len(RESERVED)


@dataclass(frozen=True)
class TokenPart:
    """The documents of one part, as the model reads them."""

    rows: Sequence[np.ndarray]
    """Token ids of each document, each (T_i,) int32, none of them padding or the end."""
    characters: int
    """Number of characters that the tokens stand for: those of each word and a blank after it, and
    one for the end of each document; for characters there are no blanks.
    """
    unknown: Mapping[str, int]
    """Number of occurrences of each token missing from the vocabulary."""

    @property
    def tokens(self) -> int:
        """Number of tokens that are predicted, including the ends of the documents."""
        return sum(map(len, self.rows)) + len(self.rows)

    @property
    def unknown_share(self) -> float:
        """Share of the tokens missing from the vocabulary."""
        return sum(self.unknown.values()) / self.tokens


@dataclass(frozen=True)
class ReadDocuments:
    """All parts, with the vocabulary learned from the training part."""

    unit: Unit
    vocabulary: Vocabulary
    """Vocabulary of the training part; its first token, number 2, is `END`."""
    train: TokenPart
    validation: TokenPart
    test: TokenPart
    spelling: Spelling
    """Costs of the letters of words missing from the vocabulary."""

    def parts(self) -> dict[str, TokenPart]:
        """Return the parts by name: train, validation, test."""
        return {"train": self.train, "validation": self.validation, "test": self.test}


def read_tokens(data: LanguageData, config: LanguageDataConfig) -> ReadDocuments:
    """Learn the vocabulary of the training documents, and read all documents.

    Raises:
        DataError: No word is left.
    """
    trained = index_tokens(data.train, reading=config.reads)
    kept = build_vocabulary(trained, config.max_vocabulary, config.min_count)
    vocabulary = Vocabulary((END, *kept.tokens[len(RESERVED) :]))
    train = _part(trained, vocabulary, config.reads, None)
    validation, test = (
        _part(
            index_tokens(documents, reading=config.reads),
            vocabulary,
            config.reads,
            config.held_out_tokens,
        )
        for documents in (data.validation, data.test)
    )
    rare = Counter(train.unknown)
    rare.update(token for token, n in zip(trained.tokens, trained.counts, strict=True) if n == 1)
    spelling = Spelling.of(rare)
    return ReadDocuments(config.reads, vocabulary, train, validation, test, spelling)


def _part(index: TokenIndex, vocabulary: Vocabulary, unit: Unit, most: int | None) -> TokenPart:
    """Convert the documents to ids, of at most `most` tokens each."""
    numbers = {token: number for number, token in enumerate(vocabulary.tokens)}
    ids = np.array([numbers.get(token, UNKNOWN) for token in index.tokens], np.int32)
    rows = index.rows
    if most is not None:
        lengths = np.cumsum([len(row) + 1 for row in rows])
        rows = rows[: 1 + int(np.searchsorted(lengths, most))]
    counts = np.bincount(np.concatenate([np.zeros(0, np.int32), *rows]), minlength=len(ids))
    sizes = np.array([1 if unit == "characters" else len(token) + 1 for token in index.tokens])
    missing = np.flatnonzero((ids == UNKNOWN) & (counts > 0))
    return TokenPart(
        [ids[row] for row in rows],
        int(sizes @ counts) + len(rows) if len(ids) else len(rows),
        {index.tokens[number]: int(counts[number]) for number in missing},
    )
