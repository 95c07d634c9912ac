"""Differences between the answer of TF Serving and that of another server, in one line."""

import json
import math
import re
from typing import Any

from google.protobuf import json_format, text_format
from google.protobuf.message import Message

from gru_serving.protos.pool import POOL

_RELATIVE = 1e-5
"""Difference between two floats that kernels of different builds may have."""
_SHOWN = 300


def difference(wanted: Any, got: Any, contains: bool = False, where: str = "") -> str | None:
    """Name the first place at which two structures of JSON differ; None where they agree.

    Args:
        wanted: Structure that TF Serving answers.
        got: Structure that was answered.
        contains: Whether `got` may have further keys.
        where: Path to the place, for the message.
    """
    if isinstance(wanted, dict) and isinstance(got, dict):
        if missing := sorted(wanted.keys() - got.keys()):
            return f"{where or 'answer'}: the field {missing[0]!r} is missing"
        if not contains and (more := sorted(got.keys() - wanted.keys())):
            return f"{where or 'answer'}: the field {more[0]!r} is not TF Serving's"
        pairs = [(f"{where}.{key}".lstrip("."), wanted[key], got[key]) for key in wanted]
    elif isinstance(wanted, list) and isinstance(got, list):
        if len(wanted) != len(got):
            return f"{where or 'answer'}: expected {len(wanted)} entries; got {len(got)}"
        pairs = [(f"{where}[{n}]", *both) for n, both in enumerate(zip(wanted, got, strict=True))]
    elif _same_value(wanted, got):
        return None
    else:
        return f"{where or 'answer'}: expected {shown(wanted)}; got {shown(got)}"
    found = (difference(old, new, contains, place) for place, old, new in pairs)
    return next((one for one in found if one), None)


def _same_value(wanted: Any, got: Any) -> bool:
    if type(wanted) is not type(got):
        return False
    if isinstance(wanted, float) and math.isfinite(wanted):
        return math.isclose(wanted, got, rel_tol=_RELATIVE)
    return bool(wanted == got) or (wanted != wanted and got != got)  # NaN


def fits(pattern: str, text: str) -> bool:
    """Tell whether a text is the pattern, in which `...` stands for any characters."""
    parts = map(re.escape, pattern.split("..."))
    return re.fullmatch(".*".join(parts), text, re.DOTALL) is not None


def shown(value: Any) -> str:
    """Return a value as text that fits on a line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def as_json(message: Message) -> Any:
    """Turn a message into a structure of JSON, with the names of its fields."""
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, descriptor_pool=POOL
    )


def parsed(text: str, message: Any) -> Any:
    """Parse a message in protobuf's text format.

    Args:
        text: Text of the message.
        message: Class of the message.

    Raises:
        ValueError: The text is no such message.
    """
    try:
        return text_format.Parse(text, message(), descriptor_pool=POOL)
    except text_format.ParseError as error:
        raise ValueError(f"{message.__name__}: {error}: {text}") from None
