"""Names of classes that probably mean the same class."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

_MOST_LABELS = 300
"""Number of labels above which comparing all pairs takes too long."""
_MIN_LETTERS = 4
_MAX_MISSPELT_SHARE = 0.2
"""Largest share of another label's rows at which a label one letter apart counts as its
misspelling.
"""
_SEPARATORS = "#;|,"
_DIGITS = re.compile(r"\d+")


def spellings(counts: Mapping[str, int]) -> list[list[str]]:
    """Find labels that differ only in case, blanks or the form of a number.

    Args:
        counts: Rows by label.

    Returns:
        Groups of two or more, each with the most frequent label first.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        groups[_key(label)].append(label)
    return [group for group in groups.values() if len(group) > 1]


def classes_of(labels: Iterable[str], classes: Collection[str]) -> dict[str, str]:
    """Map labels to the classes that differ from them in spelling only.

    Args:
        labels: The different labels. One that is a class, or that no class or several are spelled
            like, is mapped to itself.
        classes: Names of the classes.
    """
    spelled = defaultdict(list)
    for name in classes:
        spelled[_key(name)].append(name)
    found = {label: spelled.get(_key(label), ()) for label in labels}
    return {label: names[0] if len(names) == 1 else label for label, names in found.items()}


def misspellings(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Find rare labels that are one letter away from a far more frequent one.

    Returns pairs of both.

    Labels that differ only in digits, such as `ward 1` and `ward 2`, are left out.

    Args:
        counts: Rows by label.
    """
    if len(counts) > _MOST_LABELS:
        return []
    found = []
    for label in sorted(counts):
        for other in sorted(counts):
            if counts[label] <= _MAX_MISSPELT_SHARE * counts[other] and _one_apart(
                _key(label), _key(other)
            ):
                found.append((label, other))
    return found


def separator_of(labels: Collection[str]) -> tuple[str, str] | None:
    """Find the character that separates several labels, such as doccano's #, and a label with it.

    Most of the parts between it then occur in two or more labels.

    Args:
        labels: The different labels.
    """
    for separator in _SEPARATORS:
        joined = sorted(label for label in labels if separator in label)
        parts = Counter(part.strip() for label in labels for part in label.split(separator))
        often = sum(count > 1 for count in parts.values())
        if len(joined) > 1 and "" not in parts and often > len(parts) / 2:
            return separator, joined[0]
    return None


def _key(label: str) -> str:
    try:
        number = float(label)
    except ValueError:
        return " ".join(label.casefold().split())
    return label if math.isnan(number) else f"{number:g}"


def _one_apart(one: str, other: str) -> bool:
    """Tell whether one insertion, deletion, replacement or swap makes two labels equal."""
    if min(len(one), len(other)) < _MIN_LETTERS or one == other:
        return False
    if _DIGITS.sub("", one) == _DIGITS.sub("", other):
        return False
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return max(len(one), len(other)) == 1 or (len(one) == 2 and one == other[::-1])
