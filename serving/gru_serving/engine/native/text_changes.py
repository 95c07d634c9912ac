"""What the steps of `tokens.json` do to a text before its tokens are found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

TextChange = Callable[[str], str]

_SIGMA, _SMALL_SIGMA, _FINAL_SIGMA = "Σ", "σ", "ς"


class LowerCase:
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
        by: What takes their place.
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
        passes: How often pairs are looked for: what a pair becomes may be the first of another.
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
