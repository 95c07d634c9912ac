"""Names that others choose, fit for a line of a log, a label, a terminal."""

from __future__ import annotations

import re

# Control characters, line ends of all kinds, and what turns the direction of writing around.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LONGEST = 256


def printable(text: str, longest: int = LONGEST) -> str:
    """The text with escapes for what has no shape, and cut where it is too long."""
    cut = text if len(text) <= longest else f"{text[:longest]}... ({len(text)} characters)"
    return escaped(cut)


def escaped(text: str) -> str:
    """The text with escapes, at full length."""
    return _UNFIT.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
