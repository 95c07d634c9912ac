"""Docstrings and signatures as the project has them, in the form that autodoc wants.

Lines that a docstring indents are code, with or without a `::` before them. The arguments of a
class are those of its constructor, which Keras' classes hide behind a `__new__` of their own.
"""

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import inspect

_SECTION = re.compile(r"^[A-Z][\w ]*:$")


def code_blocks(lines: list[str]) -> list[str]:
    """The lines with `::` before each block that is indented under no heading of a section."""
    marked: list[str] = []
    open_text = ""  # the latest line that is not indented
    for number, line in enumerate(lines):
        begins = line.startswith("    ") and not (number and lines[number - 1].strip())
        if begins and open_text and not _SECTION.match(open_text) and not open_text.endswith("::"):
            marked += ["::", ""]
            open_text = "::"
        elif line.strip() and not line.startswith(" "):
            open_text = line
        marked.append(line)
    return marked


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = code_blocks(lines)
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # else napoleon takes what is before a colon for a type


def _signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, arguments: str | None, result: Any
) -> tuple[str, str] | None:
    if what != "class" or arguments != "(*args, **kwargs)":
        return None
    signature = inspect.signature(obj.__init__, bound_method=True)
    shown = inspect.stringify_signature(
        signature, show_return_annotation=False, unqualified_typehints=True
    )
    return shown, ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Come before napoleon, which rewrites the sections."""
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-docstring", _process, priority=100)
    return {"parallel_read_safe": True}
