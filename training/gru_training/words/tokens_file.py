"""The steps from texts to word ids, written down for engines without TensorFlow.

`tokenize` is a row of TensorFlow's string operations, whose tables of Unicode (RE2's classes, ICU's
lower case) are of TensorFlow's own version. Here TensorFlow is asked about every character once,
and its answers become the classes of Python's regular expressions, so that an engine depends on no
other table. `gru_serving.export` compares the two on texts of all kinds before anything is written.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.words import cleaning, tokens
from gru_training.words.tokens import Reading
from gru_training.words.vocabulary import Vocabulary

TOKENS_FILE = "tokens.json"
WORDS_FILE = "words.txt"

_SIGMA, _FINAL_SIGMA = "Σ", "ς"
_ASCII_END, _END = 0x80, 0x110000
_CLASS = re.compile(r"\\p\{(\w+)\}")
_POINT = re.compile(r"\\x\{([0-9A-F]+)\}(?:-\\x\{([0-9A-F]+)\})?")
_BRACKETS = re.compile(r"\[(?:\\.|[^\]\\])*\]")
_ANY_CASE = re.compile(r"\(\?i:(.*)\)")
_PLAIN_LETTER = re.compile(r"\\.|([a-z])")


def token_files(
    words: Vocabulary, cleaned: bool = False, reading: Reading = "words"
) -> dict[str, str]:
    """The files from which `gru_training.words.text_reader` reads texts, by file name.

    Args:
        words: Vocabulary of known words.
        cleaned: Whether texts are cleaned before, as in `tokenize`.
        reading: Rule by which texts are cut into tokens.
    """
    steps = _steps(cleaned, reading)
    content = {"format": 1, "cleaned": cleaned, "reading": reading, "steps": steps}
    return {
        TOKENS_FILE: json.dumps(content, indent=1) + "\n",
        WORDS_FILE: "".join(f"{token}\n" for token in words.tokens),
    }


def _steps(cleaned: bool, reading: Reading) -> list[dict[str, Any]]:
    """List the steps of `gru_training.words.tokens.tokenize` or `spaced_words`, in their order."""
    unspaced = tokens._UNSPACED_SCRIPTS if cleaned else tokens._UNSPACED_SCRIPT
    steps = [
        {"decode": "utf-8"},
        *(_cleaning_steps() if cleaned else []),
        {"replace": _patterns(tokens._BLANK), "by": " "},
        {"lower": _lower_case()},
        {"replace": _patterns(tokens._LINE_BREAK), "by": " "},
        {"replace": _patterns(tokens._APOSTROPHE), "by": "'"},
        {"replace": _patterns(unspaced), "by": r" \g<0> "},
    ]
    negation = {"replace": _patterns(tokens._NEGATION), "by": " n't"}
    if reading == "words":
        # A blank behind each match, and a split at blanks, in one.
        return [*steps, negation, {"find": _patterns(tokens._TOKEN)}]
    ends = {"any": _END, "ascii": _ASCII_END}  # the mark is not ASCII, but all else then is
    return [
        *steps,
        {"replace": _patterns(tokens._RUN), "by": tokens._MARKED_RUN},
        negation,
        {"find": {kind: _translated(tokens._MARKED_TOKEN, end) for kind, end in ends.items()}},
        {"begin": tokens.BEGIN, "attached": tokens.ATTACHED},
    ]


def _cleaning_steps() -> list[dict[str, Any]]:
    """List the steps of `gru_training.words.cleaning.clean`, in its order.

    Entities are exchanged in one pass, not one after the other: none is part of another, nor made
    by what takes the place of another but by `&`, which comes last.
    """
    pairs = [[_patterns(each) for each in kind] for kind in cleaning._UNSEEN]
    cut = {kind: [[each[kind] for each in pair] for pair in pairs] for kind in ("any", "ascii")}
    entities = [[f"&(?:{names});", text] for names, text in cleaning._ENTITIES.items()]
    return [
        {"cut": cut, "by": " "},
        {"replace": _patterns(cleaning._TAG), "by": " "},
        {"exchange": entities},
        {"normalise": cleaning.unicode_table()},
        {"replace": _patterns(cleaning._INVISIBLE), "by": ""},
        {"replace": _patterns(cleaning._SKIN_TONE), "by": ""},
        {"replace": _patterns(cleaning._BREAK), "by": " "},
        {"replace": _patterns(cleaning._ADDRESS), "by": r" \1 "},
    ]


def _patterns(pattern: str) -> dict[str, str | None]:
    r"""An RE2 pattern for Python with re.ASCII, where \b and \d mean what they do in RE2.

    Returns:
        `any`: for all texts. `ascii`: for those of ASCII alone, where small classes are several
        times as fast; None where no such text matches.
    """
    whole, small = (_translated(pattern, end) for end in (_END, _ASCII_END))
    small = re.sub(r"[^\x00-\x7f]", "", small)
    return {"any": whole, "ascii": None if not small or "[]" in small else small}


def _translated(pattern: str, end: int) -> str:
    """Translate a pattern for texts of code points below an end."""
    any_case = _ANY_CASE.fullmatch(pattern)
    if any_case is not None:  # RE2 folds all of Unicode there
        pattern = _PLAIN_LETTER.sub(lambda found: _folded(found, end), any_case[1])
    blanks = "\\t\\n\\f\\r "  # Python's \s has \v as well
    pattern = _BRACKETS.sub(lambda found: found[0].replace(r"\s", blanks), pattern)
    pattern = pattern.replace(r"\s", f"[{blanks}]")
    pattern = _POINT.sub(lambda found: _point_range(found, end), pattern)
    return _CLASS.sub(lambda found: _ranges(_class_points(found[1]), end), pattern)


def _folded(found: re.Match[str], end: int) -> str:
    letter = found[1]
    return f"[{_ranges(_points_of(f'(?i:{letter})'), end)}]" if letter else found[0]


def _point_range(found: re.Match[str], end: int) -> str:
    low = int(found[1], 16)
    return _ranges(np.arange(low, int(found[2] or found[1], 16) + 1), end)


@functools.cache
def _characters() -> tuple[np.ndarray, Any]:
    """All that UTF-8 can hold but NUL, at which TensorFlow's lower() ends."""
    points = np.concatenate([np.arange(1, 0xD800), np.arange(0xE000, _END)])
    return points, tf.strings.unicode_encode(points[:, np.newaxis].astype(np.int32), "UTF-8")


def _class_points(name: str) -> np.ndarray:
    r"""The code points of `\p{name}`, ascending."""
    points = _points_of(rf"\p{{{name}}}")
    return np.concatenate([[0], points]) if name.startswith("C") else points


@functools.cache
def _points_of(pattern: str) -> np.ndarray:
    """The code points that a pattern matches, ascending, without NUL."""
    points, characters = _characters()
    found: np.ndarray = points[tf.strings.regex_full_match(characters, pattern).numpy()]
    return found


def _ranges(points: np.ndarray, end: int = _END) -> str:
    """Ascending code points below an end as ranges, in escapes."""
    points = points[points < end]
    runs = np.split(points, np.flatnonzero(np.diff(points) > 1) + 1) if len(points) else []
    return "".join(
        _escaped(run[0]) if len(run) == 1 else f"{_escaped(run[0])}-{_escaped(run[-1])}"
        for run in runs
    )


def _escaped(point: int) -> str:
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


@functools.cache
def _lower_case() -> dict[str, Any]:
    """Return what TensorFlow makes of each character, and of a sigma at the end of a word.

    The only lower case that depends on its neighbours is that of Σ (Unicode, table 3-17,
    Final_Sigma): ς behind a cased letter and before none, where letters to be passed over do not
    count. Which letters these are shows in what becomes of Σ next to them.
    """
    points, characters = _characters()
    lowered = tf.strings.lower(characters, encoding="utf-8").numpy()
    other = np.flatnonzero(lowered != characters.numpy())
    changed = {chr(points[place]): lowered[place].decode() for place in other}
    behind = _final(tf.strings.join([characters, _SIGMA]))
    through = _final(tf.strings.join(["A", characters, _SIGMA]))
    cased, passed = points[behind], points[through & ~behind]
    return {"map": changed, "cased": f"[{_ranges(cased)}]", "passed": f"[{_ranges(passed)}]"}


def _final(texts: Any) -> np.ndarray:
    lowered = tf.strings.lower(texts, encoding="utf-8")
    ends: np.ndarray = tf.strings.regex_full_match(lowered, f"(?s).*{_FINAL_SIGMA}").numpy()
    return ends
