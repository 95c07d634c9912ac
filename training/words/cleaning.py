r"""Texts as people write and export them, made alike: Unicode, HTML, addresses, emoji.

Only operations that a stock TensorFlow Serving has are used: a model does in its graph what was
done in training. Patterns are RE2's, whose `\s` and `\b` know ASCII only.
"""

import unicodedata
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

_LAST = 0x323B0
"""Code points from here on are not assigned, private or tags."""
_ALL = 0x110000
"""How many code points there are."""
_PASSES = 3
"""A letter with three marks, as Greek has, is put together in three steps."""
_NOT_ASCII = r"(?s).*[^\x00-\x7F].*"
_UNSEEN = (
    ("<!--", "-->"),
    (r"(?i:<(?:script|style)\b)", r"(?i:</(?:script|style)\s*>)"),
)
"""What opens and closes what no reader sees."""
_TAG = r"</?[A-Za-z][^<>]*>"
_ADDRESS = r"""(?:[Hh][Tt][Tt][Pp][Ss]?://|www\.)([^\s/<>"'?#]+)[^\s<>"']*"""
_INVISIBLE = r"[\x{00AD}\x{200C}-\x{200F}\x{202A}-\x{202E}\x{2060}-\x{2064}\x{FE00}-\x{FE0F}]"
_SKIN_TONE = r"[\x{1F3FB}-\x{1F3FF}]"
_BREAK = "\u200b"
"""A blank without width, between words of languages that have no others."""
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


def clean(text: tf.Tensor) -> tf.Tensor:
    """Undo what says nothing about the meaning.

    Characters of one meaning become one (`normalise`), HTML loses its tags and the commonest
    entities become characters, of web addresses the host stays, and characters that cannot be
    seen are left out, among them those that join emoji or give them a colour.

    Args:
        text: (B,) string of valid UTF-8.

    Returns:
        (B,) string.
    """
    unseen = "|".join(f"{opening}(?s:.*?){closing}" for opening, closing in _UNSEEN)
    text = tf.strings.regex_replace(text, unseen, " ")
    text = tf.strings.regex_replace(text, _TAG, " ")
    for names, character in _ENTITIES.items():
        text = tf.strings.regex_replace(text, f"&(?:{names});", character)
    text = normalise(text)
    text = tf.strings.regex_replace(text, _INVISIBLE, "")
    text = tf.strings.regex_replace(text, _SKIN_TONE, "")
    text = tf.strings.regex_replace(text, _BREAK, " ")
    return tf.strings.regex_replace(text, _ADDRESS, r" \1 ")


def normalise(text: tf.Tensor) -> tf.Tensor:
    """Texts in Unicode's form NFKC: full width, ligatures and split accents as usual letters.

    Other than NFKC it does not sort several marks of one letter, nor join Korean letters into
    syllables.

    Args:
        text: (B,) string of valid UTF-8.

    Returns:
        (B,) string.
    """
    rows = tf.where(tf.strings.regex_full_match(text, _NOT_ASCII))  # (K, 1)
    points = tf.strings.unicode_decode(tf.gather_nd(text, rows), "UTF-8")
    points = _composed(_replaced(points))
    changed = tf.strings.unicode_encode(points, "UTF-8")
    return tf.tensor_scatter_nd_update(text, rows, changed)


class _Table(NamedTuple):
    """What characters become, and which pairs become one."""

    points: np.ndarray
    """(P,) int32, ascending: code points that are replaced."""
    starts: np.ndarray
    """(P + 1,) int32: where the replacement of each begins in `values`."""
    values: np.ndarray
    """Code points, int32."""
    pairs: np.ndarray
    """(Q,) int64, ascending: first · `_ALL` + second."""
    joined: np.ndarray
    """(Q,) int32: what they become."""


@cache
def _table() -> _Table:
    replaced = {}
    pairs = {}
    for point in range(0x80, _LAST):
        if 0xAC00 <= point <= 0xD7A3 or 0xD800 <= point <= 0xDFFF:
            continue
        character = chr(point)
        normal = unicodedata.normalize("NFKC", character)
        if normal != character:
            replaced[point] = [ord(one) for one in normal]
            continue
        parts = unicodedata.normalize("NFD", character)
        if len(parts) > 1:
            first = unicodedata.normalize("NFC", parts[:-1])
            if len(first) == 1:
                pairs[ord(first) * _ALL + ord(parts[-1])] = point
    lengths = [len(values) for values in replaced.values()]
    keys = np.array(sorted(pairs), np.int64)
    return _Table(
        np.array(list(replaced), np.int32),
        np.cumsum([0, *lengths]).astype(np.int32),
        np.array([point for values in replaced.values() for point in values], np.int32),
        keys,
        np.array([pairs[int(key)] for key in keys], np.int32),
    )


def unicode_table() -> dict[str, Any]:
    """What `normalise` does, for other engines.

    Returns:
        `map`: characters by what they become; `pairs`: two by the one that they become, and
        `passes`, how often pairs are looked for. No second one of a pair is the first of another.
    """
    table = _table()
    ends = zip(table.starts, table.starts[1:], strict=False)
    texts = ["".join(map(chr, table.values[start:end])) for start, end in ends]
    pairs = {
        chr(key // _ALL) + chr(key % _ALL): chr(joined)
        for key, joined in zip(table.pairs.tolist(), table.joined.tolist(), strict=True)
    }
    changed = dict(zip(map(chr, table.points), texts, strict=True))
    return {"map": changed, "pairs": pairs, "passes": _PASSES}


def _replaced(points: tf.RaggedTensor) -> tf.RaggedTensor:
    """Each character by its compatible ones, (B, None) to (B, None) int32."""
    table = _table()
    flat = points.flat_values
    place = tf.minimum(tf.searchsorted(table.points, flat), len(table.points) - 1)
    found = tf.equal(tf.gather(table.points, place), flat)
    starts = tf.constant(table.starts)
    begin = tf.where(found, tf.gather(starts, place), 0)
    length = tf.where(found, tf.gather(starts, place + 1) - begin, 1)
    # Of each new character: which old one it comes from, and which of that one's it is.
    source = tf.repeat(tf.range(tf.size(flat)), length)
    number = tf.range(tf.size(source)) - tf.gather(tf.cumsum(length, exclusive=True), source)
    kept = tf.gather(flat, source)
    other = tf.gather(tf.constant(table.values), tf.gather(begin, source) + number)
    values = tf.where(tf.gather(found, source), other, kept)
    rows = tf.gather(points.value_rowids(), source)
    return tf.RaggedTensor.from_value_rowids(values, rows, points.nrows())


def _composed(points: tf.RaggedTensor) -> tf.RaggedTensor:
    """Letters and the marks behind them as one character, where there is one."""
    table = _table()
    for _ in range(_PASSES):
        flat, rows = points.flat_values, points.value_rowids()
        after = tf.concat([flat[1:], tf.zeros_like(flat[:1])], 0)
        same = tf.concat([tf.equal(rows[1:], rows[:-1]), tf.zeros_like(rows[:1], tf.bool)], 0)
        key = tf.cast(flat, tf.int64) * _ALL + tf.cast(after, tf.int64)
        place = tf.minimum(tf.searchsorted(table.pairs, key), len(table.pairs) - 1)
        join = same & tf.equal(tf.gather(table.pairs, place), key)
        values = tf.where(join, tf.gather(tf.constant(table.joined), place), flat)
        gone = tf.concat([tf.zeros_like(join[:1]), join[:-1]], 0)
        values = tf.boolean_mask(values, ~gone)
        points = tf.RaggedTensor.from_value_rowids(
            values, tf.boolean_mask(rows, ~gone), points.nrows()
        )
    return points
