"""A directive for the help of a program: one section for each of its commands.

    ```{command-help} gru_serving.__main__ gru-serve
    :commands: "^  ([a-z-]+)  "
    ```

The help is asked for while the site is built, so it is that of the code. `commands` is the regular
expression that finds the names of the commands in the help of the program itself.
"""

import contextlib
import importlib
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

# Help is wrapped to the terminal, and there may be none: the same lines everywhere.
_TERMINAL = {"COLUMNS": "80", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb"}


class CommandHelp(SphinxDirective):
    """Sections with the help of a program and of its commands."""

    required_arguments = 2
    final_argument_whitespace = True
    option_spec: ClassVar = {"commands": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """The help of the program, then the sections."""
        module, program = self.arguments[0], " ".join(self.arguments[1].split())
        main = importlib.import_module(module).main
        overview = help_text(main, ["--help"])
        names = re.findall(self.options["commands"].strip('"'), overview, re.MULTILINE)
        if not names:
            raise self.error(f"expected commands in the help of {program}; found none")
        content: list[nodes.Node] = [_block(overview)]
        for name in dict.fromkeys(names):
            title = f"{program} {name}"
            section = nodes.section("", nodes.title("", title), ids=[nodes.make_id(title)])
            section += _block(help_text(main, [name, "--help"]))
            self.state.document.note_implicit_target(section)
            content.append(section)
        return content


def help_text(main: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> str:
    """What a program prints that is asked for help; an error if it prints something else."""
    printed = io.StringIO()
    with (
        _environment(_TERMINAL),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),  # so argparse ends
    ):
        main(arguments)
    text = "\n".join(line.rstrip() for line in printed.getvalue().splitlines()).strip("\n")
    if not text.startswith("usage:"):
        raise ValueError(f"expected help from {' '.join(arguments)}; got {text!r}")
    return text


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _block(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="text", classes=["command-help"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
