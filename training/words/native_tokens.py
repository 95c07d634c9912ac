"""How texts become word ids, written down for engines without TensorFlow.

`tokenize` is a row of TensorFlow's string operations, whose tables of Unicode (RE2's classes, ICU's
lower case) are of TensorFlow's own version. Here TensorFlow is asked about every character once,
and its answers become the classes of Python's regular expressions, so that an engine depends on no
other table. `serving.export` compares the two on texts of all kinds before anything is written.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import numpy as np
import tensorflow as tf

from training.words import vocabulary
from training.words.vocabulary import Vocabulary

TOKENS_FILE = "tokens.json"
WORDS_FILE = "words.txt"

_SIGMA, _FINAL_SIGMA = "Σ", "ς"
_ASCII_END = 0x80
_CLASS = re.compile(r"\\p\{(\w+)\}")


def token_files(words: Vocabulary) -> dict[str, str]:
    """The files from which `serving.engine.native.tokens` reads texts, by file name."""
    return {
        TOKENS_FILE: json.dumps({"format": 1, "steps": _steps()}, indent=1) + "\n",
        WORDS_FILE: "".join(f"{token}\n" for token in words.tokens),
    }


def _steps() -> list[dict[str, Any]]:
    """Those of `training.words.vocabulary.tokenize`, in its order."""
    return [
        {"decode": "utf-8"},
        {"replace": _patterns(vocabulary._BLANK), "by": " "},
        {"lower": _lower_case()},
        {"replace": _patterns(vocabulary._LINE_BREAK), "by": " "},
        {"replace": _patterns(vocabulary._APOSTROPHE), "by": "'"},
        {"replace": _patterns(vocabulary._UNSPACED_SCRIPT), "by": r" \g<0> "},
        {"replace": _patterns(vocabulary._NEGATION), "by": " n't"},
        # A blank behind each match, and a split at blanks, in one.
        {"find": _patterns(vocabulary._TOKEN)},
    ]


def _patterns(pattern: str) -> dict[str, str | None]:
    r"""An RE2 pattern for Python with re.ASCII, where \b, \s and \d mean what they do in RE2.

    Returns:
        `any`: for all texts. `ascii`: for those of ASCII alone, where small classes are several
        times as fast; None where no such text matches.
    """
    whole = _CLASS.sub(lambda found: _ranges(_class_points(found[1])), pattern)
    small = _CLASS.sub(
        lambda found: _ranges([point for point in _class_points(found[1]) if point < _ASCII_END]),
        pattern,
    )
    return {"any": whole, "ascii": None if "[]" in small else small}


@functools.cache
def _characters() -> tuple[list[int], Any]:
    """All that UTF-8 can hold but NUL, at which TensorFlow's lower() ends."""
    points = [point for point in range(1, 0x110000) if not 0xD800 <= point < 0xE000]
    return points, tf.constant([chr(point) for point in points])


@functools.cache
def _class_points(name: str) -> list[int]:
    r"""The code points of `\p{name}`, ascending."""
    points, characters = _characters()
    held = tf.strings.regex_full_match(characters, rf"\p{{{name}}}").numpy()
    with_nul = [0, *points] if name.startswith("C") else points
    members = np.array(([True] if name.startswith("C") else []) + held.tolist())
    return [point for point, inside in zip(with_nul, members, strict=True) if inside]


def _ranges(points: list[int]) -> str:
    """Ascending code points as ranges, in escapes."""
    runs: list[list[int]] = []
    for point in points:
        if runs and point == runs[-1][1] + 1:
            runs[-1][1] = point
        else:
            runs.append([point, point])
    return "".join(
        _escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}" for low, high in runs
    )


def _escaped(point: int) -> str:
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


@functools.cache
def _lower_case() -> dict[str, Any]:
    """What TensorFlow makes of each character, and of a sigma at the end of a word.

    The only lower case that depends on its neighbours is that of Σ (Unicode, table 3-17,
    Final_Sigma): ς behind a cased letter and before none, where letters to be passed over do not
    count. Which letters these are shows in what becomes of Σ next to them.
    """
    points, characters = _characters()
    lowered = tf.strings.lower(characters, encoding="utf-8").numpy()
    changed = {
        chr(point): low.decode()
        for point, low in zip(points, lowered, strict=True)
        if low.decode() != chr(point)
    }
    behind = _final(tf.strings.join([characters, _SIGMA]))
    through = _final(tf.strings.join(["A", characters, _SIGMA]))
    cased = [point for point, final in zip(points, behind, strict=True) if final]
    passed = [
        point
        for point, final, before in zip(points, through, behind, strict=True)
        if final and not before
    ]
    return {"map": changed, "cased": f"[{_ranges(cased)}]", "passed": f"[{_ranges(passed)}]"}


def _final(texts: Any) -> list[bool]:
    lowered = tf.strings.lower(texts, encoding="utf-8")
    ends: list[bool] = (
        tf.strings.regex_full_match(lowered, f"(?s).*{_FINAL_SIGMA}").numpy().tolist()
    )
    return ends
