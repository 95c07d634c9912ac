"""Texts split into tokens inside the TensorFlow graph, so that training and serving cannot differ.

Only string and ragged operations are used, all of which a stock TensorFlow Serving has.
"""

from typing import Literal

import tensorflow as tf

from gru_training.words.cleaning import clean

BEGIN = "▁"
"""Mark of the beginning of a run without blanks, while `spaced_words` looks for tokens."""
ATTACHED = "##"
"""Mark before tokens that stand behind no blank, where this is to be told."""

NEW_LINE = "␤"
"""Stands for a line break among characters: files of vocabularies have a token in each line."""

Reading = Literal["words", "spaced", "characters"]
"""Kind of the tokens of a text: those of `tokenize`, `spaced_words` or `characters`."""

# RE2 rewrites, in order. They write the whole match: a group would take six times as long.
# Its \b and \s know ASCII only, hence the classes.
_LINE_BREAK = r"<br\s*/?>"
_BLANK = r"[\s\p{Z}\p{Cc}]+"
_APOSTROPHE = r"[’ʼ＇]"
_UNSPACED_SCRIPT = r"[\p{Han}\p{Hiragana}\p{Katakana}]"
_UNSPACED_SCRIPTS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}]"
_NEGATION = r"n't\b"
_TOKEN = r"(n't\b|'(?:s|re|ve|ll|d|m)\b|[\p{L}\p{N}\p{M}]+|\.{2,}|\S)"
_INNER_TOKEN, _FIRST_TOKEN = f"^([^{BEGIN}].*)", f"^{BEGIN}(.)"
_RUN = r" *(\S+)"
_MARKED_RUN = f" {BEGIN}\\1"
_MARKED_TOKEN = rf"({BEGIN}?(?:n't\b|'(?:s|re|ve|ll|d|m)\b|[\p{{L}}\p{{N}}\p{{M}}]+|\.{{2,}}|\S))"


def tokenize(text: tf.Tensor, cleaned: bool = False) -> tf.RaggedTensor:
    """Split texts into lower-case tokens.

    Words, punctuation marks and the parts of contractions (`do n't`, `it 's`, as in the Penn
    treebank) are tokens of their own, and so is each Chinese or Japanese character. HTML line
    breaks are blanks; bytes that are no UTF-8 become U+FFFD.

    Args:
        text: (B,) string.
        cleaned: Whether to clean texts before (`gru_training.words.cleaning`). Each letter of Thai,
            Lao, Burmese and Khmer, too, is then a token.

    Returns:
        (B, None) ragged string.
    """
    text = _prepared(text, cleaned)
    text = tf.strings.regex_replace(text, _NEGATION, " n't")
    text = tf.strings.regex_replace(text, _TOKEN, r"\0 ")
    return tf.strings.split(text)


def spaced_words(text: tf.Tensor, cleaned: bool = False) -> tf.RaggedTensor:
    """Cut texts like `tokenize`, with `ATTACHED` before tokens that do not stand behind a blank.

    So a full stop in `end.` is not that in `end .`: how a text is typed says where it comes from.

    Args:
        text: (B,) string.
        cleaned: Whether to clean texts before, as in `tokenize`.

    Returns:
        (B, None) ragged string.
    """
    text = _prepared(text, cleaned)
    text = tf.strings.regex_replace(text, _RUN, _MARKED_RUN)
    text = tf.strings.regex_replace(text, _NEGATION, " n't")
    text = tf.strings.regex_replace(text, _MARKED_TOKEN, r"\0 ")
    tokens = tf.strings.split(text)
    flat = tf.strings.regex_replace(tokens.flat_values, _INNER_TOKEN, rf"{ATTACHED}\1")
    return tokens.with_flat_values(tf.strings.regex_replace(flat, _FIRST_TOKEN, r"\1"))


def without_marks(tokens: tf.Tensor) -> tf.Tensor:
    """Tokens of `spaced_words` (N,) as they stand in the text."""
    return tf.strings.regex_replace(tokens, f"^{ATTACHED}(.)", r"\1")


def characters(text: tf.Tensor, cleaned: bool = False) -> tf.RaggedTensor:
    """Split texts into their characters; a line break of any kind is `NEW_LINE`.

    Bytes that are no UTF-8 become U+FFFD.

    Args:
        text: (B,) string.
        cleaned: Whether to clean texts before, as in `tokenize`.

    Returns:
        (B, None) ragged string.
    """
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    if cleaned:
        text = clean(text)
    text = tf.strings.regex_replace(text, r"\r\n|\r|\n", NEW_LINE)
    return tf.strings.unicode_split(text, "UTF-8")


SPLITS = {
    "words": tokenize,
    "spaced": spaced_words,
    "characters": characters,
}
"""Functions that split texts, by reading."""


def _prepared(text: tf.Tensor, cleaned: bool) -> tf.Tensor:
    """Lower-case UTF-8 with plain blanks and apostrophes, and unspaced scripts letter by letter."""
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    if cleaned:
        text = clean(text)
    text = tf.strings.regex_replace(text, _BLANK, " ")  # first: lower() stops at a NUL
    text = tf.strings.lower(text, encoding="utf-8")
    text = tf.strings.regex_replace(text, _LINE_BREAK, " ")
    text = tf.strings.regex_replace(text, _APOSTROPHE, "'")
    unspaced = _UNSPACED_SCRIPTS if cleaned else _UNSPACED_SCRIPT
    return tf.strings.regex_replace(text, unspaced, r" \0 ")
