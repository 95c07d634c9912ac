"""Small faults put into modules one at a time, and those that the tests beside them let pass.

    python -m benchmarks.mutants serving/gru_serving/codecs/dtypes.py tests/serving/codecs
    python -m benchmarks.mutants keras_gru/kernel tests/keras_gru/kernel --sample 60

A mutant is a module with another comparison, operator, truth value or integer, `or` for `and`, a
condition that always or never holds, `None` returned, or a statement left out; texts of errors
stay. It exists in memory only, in a fork of a process that has imported what the tests import from
elsewhere. The quick tests are run up to the first that fails; a mutant that passes is printed.
"""

import argparse
import ast
import gc
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

PAIRS = "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, And Or, Add Sub, LShift RShift, BitAnd BitOr"
OTHER = dict(pair.split() for pair in PAIRS.split(","))
OTHER |= {new: old for old, new in OTHER.items()}
OTHER |= {"Mult": "Add", "Div": "Mult", "FloorDiv": "Mult", "Mod": "Mult"}
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list"}
REMOVED = ast.AugAssign | ast.Raise | ast.Break | ast.Continue | ast.Delete
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not long and not browser"]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what was imported before


def mutants(tree: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the text of each mutant of a syntax tree, and what changes the tree into it."""
    for field, value in ast.iter_fields(tree):
        for place, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr):
                continue
            if field in SKIPPED_FIELDS:
                continue
            shown = node if hasattr(node, "lineno") else tree
            text = f"{getattr(shown, 'lineno', 1)}: {' '.join(ast.unparse(shown).split())[:70]}"
            in_list = isinstance(value, list)
            put = partial(value.__setitem__, place) if in_list else partial(setattr, tree, field)
            for new in _others(node, tree):
                yield f"{text} -> {ast.unparse(new) or type(new).__name__}", partial(put, new)
            if not isinstance(node, ast.Raise):
                yield from mutants(node)


def _others(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node."""
    kind = type(node).__name__
    new: list[ast.AST] = [getattr(ast, OTHER[kind])()] if kind in OTHER else []
    match node:
        case ast.Constant(bool(value)):
            new = [ast.Constant(not value)]
        case ast.Constant(int(value)):
            new = [ast.Constant(value + 1), ast.Constant(value - 1)]
        case ast.UnaryOp(ast.Not(), operand):
            new = [operand]
        case ast.Return(ast.expr() as value) if ast.unparse(value) != "None":
            new = [ast.Return(ast.Constant(None))]
        case ast.Expr(value) if not isinstance(value, ast.Constant | ast.Yield | ast.YieldFrom):
            new = [ast.Pass()]
        case ast.Assign([ast.Attribute() | ast.Subscript(), *_]):
            new = [ast.Pass()]
        case _ if isinstance(node, REMOVED):
            new = [ast.Pass()]
    if isinstance(parent, ast.If | ast.IfExp) and node is parent.test:
        new += [ast.Constant(True), ast.Constant(False)]
    for other in new:
        yield ast.fix_missing_locations(ast.copy_location(other, node))


def in_fork(work: Callable[[], int], seconds: float) -> int:
    """Return the status of `work` in a silent process, which a signal ends after that time."""
    if (child := os.fork()) == 0:
        signal.alarm(int(seconds))
        for output in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), output)
        status = 1
        try:
            status = work()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_as_they_are(tests: Sequence[str], noted: Path) -> int:
    """Run the tests, and note what they import from elsewhere and the environment they set."""
    status = pytest.main([*OPTIONS, *tests])
    modules = [(name, getattr(module, "__file__", None)) for name, module in sys.modules.items()]
    foreign = [name for name, file in modules if file and "site-packages" in file]
    noted.write_text(json.dumps([foreign, dict(os.environ)]))
    return status


def run_mutant(file: str, number: int, tests: Sequence[str]) -> int:
    """Run the tests with a mutant in the place of a module."""
    tree = ast.parse(Path(file).read_text())
    list(mutants(tree))[number][1]()
    original = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, name: str) -> object:
        if self.path == file:
            return compile(tree, file, "exec", dont_inherit=True)
        return original(self, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    return pytest.main([*OPTIONS, *tests])


def main(argv: Sequence[str] | None = None) -> int:
    """Print the mutants that pass, and how many were tried; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("module", type=Path, help="a module, or a folder of them")
    parser.add_argument("tests", nargs="+", help="files or folders of tests")
    parser.add_argument("--sample", type=int, metavar="N", help="try N mutants, drawn by lot")
    arguments = parser.parse_args(argv)
    path = arguments.module.resolve()
    every = [
        (str(file), number, text)
        for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
        for number, (text, _) in enumerate(mutants(ast.parse(file.read_text())))
    ]
    lot = random.Random(0).sample(every, min(arguments.sample or len(every), len(every)))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "noted.json"
        if in_fork(partial(run_as_they_are, arguments.tests, noted), 1 << 20):
            parser.exit(1, "the tests fail without any mutant\n")
        foreign, environment = json.loads(noted.read_text())
    patience = 30 + 3 * (time.monotonic() - started)
    os.environ.update(environment)
    for name in foreign:
        with suppress(Exception):
            importlib.import_module(name)
    gc.freeze()
    passed = 0
    for file, number, text in sorted(lot):
        if in_fork(partial(run_mutant, file, number, arguments.tests), patience) == 0:
            passed += 1
            print(f"{os.path.relpath(file)}:{text}", flush=True)
    print(f"{len(lot)} of {len(every)} mutants, of which {passed} pass")
    return 0


if __name__ == "__main__":
    sys.exit(main())
