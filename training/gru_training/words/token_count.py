"""Counting of a text's tokens without TensorFlow, for checks of data before a training.

`gru_training.words.tokens` splits texts for models. Here Python's tables of Unicode and of HTML
replace TensorFlow's, so the number may differ for characters that only one of them knows.
"""

import re
import unicodedata
from functools import cache
from html import unescape

_HIDDEN_MARKUP = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_ADDRESS = re.compile(r"""(?:https?://|www\.)([^\s/<>"'?#]+)[^\s<>"']*""", re.IGNORECASE)
_INVISIBLE_LETTERS = re.compile(
    "[\u00ad\u200c-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]"
)
_BLANK = re.compile(r"[\x00-\x20\x7f-\x9f]+")
_APOSTROPHE = re.compile("[’ʼ＇]")
_UNSPACED = re.compile(
    "[\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fd-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d"
    "\U00020000-\U000323af]"
)
"""Characters of Chinese and Japanese."""
_CLEANED_UNSPACED = re.compile("[\u0e01-\u0eff\u1000-\u109f\u1780-\u17f9]")
"""Letters and marks of Thai, Lao, Burmese and Khmer."""
_NEGATION = re.compile(r"n't\b", re.IGNORECASE | re.ASCII)
_ENDINGS = r"(?:n't|'(?:s|re|ve|ll|d|m))(?![A-Za-z0-9_])"
_ASCII_TOKEN = re.compile(rf"{_ENDINGS}|[a-z0-9]+|\.{{2,}}|\S", re.IGNORECASE | re.ASCII)
_WORD = re.compile(r"[^\W_]")


def token_count(text: str, cleaned: bool) -> int:
    """Count the tokens that a model reads in a text.

    Args:
        text: The text.
        cleaned: Whether the model cleans texts before (`gru_training.words.tokens`).
    """
    plain = text.isascii()
    if cleaned:
        text = _clean(text)
        plain = text.isascii()
    text = _LINE_BREAK.sub(" ", _BLANK.sub(" ", text))
    if not plain:
        text = _UNSPACED.sub(r" \g<0> ", _APOSTROPHE.sub("'", text))
        if cleaned:
            text = _CLEANED_UNSPACED.sub(r" \g<0> ", text)
    text = _NEGATION.sub(" n't", text)
    return len((_ASCII_TOKEN if plain else _any_token()).findall(text))


def may_be_empty(text: str) -> bool:
    """Tell whether a text must be cleaned to know that it contains a token."""
    return "<" in text or "&" in text or _WORD.search(text) is None


def holds_words(text: str) -> bool:
    """Tell whether a text has a letter, a digit or a sign beyond ASCII, such as an emoji."""
    return not text.isascii() or _WORD.search(text) is not None


def _clean(text: str) -> str:
    if "<" in text:
        text = _TAG.sub(" ", _HIDDEN_MARKUP.sub(" ", text))
    if "&" in text:
        text = unescape(text)
    if not text.isascii():
        text = _INVISIBLE_LETTERS.sub("", unicodedata.normalize("NFKC", text)).replace(
            "\u200b", " "
        )
    if "/" in text or "www." in text:
        text = _ADDRESS.sub(r" \1 ", text)
    return text


@cache
def _any_token() -> re.Pattern[str]:
    """Return the pattern of a token of any text, in which marks belong to their letter."""
    marks = [chr(point) for point in range(0x300, 0x1E950) if _is_mark(point)]
    return re.compile(rf"{_ENDINGS}|(?:[^\W_]|[{''.join(marks)}])+|\.{{2,}}|\S", re.IGNORECASE)


def _is_mark(point: int) -> bool:
    return unicodedata.category(chr(point)).startswith("M")
