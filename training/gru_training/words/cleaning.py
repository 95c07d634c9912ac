"""Cleaning of texts as people write and export them: Unicode, HTML, addresses, emoji.

The steps are those of `gru_serving.preprocessing.texts`, whose patterns distinguish blanks and
letters in ASCII only.
"""

import unicodedata
from functools import cache

from gru_serving.preprocessing.texts import Cut, Exchange, Normalise, Replace, TextStep

_END_OF_LETTERS = 0x323B0
"""Code point from which on characters are unassigned, private or tags."""
_PASSES = 3
"""A letter with three marks, as in Greek, is composed in three steps."""
BLANKS = r"\t\n\f\r "
"""Characters that count as blanks in a pattern, for use in brackets."""
_OTHER_CASES = {"s": "ſ"}
"""Letters, besides capitals, whose case variants are equal."""


def _any_case(word: str) -> str:
    letters = (f"[{each}{each.upper()}{_OTHER_CASES.get(each, '')}]" for each in word)
    return "".join(letters)


_HIDDEN_ELEMENTS = f"(?:{_any_case('script')}|{_any_case('style')})"
_HIDDEN_MARKUP = (
    ("<!--", "-->"),
    (rf"<{_HIDDEN_ELEMENTS}\b", rf"</{_HIDDEN_ELEMENTS}[{BLANKS}]*>"),
)
"""Pairs of patterns around invisible content."""
_TAG = r"</?[A-Za-z][^<>]*>"
_ADDRESS = rf"""(?:[Hh][Tt][Tt][Pp][Ss]?://|www\.)([^{BLANKS}/<>"'?#]+)[^{BLANKS}<>"']*"""
_INVISIBLE = "[\u00ad\u200c-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f]"
_SKIN_TONE = "[\U0001f3fb-\U0001f3ff]"
_BREAK = "\u200b"
"""A blank without width, used between words of languages without other blanks."""
_ENTITIES = {
    "nbsp|#160|#[xX][aA]0": " ",
    "lt|#60": "<",
    "gt|#62": ">",
    "quot|#34": '"',
    "apos|#39|#[xX]27|lsquo|rsquo|#8217": "'",
    "ldquo|rdquo|laquo|raquo": '"',
    "ndash|mdash|#8211|#8212": "-",
    "hellip|#8230": "...",
    "euro|#8364": "€",
    "auml": "ä",
    "ouml": "ö",
    "uuml": "ü",
    "Auml": "Ä",
    "Ouml": "Ö",
    "Uuml": "Ü",
    "szlig": "ß",
    "eacute": "é",
    "egrave": "è",
    "agrave": "à",
    "ccedil": "ç",
    "ntilde": "ñ",
    "aacute": "á",
    "iacute": "í",
    "oacute": "ó",
    "uacute": "ú",
    "amp|#38": "&",  # last: what it leaves is no entity
}


def cleaning_steps() -> list[TextStep]:
    """Return the steps that remove what carries no meaning.

    Characters of one meaning become one (`normalise`), HTML loses its tags and the most common
    entities become characters, web addresses are reduced to their host, and invisible characters
    are removed, including those that join emoji or colour them.
    """
    return [
        Cut(_HIDDEN_MARKUP, " "),
        Replace(_TAG, " "),
        Exchange(tuple((f"&(?:{names});", text) for names, text in _ENTITIES.items())),
        normalise(),
        Replace(_INVISIBLE, ""),
        Replace(_SKIN_TONE, ""),
        Replace(_BREAK, " "),
        Replace(_ADDRESS, r" \1 "),
    ]


@cache
def normalise() -> Normalise:
    """Return the step that converts texts to Unicode's form NFKC.

    Full width, ligatures and split accents become usual letters.

    Unlike NFKC it does not sort several marks of one letter, nor join Korean letters into
    syllables.
    """
    replaced, pairs = [], []
    for point in range(0x80, _END_OF_LETTERS):
        if 0xAC00 <= point <= 0xD7A3 or 0xD800 <= point <= 0xDFFF:
            continue
        character = chr(point)
        normal = unicodedata.normalize("NFKC", character)
        if normal != character:
            replaced.append((character, normal))
            continue
        parts = unicodedata.normalize("NFD", character)
        if len(parts) > 1:
            first = unicodedata.normalize("NFC", parts[:-1])
            if len(first) == 1:
                pairs.append((first + parts[-1], character))
    return Normalise(tuple(replaced), tuple(pairs), _PASSES)
