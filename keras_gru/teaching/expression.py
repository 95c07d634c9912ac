"""Arithmetic written as text: numbers, named arrays and a few functions, nothing else.

Worked examples quote calculations as texts print them; this evaluates them without `eval`.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping

import numpy as np

from keras_gru.teaching.network_fields import Array

_OPERATORS: dict[type[ast.operator], Callable[[Array, Array], Array]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda a: np.exp(-np.logaddexp(0, -a)),
    "abs": np.abs,
    "sum": np.sum,
    "max": np.max,
    "T": np.transpose,
    "concat": lambda *parts: np.concatenate(parts, axis=-1),
}


def evaluate(expression: str, names: Mapping[str, Array] | None = None) -> Array:
    """Evaluate arithmetic such as `"100 * (h_new[0] - h[0]) / h[0]"` in float64.

    Args:
        expression: Numbers, lists, + - * / **, indexing by integers, the names given, and
            exp, log, tanh, sigmoid, abs, sum, max, T (transpose), concat (last axis).
        names: Arrays by name.

    Raises:
        ValueError: For anything else, naming it.
    """
    return np.asarray(_value(parse(expression), names or {}), dtype=np.float64)


def parse(expression: str) -> ast.expr:
    """The expression's tree.

    Raises:
        ValueError: It is not an expression.
    """
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"expression: expected arithmetic, got {expression!r}") from error


def addends(expression: str) -> list[str]:
    """The terms of the outermost sum as texts, a minus sign before the subtracted ones."""
    return _addends(expression, parse(expression))


def decimals(expression: str) -> int:
    """Decimals of the finest number written in an expression; 0 without any."""
    fractions = re.findall(r"\d\.(\d+)", expression)
    return max((len(fraction) for fraction in fractions), default=0)


def _addends(expression: str, tree: ast.expr) -> list[str]:
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)):
        last = ast.get_source_segment(expression.strip(), tree.right) or ""
        sign = "-" if isinstance(tree.op, ast.Sub) else ""
        return [*_addends(expression, tree.left), f"{sign}({last})"]
    return [ast.get_source_segment(expression.strip(), tree) or ""]


def _value(tree: ast.expr, names: Mapping[str, Array]) -> Array:
    match tree:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number):
            return np.asarray(number, dtype=np.float64)
        case ast.Name(id="inf"):
            return np.asarray(np.inf)
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.List(elts=items):
            return np.array([_value(item, names) for item in items])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
        case ast.Subscript(value=array, slice=index):
            return np.asarray(_value(array, names)[_index(index)])
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in _FUNCTIONS:
            return np.asarray(_FUNCTIONS[name](*(_value(part, names) for part in parts)))
    raise ValueError(f"expression: expected arithmetic over known names, got {ast.unparse(tree)!r}")


def _index(tree: ast.expr) -> int | tuple[int, ...]:
    try:
        index = ast.literal_eval(tree)
    except ValueError:
        index = None
    if isinstance(index, int) or (
        isinstance(index, tuple) and all(isinstance(i, int) for i in index)
    ):
        return index
    raise ValueError(f"expression: expected an integer index, got {ast.unparse(tree)!r}")
