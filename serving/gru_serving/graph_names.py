"""TensorFlow's messages without the names of nodes, which mean nothing to a model's users."""

from __future__ import annotations

import re

# Blanks are counted with a limit: messages may quote megabytes of them.
# Of several errors only the first is reported: the others follow from it, or repeat it.
_SEVERAL = re.compile(
    r"^\d+ root error\(s\) found\.\s*\(0\) (?:[A-Z_]+: |[A-Z][\w ]+: )?(.*?)(?=\n\s*\(1\) |\Z)",
    re.S,
)
_PLACE = re.compile(r"\s{0,4}\[\[(?:\{\{[^{}]*\}\})+[^\[\]]*\]\]|\n\t \[\[[^\s\[\]]*\]\]")
_NAME = re.compile(r"(?:\[_Derived_\])?\s{0,4}\{\{(?:function_node|node) [^{}]*\}\} ?")
_ASSERTED = re.compile(r"(\[\w+) \([\w./]+:\d+\)( = \])")
_STACK = re.compile(
    r"\n\s{0,4}(?:Detected at node|Original stack trace for|Stack trace for op).*", re.S
)
_EAGER = re.compile(r" \[Op:\w+\].*$", re.S)
_ENDS = re.compile(r"\n\d+ (?:successful operations|derived errors ignored)\.", re.S)


def without_node_names(message: str) -> str:
    """The message as it would be for a function without a graph behind it."""
    several = _SEVERAL.match(message)
    if several is not None:
        message = _ENDS.sub("", several[1])
    if "{{" in message:
        message = _NAME.sub("", _PLACE.sub("", message))
    message = _ASSERTED.sub(r"\1\2", _STACK.sub("", message))
    return _EAGER.sub("", message)
