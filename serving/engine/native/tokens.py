"""Texts to tokens and word ids, as a version's files describe it; the answers are TensorFlow's.

`tokens.json` holds steps, each of which changes a text: `decode`, `replace` a pattern `by` another
text, `lower`; the last one finds the tokens. Patterns are Python's, with re.ASCII, and stand there
twice: for `any` text, and for texts of `ascii` alone, for which null says that nothing matches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

_SIGMA, _SMALL_SIGMA, _FINAL_SIGMA = "Σ", "σ", "ς"
_PADDING, _UNKNOWN = 0, 1


class Tokenizer:
    """Splits texts into tokens.

    Args:
        steps: Of `tokens.json`.

    Raises:
        ValueError: A step is unknown.
    """

    def __init__(self, steps: Sequence[Mapping[str, Any]]) -> None:
        self._any, self._ascii = _Reading(steps, "any"), _Reading(steps, "ascii")

    @classmethod
    def read(cls, path: Path) -> Tokenizer:
        """From a `tokens.json`."""
        return cls(json.loads(path.read_text("utf-8"))["steps"])

    def __call__(self, text: bytes) -> list[str]:
        """The tokens of a text; bytes that are no UTF-8 become U+FFFD."""
        if text.isascii():
            return self._ascii(text.decode("ascii"))
        return self._any(text.decode("utf-8", "replace"))


class _Reading:
    """The steps for one kind of text: `any`, or of ASCII alone."""

    def __init__(self, steps: Sequence[Mapping[str, Any]], kind: str) -> None:
        self._changes: list[Callable[[str], str]] = []
        find: re.Pattern[str] | None = None
        for step in steps:
            if "replace" in step:
                if step["replace"][kind] is not None:
                    pattern = re.compile(step["replace"][kind], re.ASCII)
                    self._changes.append(partial(pattern.sub, step["by"]))
            elif "lower" in step:
                self._changes.append(str.lower if kind == "ascii" else _LowerCase(**step["lower"]))
            elif "find" in step:
                find = re.compile(step["find"][kind], re.ASCII)
            elif step != {"decode": "utf-8"}:
                raise ValueError(f"unknown step {sorted(step)}")
        if find is None:
            raise ValueError("no step finds tokens")
        # With one group, which is the whole pattern, as without any.
        self._find = find.findall

    def __call__(self, text: str) -> list[str]:
        for change in self._changes:
            text = change(text)
        return self._find(text)


class _LowerCase:
    """TensorFlow's lower case.

    Args:
        map: The characters that it changes, each by what it becomes.
        cased: Pattern of the letters behind which a Σ ends a word.
        passed: Pattern of those that do not count for that.
    """

    def __init__(self, map: Mapping[str, str], cased: str, passed: str) -> None:
        self._map = str.maketrans(dict(map))
        cased_letter = re.compile(cased)
        self._cased = cased_letter.match
        self._passed = re.compile(passed).match

    def __call__(self, text: str) -> str:
        if _SIGMA in text:
            text = self._with_final_sigmas(text)
        return text.translate(self._map)

    def _with_final_sigmas(self, text: str) -> str:
        small = list(text)
        for place, character in enumerate(text):
            if character == _SIGMA:
                final = self._meets(text, range(place - 1, -1, -1)) and not self._meets(
                    text, range(place + 1, len(text))
                )
                small[place] = _FINAL_SIGMA if final else _SMALL_SIGMA
        return "".join(small)

    def _meets(self, text: str, places: range) -> bool:
        """Whether the next letter that counts is a cased one."""
        for place in places:
            character = text[place]
            if self._cased(character):
                return True
            if not self._passed(character):
                return False
        return False


class Words:
    """The known words and their ids.

    Args:
        tokens: A word's place is its id; the first two stand for padding and unknown words.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self._ids = {token: place for place, token in enumerate(tokens) if place > _UNKNOWN}

    @classmethod
    def read(cls, path: Path) -> Words:
        """From a file of one word per line."""
        return cls(path.read_text("utf-8").removesuffix("\n").split("\n"))

    def look_up(self, rows: Sequence[Sequence[str]]) -> np.ndarray:
        """Ids (B, T) int32 of rows of tokens, padded with 0 at the end; T is at least 1."""
        ids = np.full((len(rows), max(map(len, rows), default=0) or 1), _PADDING, np.int32)
        known = self._ids.get
        for row, tokens in zip(ids, rows, strict=True):
            row[: len(tokens)] = [known(token, _UNKNOWN) for token in tokens]
        return ids


def padded(rows: Sequence[Sequence[str]]) -> np.ndarray:
    """Tokens (B, T) as `bytes` objects, padded with empty ones; T is at least 1."""
    table = np.full((len(rows), max(map(len, rows), default=0) or 1), b"", object)
    for row, tokens in zip(table, rows, strict=True):
        row[: len(tokens)] = [token.encode() for token in tokens]
    return table
