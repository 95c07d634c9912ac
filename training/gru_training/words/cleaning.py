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
"""Number of code points of Unicode."""
_PASSES = 3
"""A letter with three marks, as Greek has, is put together in three steps."""
_NOT_ASCII = r"(?s).*[^\x00-\x7F].*"
_UNSEEN = (
    ("<!--", "-->"),
    (r"(?i:<(?:script|style)\b)", r"(?i:</(?:script|style)\s*>)"),
)
"""Pairs of patterns that open and close what no reader sees."""
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
    places = tf.where(tf.strings.regex_full_match(text, _NOT_ASCII))  # (K, 1)
    decoded = tf.strings.unicode_decode(tf.gather_nd(text, places), "UTF-8")
    points, rows = _composed(*_replaced(decoded.flat_values, decoded.value_rowids()))
    # What makes the values valid is not asked again in the graph: it would double it.
    changed = tf.RaggedTensor.from_value_rowids(points, rows, decoded.nrows(), validate=False)
    return tf.tensor_scatter_nd_update(text, places, tf.strings.unicode_encode(changed, "UTF-8"))


class _Table(NamedTuple):
    """The replacements of characters, and the pairs that become one."""

    points: np.ndarray
    """(P,) int32, ascending: code points that are replaced."""
    starts: np.ndarray
    """(P + 1,) int32: where the replacement of each begins in `values`."""
    values: np.ndarray
    """Code points, int32."""
    pairs: np.ndarray
    """(Q,) int64, ascending: first · `_ALL` + second."""
    joined: np.ndarray
    """(Q,) int32: the code point that each pair becomes."""


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
    """Return the tables of `normalise`, for other engines.

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


def _replaced(points: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Replace each character by its compatible ones.

    Args:
        points: (N,) int32, of all texts one after the other.
        rows: (N,) int64, the text of each.

    Returns:
        Code points (M,) and rows (M,), in the form of the arguments.
    """
    table = _table()
    keys, starts = tf.constant(table.points), tf.constant(table.starts)
    place = tf.minimum(tf.searchsorted(keys, points), len(table.points) - 1)
    found = tf.equal(tf.gather(keys, place), points)
    begin = tf.where(found, tf.gather(starts, place), 0)
    length = tf.where(found, tf.gather(starts, place + 1) - begin, 1)
    # Of each new character: which old one it comes from, and which of that one's it is.
    source = tf.repeat(tf.range(tf.size(points)), length)
    number = tf.range(tf.size(source)) - tf.gather(tf.cumsum(length, exclusive=True), source)
    other = tf.gather(tf.constant(table.values), tf.gather(begin, source) + number)
    values = tf.where(tf.gather(found, source), other, tf.gather(points, source))
    return values, tf.gather(rows, source)


def _composed(points: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Join letters and the marks behind them into one character, where there is one.

    Args:
        points: (N,) int32, of all texts one after the other.
        rows: (N,) int64, the text of each.

    Returns:
        Code points (M,) and rows (M,), in the form of the arguments.
    """
    table = _table()
    pairs, joined = tf.constant(table.pairs), tf.constant(table.joined)
    for _ in range(_PASSES):
        after = tf.concat([points[1:], [0]], 0)[: tf.size(points)]
        same = tf.equal(tf.concat([rows[1:], [-1]], 0)[: tf.size(rows)], rows)
        key = tf.cast(points, tf.int64) * _ALL + tf.cast(after, tf.int64)
        place = tf.minimum(tf.searchsorted(pairs, key), len(table.pairs) - 1)
        join = same & tf.equal(tf.gather(pairs, place), key)
        values = tf.where(join, tf.gather(joined, place), points)
        kept = tf.concat([[True], ~join], 0)[: tf.size(join)]  # but for what has been joined
        left = tf.squeeze(tf.where(kept), 1)
        points, rows = tf.gather(values, left), tf.gather(rows, left)
    return points, rows
