"""Where a JSON text opens and closes containers, found without reading its values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gru_serving.codecs.rapidjson.reader import MAX_DEPTH

_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1


class Structure(NamedTuple):
    """What a text that begins outside of strings looks like.

    Attributes:
        depth: Containers opened in the text and not closed, after each of its bytes.
        outside: Whether a byte lies outside of strings.
        codes: The bytes themselves.
    """

    depth: np.ndarray
    outside: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, text: bytes) -> Structure:
        """Look through a text that does not end within an escape."""
        if b"\\" in text:  # quotes that end no string
            text = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        codes = np.frombuffer(text, np.uint8)
        steps = _STEPS.take(codes)
        if b'"' in text:
            # Odd after an odd number of quotes; faster than an exclusive or of them.
            inside = (np.cumsum(codes == ord('"'), dtype=np.uint8) & 1).view(bool)
            steps[inside] = 0
            outside = ~inside
        else:
            outside = np.ones(len(codes), bool)
        return cls(np.cumsum(steps, dtype=np.int32), outside, codes)

    def close(self) -> int | None:
        """Where the container around the text is closed; None if the text does not close it."""
        below = self.depth < 0
        at = int(below.argmax()) if len(below) else 0
        return at if len(below) and below[at] else None

    def last_comma(self) -> int | None:
        """The last comma between two elements of the container around the text."""
        commas = np.flatnonzero((self.codes == ord(",")) & (self.depth == 0) & self.outside)
        return int(commas[-1]) if len(commas) else None

    def deeper_than(self, most: int, end: int | None = None) -> int | None:
        """Where more than this many containers are open for the first time, before `end`."""
        deep = self.depth[:end] > most
        at = int(deep.argmax()) if len(deep) else 0
        return at if len(deep) and deep[at] else None


def is_deep(text: bytes) -> bool:
    """Whether a text, or what follows it, opens more containers than any request needs."""
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return False
    return Structure.of(text).deeper_than(MAX_DEPTH) is not None
