r"""Untrusted text, made safe for a line of a log, a label of a metric, or a terminal.

A terminal obeys escape sequences, which may hide or rewrite its contents, and direction marks show
a line in another order. They are printed as `\u001b`, which in JSON is the same text.
"""

import re

# C0 with DEL, C1, the two line separators, direction marks, halves of surrogate pairs, invisible
# tags.
_UNSAFE_LETTERS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_SHORT_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
MAX_CHARACTERS = 256


def printable(text: str, longest: int = MAX_CHARACTERS) -> str:
    """Escape what a terminal would obey, and cut long texts."""
    cut = text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"
    return escaped(cut)


def escaped(text: str) -> str:
    """Escape what a terminal would obey, at full length."""
    return _UNSAFE_LETTERS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    # Code points beyond 16 bits are written as a surrogate pair, as in JSON.
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
