"""Texts to tokens and word ids without TensorFlow, whose answers they are.

`tokens.json`, which `gru_training.words.tokens_file` writes, holds steps, each of which changes a
text: `decode`, `replace` a pattern `by` another text, `cut` what stands between two patterns,
`exchange` several texts for others, `normalise`, `lower`; one finds the tokens. A last one may say
of each whether it stands `attached` to the one before. Patterns are Python's, with re.ASCII, and
stand there twice: for `any` text, and for texts of `ascii` alone, for which null says that nothing
matches.

Servers read texts with this module, too, so it imports nothing of its package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

TextChange = Callable[[str], str]
PADDING, UNKNOWN = 0, 1
_ENTITY = b"&"  # how all begins that is exchanged
_SIGMA, _SMALL_SIGMA, _FINAL_SIGMA = "Σ", "σ", "ς"


class Tokenizer:
    """Splits texts into tokens.

    Args:
        steps: Steps of `tokens.json`.

    Raises:
        ValueError: A step is unknown.
    """

    def __init__(self, steps: Sequence[Mapping[str, Any]]) -> None:
        *_, last = steps
        self._then = _of_tokens(last)
        if self._then is not None:
            steps = steps[:-1]
        self._any, self._ascii = _Reading(steps, "any"), _Reading(steps, "ascii")
        # What takes the place of ASCII may be none.
        self._exchanges = any("exchange" in step for step in steps)

    @classmethod
    def read(cls, path: Path) -> Tokenizer:
        """Read a `tokens.json`."""
        return cls(json.loads(path.read_text("utf-8"))["steps"])

    def __call__(self, text: bytes) -> list[str]:
        """The tokens of a text; bytes that are no UTF-8 become U+FFFD."""
        if text.isascii() and not (self._exchanges and _ENTITY in text):
            words = self._ascii(text.decode("ascii"))
        else:
            words = self._any(text.decode("utf-8", "replace"))
        return words if self._then is None else self._then(words)


class _Reading:
    """The steps for one kind of text: `any`, or of ASCII alone."""

    def __init__(self, steps: Sequence[Mapping[str, Any]], kind: str) -> None:
        self._changes: list[TextChange] = []
        find: re.Pattern[str] | None = None
        for step in steps:
            if "find" in step:
                find = re.compile(step["find"][kind], re.ASCII)
            elif step != {"decode": "utf-8"} and (change := _change(step, kind)):
                self._changes.append(change)
        if find is None:
            raise ValueError("no step finds tokens")
        # With one group, which is the whole pattern, as without any.
        self._find = find.findall

    def __call__(self, text: str) -> list[str]:
        for change in self._changes:
            text = change(text)
        return self._find(text)


def _of_tokens(step: Mapping[str, Any]) -> Callable[[list[str]], list[str]] | None:
    """Return the change of tokens that a step makes; None where it changes texts."""
    match step:
        case {"begin": begin, "attached": attached}:
            return partial(_with_spacing, begin=begin, attached=attached)
    return None


def _with_spacing(tokens: list[str], begin: str, attached: str) -> list[str]:
    """Tokens without the mark of those behind a blank, and with that of the others."""
    return [
        attached + token if token[:1] != begin else token[1:] if len(token) > 1 else token
        for token in tokens
    ]


def _change(step: Mapping[str, Any], kind: str) -> TextChange | None:
    """Return the change that a step makes to one kind of text; None for nothing."""
    match step:
        case {"replace": patterns, "by": by}:
            pattern = patterns[kind]
            return pattern and partial(re.compile(pattern, re.ASCII).sub, by)
        case {"cut": patterns, "by": by}:
            return Cut(patterns[kind], by)
        case {"exchange": pairs}:
            return Exchange(pairs) if kind == "any" else None
        case {"normalise": table}:
            return Normalisation(**table) if kind == "any" else None
        case {"lower": table}:
            return LowerCase(**table) if kind == "any" else str.lower
    raise ValueError(f"unknown step {sorted(step)}")


class Words:
    """The known words and their ids.

    Args:
        tokens: A word's place is its id; the first two stand for padding and unknown words.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self._ids = {token: place for place, token in enumerate(tokens) if place > UNKNOWN}

    @classmethod
    def read(cls, path: Path) -> Words:
        """Read a file of one word per line."""
        return cls(path.read_text("utf-8").removesuffix("\n").split("\n"))

    def look_up(self, rows: Sequence[Sequence[str]]) -> np.ndarray:
        """Ids (B, T) int32 of rows of tokens, padded with 0 at the end; T is at least 1."""
        ids = np.full((len(rows), max(map(len, rows), default=0) or 1), PADDING, np.int32)
        known = self._ids.get
        for row, tokens in zip(ids, rows, strict=True):
            row[: len(tokens)] = [known(token, UNKNOWN) for token in tokens]
        return ids


def shown(token: str, mark: str) -> str:
    """A token without a mark before it."""
    return token.removeprefix(mark) or token


def padded(rows: Sequence[Sequence[str]]) -> np.ndarray:
    """Tokens (B, T) as `bytes` objects, padded with empty ones; T is at least 1."""
    table = np.full((len(rows), max(map(len, rows), default=0) or 1), b"", object)
    for row, tokens in zip(table, rows, strict=True):
        row[: len(tokens)] = [token.encode() for token in tokens]
    return table


class LowerCase:
    """The conversion to lower case as TensorFlow does it.

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
        """The text in lower case."""
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


class Cut:
    """Takes out what stands between two patterns, and these themselves.

    As the pattern `opening.*?closing`, but in one pass over the text however often something is
    opened and never closed.

    Args:
        between: Openings and closings.
        by: Text that takes the place of what is cut.
    """

    def __init__(self, between: Sequence[tuple[str, str]], by: str) -> None:
        openings = "|".join(f"({opening})" for opening, _ in between)
        self._opening = re.compile(openings, re.ASCII)
        self._closings = [re.compile(closing, re.ASCII) for _, closing in between]
        self._by = by

    def __call__(self, text: str) -> str:
        """The text without them."""
        kept = list[str]()
        done = place = 0
        closed = dict[int, bool]()  # whether there may be a closing further on, by kind
        while opened := self._opening.search(text, place):
            kind = (opened.lastindex or 1) - 1
            end = (
                self._closings[kind].search(text, opened.end()) if closed.get(kind, True) else None
            )
            if end is None:
                closed[kind] = False
                place = opened.start() + 1
                continue
            kept += (text[done : opened.start()], self._by)
            done = place = end.end()
        if not kept:
            return text
        return "".join((*kept, text[done:]))


class Exchange:
    """Puts texts in place of others, all in one pass.

    Args:
        pairs: Patterns without groups, none of which matches within another's match, each with
            the text that takes its place.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._pattern = re.compile("|".join(f"({pattern})" for pattern, _ in pairs), re.ASCII)
        self._texts = ["", *(text for _, text in pairs)]

    def __call__(self, text: str) -> str:
        """The text with those."""
        return self._pattern.sub(lambda found: self._texts[found.lastindex or 0], text)


class Normalisation:
    """Characters of one meaning as one.

    Args:
        map: Characters, each by what it becomes.
        pairs: Two characters by the one that they become; what is a second one is no first one.
        passes: Number of passes over the pairs: what a pair becomes may be the first of another.
    """

    def __init__(self, map: Mapping[str, str], pairs: Mapping[str, str], passes: int) -> None:
        self._map = str.maketrans(dict(map))
        self._pairs, self._passes = dict(pairs), passes
        firsts, seconds = ("".join(sorted({pair[i] for pair in pairs})) for i in (0, 1))
        self._second = re.compile(f"[{re.escape(seconds)}]").search
        self._pair = re.compile(f"[{re.escape(firsts)}][{re.escape(seconds)}]")

    def __call__(self, text: str) -> str:
        """The text with those."""
        text = text.translate(self._map)
        if self._second(text):
            for _ in range(self._passes):
                text = self._pair.sub(lambda found: self._pairs.get(found[0], found[0]), text)
        return text
