"""Pages that a reader types from top to bottom: their blocks, run in order, in one folder.

A block ```text that follows a block ```sh or ```python is what that one prints.
"""

import contextlib
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.serving.servers import running

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {"gru-train": "gru_training.__main__", "gru-serve": "gru_serving.__main__"}
TASKS = ("sentiment", "forecasting")
BLOCK = re.compile(
    r"^```(?P<kind>sh|python)\n(?P<code>.*?)^```$(?:\n\n?```text\n(?P<shown>.*?)^```$)?",
    re.M | re.S,
)
NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """Something to type, and what the page says that it prints (None: the page says nothing)."""

    kind: str
    code: str
    shown: str | None

    @property
    def commands(self):
        """The words of each command of a shell block."""
        lines = self.code.replace("\\\n", " ").strip().split("\n")
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks(page):
    """What a page, named from the root of the repository, asks its reader to type."""
    found = BLOCK.finditer((ROOT / page).read_text("utf-8"))
    return [Block(one["kind"], one["code"], one["shown"]) for one in found]


@dataclass
class Reader:
    """Types blocks in a folder, and keeps the server that one of them starts until the end."""

    folder: Path
    open: contextlib.ExitStack
    names: dict = field(default_factory=lambda: {"__name__": "__main__"})
    server: object = None

    def type_in(self, block, status=0, more=()):
        """Run a block, trainings with `more` arguments; gives what it printed."""
        out = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out):
            if block.kind == "python":
                exec(compile(self._here(block.code), "lesson", "exec"), self.names)
            else:
                for words in block.commands:
                    added = more if words[1] in TASKS else ()
                    self._command([*(self._here(word) for word in words), *added], status)
        return out.getvalue()

    def _here(self, word):
        """Text with this folder, and with the ports of the server that runs."""
        word = word.replace("$PWD", str(self.folder))
        if self.server:
            word = word.replace("localhost:8501", f"localhost:{self.server.rest_port}")
            word = word.replace("localhost:8500", f"localhost:{self.server.port}")
        return word

    def _command(self, words, status):
        program, *arguments = words
        if words[:3] == ["python", "-m", "keras_gru"]:
            program, arguments = "keras_gru.__main__", arguments[2:]
        if words[:2] == ["gru-serve", "serve"]:
            flags = [flag for flag in arguments[1:] if "port=" not in flag]
            self.server = self.open.enter_context(running(self.folder / "log", *flags))
        elif program in PROGRAMS or program.startswith("keras_gru"):
            main = importlib.import_module(PROGRAMS.get(program, program)).main
            with contextlib.ExitStack() as stack:
                if arguments[-2:-1] == [">"]:
                    *arguments, _, name = arguments
                    file = stack.enter_context(Path(name).open("w", encoding="utf-8"))
                    stack.enter_context(contextlib.redirect_stdout(file))
                assert (main(arguments) or 0) == status, words
        else:
            done = subprocess.run(
                words,
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "no_proxy": "*"},
            )
            sys.stdout.write(done.stdout)


@contextlib.contextmanager
def reader(folder):
    """A reader whose server ends with the block."""
    with contextlib.ExitStack() as stack:
        yield Reader(folder, stack)


def assert_prints(printed, shown, rel=0.0, abs=0.0):
    """Assert that a page shows what was printed: the words exactly, the numbers within bounds.

    A line "..." stands for lines that the page leaves out. Widths of columns don't count.
    """
    got, after = _tokens(printed), 0
    for part in re.split(r"^\.\.\.$", shown, flags=re.M):
        wanted = _tokens(part)
        masked = [mask for mask, _ in wanted]
        places = range(after, len(got) - len(wanted) + 1)
        fits = [n for n in places if [mask for mask, _ in got[n : n + len(wanted)]] == masked]
        assert fits, f"expected to print\n{part}\nprinted\n{printed}"
        after = fits[0] + len(wanted)
        for (_, numbers), (word, expected) in zip(got[fits[0] : after], wanted, strict=True):
            assert numbers == pytest.approx(expected, rel=rel, abs=abs), (word, printed)


def _tokens(text):
    """Words with their numbers masked, and those numbers."""
    drawn = re.sub(r"[─━═┃│┏┓┗┛├┤┌┐└┘┡┩╇┳┴┬┼]+", " ", text)
    return [
        (
            NUMBER.sub("#", word),
            [float(n.replace(",", "").replace("−", "-")) for n in NUMBER.findall(word)],
        )
        for word in drawn.split()
    ]
