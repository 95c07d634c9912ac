"""Fields of a network's JSON: read one, or say which one is wrong and how."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_LARGEST = sys.float_info.max


class NetworkError(ValueError):
    """A network file that cannot be run; the message names field, expectation and value."""


def mapping(content: object, name: str, known: Sequence[str]) -> dict[str, Any]:
    """An object with no keys but the known ones."""
    if not isinstance(content, dict):
        raise NetworkError(
            f"{name}: expected an object with {', '.join(known)}, got {content!r:.60}"
        )
    unknown = [key for key in content if key not in known]
    if unknown:
        raise NetworkError(f"{name}: expected only {', '.join(known)}, got {unknown[0]!r}")
    return content


def required(fields: Mapping[str, Any], name: str, expected: str, prefix: str = "") -> Any:
    """A field that must be there and not null."""
    if fields.get(name) is None:
        raise NetworkError(f"{prefix}{name}: expected {expected}, got nothing")
    return fields[name]


def choice(
    fields: Mapping[str, Any],
    name: str,
    choices: Sequence[str],
    default: str | None = None,
    prefix: str = "",
) -> str:
    """A field with one of a few names."""
    value = fields.get(name, default)
    if not isinstance(value, str) or value not in choices:
        raise NetworkError(f"{prefix}{name}: expected one of {', '.join(choices)}, got {value!r}")
    return value


def array(content: object, name: str, shape: tuple[int | None, ...]) -> Array:
    """Nested lists of finite numbers as an array; None in `shape` stands for any size."""
    _check_numbers(content, name, len(shape))
    try:
        values = np.asarray(content, dtype=np.float64)
    except ValueError as error:
        raise NetworkError(
            f"{name}: expected rows of equal length, got rows that differ"
        ) from error
    wanted = f"({', '.join('any' if size is None else str(size) for size in shape)})"
    if values.ndim != len(shape):
        raise NetworkError(f"{name}: expected shape {wanted}, got {values.shape}")
    if any(size not in (None, got) for size, got in zip(shape, values.shape, strict=True)):
        raise NetworkError(f"{name}: expected shape {wanted}, got {values.shape}")
    return values


def _check_numbers(content: object, name: str, depth: int) -> None:
    if isinstance(content, list):
        for index, item in enumerate(content):
            _check_numbers(item, f"{name}[{index}]", depth - 1)
    elif depth > 0:
        raise NetworkError(f"{name}: expected a list, got {content!r}")
    elif isinstance(content, bool) or not isinstance(content, (int, float)):
        raise NetworkError(f"{name}: expected a number, got {content!r}")
    elif not -_LARGEST <= content <= _LARGEST:
        raise NetworkError(f"{name}: expected a finite number, got {content}")
