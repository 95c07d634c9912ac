r"""The cleaning of texts and their splitting into tokens: the steps, and characters in TensorFlow.

Cleaning concerns texts as people write and export them: Unicode, HTML, addresses, emoji. The steps
are those of `gru_serving.preprocessing.texts`, whose patterns distinguish blanks and letters in
ASCII only.

TensorFlow's string operations have tables of Unicode (RE2's classes, ICU's lower case) of their own
version. For servers without it, TensorFlow is asked about every character once.
"""

import unicodedata
from functools import cache
from typing import Any, Literal

import numpy as np

from gru_serving.preprocessing.texts import (
    ATTACHED,
    Cut,
    Exchange,
    FindTokens,
    Lower,
    Normalise,
    Replace,
    Spacing,
    SplitCharacters,
    TextStep,
    Tokenizer,
    UnicodeTables,
)

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


BEGIN = "▁"
"""Mark of the beginning of a run without blanks, used while tokens are searched for."""
NEW_LINE = "␤"
"""Replacement of a line break among characters, since vocabulary files have a token per line."""

Reading = Literal["words", "spaced", "characters"]
"""Kind of the tokens of a text, see `tokenizer`."""

_LINE_BREAK = rf"<br[{BLANKS}]*/?>"
_BLANK = r"[\p{Z}\p{Cc}]+"
_APOSTROPHE = r"[’ʼ＇]"
_UNSPACED_SCRIPT = r"[\p{Han}\p{Hiragana}\p{Katakana}]"
_UNSPACED_SCRIPTS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}]"
_NEGATION = r"n't\b"
_VISIBLE = f"[^{BLANKS}]"
_TOKEN = rf"n't\b|'(?:s|re|ve|ll|d|m)\b|[\p{{L}}\p{{N}}\p{{M}}]+|\.{{2,}}|{_VISIBLE}"
_CLASSES = ("L", "N", "M", "Z", "Cc", "Han", "Hiragana", "Katakana", "Thai", "Lao", "Myanmar",
            "Khmer")  # fmt: skip


@cache
def tokenizer(cleaned: bool = False, reading: Reading = "words") -> Tokenizer:
    """Make the tokenizer of a reading.

    With `words`, tokens are in lower case. Words, punctuation marks and the parts of contractions
    (`do n't`, `it 's`, as in the Penn treebank) are tokens of their own, and so is each Chinese or
    Japanese character; HTML line breaks count as blanks. `spaced` puts `ATTACHED` before tokens
    that do not follow a blank, so the full stop in `end.` differs from that in `end .`: the typing
    of a text shows its origin. `characters` are all characters; a line break of any kind is
    `NEW_LINE`.

    Args:
        cleaned: Whether to clean texts before (`gru_training.words.tokens`). Each letter of Thai,
            Lao, Burmese and Khmer, too, is then a token.
        reading: Kind of the tokens.
    """
    steps: list[TextStep] = cleaning_steps() if cleaned else []
    if reading == "characters":
        steps += [Replace("\r\n|\r|\n", NEW_LINE), SplitCharacters()]
        return Tokenizer(steps, None, unicode_tables)
    steps += [
        Replace(_BLANK, " "),  # first: TensorFlow's lower() stops at a NUL
        Lower(),
        Replace(_LINE_BREAK, " "),
        Replace(_APOSTROPHE, "'"),
        Replace(_UNSPACED_SCRIPTS if cleaned else _UNSPACED_SCRIPT, r" \0 "),
    ]
    negation = Replace(_NEGATION, " n't")
    if reading == "words":
        return Tokenizer([*steps, negation, FindTokens(_TOKEN)], None, unicode_tables)
    run = Replace(f" *({_VISIBLE}+)", rf" {BEGIN}\1")
    steps += [run, negation, FindTokens(f"{BEGIN}?(?:{_TOKEN})")]
    return Tokenizer(steps, Spacing(BEGIN, ATTACHED), unicode_tables)


@cache
def unicode_tables() -> UnicodeTables:
    """Ask TensorFlow about every character of UTF-8 except NUL, at which lower() ends."""
    import tensorflow as tf

    points = np.concatenate([np.arange(1, 0xD800), np.arange(0xE000, 0x110000)])
    characters = tf.strings.unicode_encode(points[:, np.newaxis].astype(np.int32), "UTF-8")
    classes = {
        name: points[tf.strings.regex_full_match(characters, rf"\p{{{name}}}").numpy()]
        for name in _CLASSES
    }
    classes["Cc"] = np.concatenate([[0], classes["Cc"]])
    lowered = tf.strings.lower(characters, encoding="utf-8").numpy()
    other = np.flatnonzero(lowered != characters.numpy())
    # The letters that make a Σ the end of a word are found by the result next to them.
    behind = _ends_a_word(tf.strings.join([characters, "Σ"]))
    through = _ends_a_word(tf.strings.join(["A", characters, "Σ"]))
    return UnicodeTables(
        {name: _ranges(found) for name, found in classes.items()},
        {chr(points[place]): lowered[place].decode() for place in other},
        _ranges(points[behind]),
        _ranges(points[through & ~behind]),
    )


def _ends_a_word(texts: Any) -> np.ndarray:
    import tensorflow as tf

    lowered = tf.strings.lower(texts, encoding="utf-8")
    ends: np.ndarray = tf.strings.regex_full_match(lowered, "(?s).*ς").numpy()
    return ends


def _ranges(points: np.ndarray) -> str:
    """Write ascending code points as ranges of a pattern, without mixing ASCII and others."""
    ends = (np.diff(points) > 1) | (points[1:] == 0x80)
    runs = np.split(points, np.flatnonzero(ends) + 1) if len(points) else []
    return "".join(
        _escaped(run[0]) if len(run) == 1 else f"{_escaped(run[0])}-{_escaped(run[-1])}"
        for run in runs
    )


def _escaped(point: int) -> str:
    return f"\\{chr(point)}" if chr(point) in r"\]^-[" else chr(point)
