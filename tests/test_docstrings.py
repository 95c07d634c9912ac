"""Docstrings can be read alone: arguments are noun phrases that exist, and errors are named.

`make lint` runs this file, which imports nothing of the packages.
"""

import ast
import re

import pytest

from tests.packages import PACKAGES

# A description that goes on from the name in place of standing alone: "labels: Of texts."
REMARK = re.compile(
    r"(Of|Whose|As|Likewise|Told|That|Which|Without|With|To|For|From|In|On|By|Under|Where|Who|Also"
    r"|Not|Or|Them|Those|It|They|Its|Has|Is|Are|Else|Among|Behind|Beside|Left|Until|Since|Any)\b"
)
ARGUMENTS = re.compile(r"^Args:\n((?: {4}.*\n|\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^ {4}(\**\w+(?:, \w+)*): (.+)$", re.MULTILINE)
UNNAMED = {"KeyboardInterrupt", "NotImplementedError", "StopIteration", "SystemExit"}
FILES = [
    path
    for package in PACKAGES.values()
    for path in sorted(package.rglob("*.py"))
    if not path.name.endswith("_pb2.py")
]


def remarks(tree):
    """Entries of docstrings that are no noun phrase."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for name, said in ENTRY.findall(ast.get_docstring(node) or ""):
                if REMARK.match(said):
                    yield f"{node.name}: {name}: {said}"


def unnamed_errors(tree):
    """Public functions that describe their arguments, raise an error, and name none."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        said = ast.get_docstring(node) or ""
        if node.name.startswith("_") or "Args:" not in said or "Raises:" in said:
            continue
        errors = set(raised(node.body)) - UNNAMED - caught(node)
        if found := {name for name in errors if name not in said}:
            yield f"{node.name} raises {', '.join(sorted(found))}"


def stale_arguments(tree):
    """Entries for arguments that a function does not have.

    A class may describe the arguments of its base, which another file can define.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            known = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            names = {argument.arg for argument in known if argument}
            section = ARGUMENTS.search(f"{ast.get_docstring(node) or ''}\n")
            for entry, _ in ENTRY.findall(section[1] if section else ""):
                for name in entry.replace("*", "").split(", "):
                    if name not in names:
                        yield f"{node.name} has no argument {name}"


def raised(body):
    """Names of the errors that statements raise, functions within left out."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield ast.unparse(node.exc.func).rpartition(".")[2]
        yield from raised(ast.iter_child_nodes(node))


def caught(function):
    """Names of the errors that a function handles; all that it raises of a command's `main`."""
    handlers = [node.type for node in ast.walk(function) if isinstance(node, ast.ExceptHandler)]
    if handlers and function.name == "main":  # a command prints its errors
        return set(raised(function.body))
    return {ast.unparse(kind) for kind in handlers if kind is not None}


@pytest.mark.slow  # `make lint` runs it
def test_docstrings():
    found = [
        f"{path.relative_to(path.parents[2])}: {fault}"
        for path in FILES
        for tree in [ast.parse(path.read_text("utf-8"))]
        for check in (remarks, stale_arguments, unnamed_errors)
        for fault in check(tree)
    ]
    assert found == []
    assert len(FILES) > 300


def test_what_is_found():
    tree = ast.parse(
        'def f(labels, rows):\n    """Fit.\n\n    Args:\n        labels: Of texts.\n'
        '        rows: Rows (B,).\n        seed: Seed of the draws.\n    """\n'
        '    if rows:\n        raise ValueError("no")\n'
    )
    assert list(remarks(tree)) == ["f: labels: Of texts."]
    assert list(stale_arguments(tree)) == ["f has no argument seed"]
    assert list(unnamed_errors(tree)) == ["f raises ValueError"]
