"""Tokens as they continue a text."""

from collections.abc import Iterable, Sequence

from gru_training.language.config import Unit
from gru_training.language.reading import END
from gru_training.words.tokens import NEW_LINE

_CLOSING = frozenset((*".,!?;:)]}%'\u2019", "...", "n't", "'s", "'re", "'ve", "'ll", "'d", "'m"))
"""Words and marks without a blank before them."""


def shown_texts(tokens: Sequence[str], unit: Unit) -> list[str]:
    """What each token adds to the text before it: a word its blank, the end nothing."""
    return ["" if token == END else _shown(token, unit) for token in tokens]


def joined(tokens: Iterable[str], unit: Unit) -> str:
    """A text of these tokens."""
    return "".join(shown_texts(list(tokens), unit)).removeprefix(" " if unit == "words" else "")


def _shown(token: str, unit: Unit) -> str:
    if unit == "characters":
        return "\n" if token == NEW_LINE else token
    return token if token in _CLOSING else f" {token}"
