"""Worked examples of published texts: their JSON files, their printed numbers, our verdicts.

A file holds a network (see `keras_gru.teaching.network`), claims and errata. A claim is either a
quantity of the trace with the value that the text prints for it, or a calculation as printed,
stage after stage; errata say why a claim is wrong. Quantities and calculations are arithmetic
written as text: numbers, named arrays and a few functions, evaluated without `eval`.
"""

import ast
import json
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from keras_gru.teaching.cells import Array, Values, sigmoid
from keras_gru.teaching.network import Network, NetworkError, parse_network
from keras_gru.teaching.trace import Substitutes, Trace, trace

# Sums of products: a text rounds each term, so its sum may be off by one in the last place.
_SUMS = frozenset(
    ["a_z", "a_r", "a_g", "rhU_g", "hV", "logits", "d_rh", "dh_output", "dh_reset_gate", "dh"]
)
AGREES, CARRIED, DIFFERS = "agrees", "rounding carried", "differs"


@dataclass(frozen=True)
class Verdict:
    """A printed number compared with the computed one."""

    claim: Mapping[str, Any]
    quantity: str
    """The expression evaluated, or the printed calculation."""
    printed: Array
    computed: Array
    """Value in float64 from the network's weights and inputs alone."""
    from_printed: Array
    """Value from the numbers that the text prints one line before."""
    decimals: int
    status: str
    """`agrees`: equal to the printed precision. `rounding carried`: the printed line follows
    from the printed line before, whose rounding it carries. `differs`: neither."""


@dataclass(frozen=True)
class WorkedExample:
    """One example of one text."""

    content: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return str(self.content["name"])

    @property
    def claims(self) -> list[Mapping[str, Any]]:
        """The text's printed numbers and calculations, in its order."""
        return list(self.content["claims"])

    @property
    def errata(self) -> list[Mapping[str, Any]]:
        """The text's errors: id, kind, cause and equation of each."""
        return list(self.content.get("errata", []))

    @property
    def variants(self) -> dict[str, str]:
        """Descriptions of the network's variants, by name."""
        named = self.content.get("variants", {})
        return {name: str(fields["about"]) for name, fields in named.items()}

    def network(self, variant: str | None = None) -> Network | None:
        """Read the network or one of its named variants; None for pure arithmetic.

        Raises:
            NetworkError: The example has no such variant.
        """
        fields = self.content.get("network")
        if fields is None:
            return None
        if variant is None:
            return parse_network(fields)
        variants = self.content.get("variants", {})
        if variant not in variants:
            known = (
                f"expected one of {', '.join(variants)}"
                if variants
                else f"{self.name} has no variants"
            )
            raise NetworkError(f"variant: {known}, got {variant!r}")
        changed = {k: v for k, v in variants[variant].items() if k != "about"}
        return parse_network({**fields, **changed})

    def variant_with(self, cell: str) -> str | None:
        """Find the first variant whose network has a cell; None for the network as it stands.

        Raises:
            NetworkError: No variant has it.
        """
        for variant in (None, *self.variants):
            network = self.network(variant)
            if network is not None and network.cell_name == cell:
                return variant
        raise NetworkError(f"--cell: expected a cell that {self.name} has, got {cell!r}")

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Judge every claim."""
        return [
            judge_calculation(claim) if "calculation" in claim else self._judge_quantity(claim)
            for claim in self.claims
        ]

    def _judge_quantity(self, claim: Mapping[str, Any]) -> Verdict:
        quantity, step = str(claim["quantity"]), claim.get("step")
        exact, chained, substitutes = self._traces.get(claim.get("variant"), (None, None, {}))
        computed = evaluate(quantity, _names(exact, step))
        places = int(claim.get("decimals", self._places))
        unit = 10.0**-places
        names, bound = dict(_names(chained, step)), 2.5 * unit
        if quantity not in names:  # a formula over printed values, not a line of the trace
            printed_values = {
                name: np.where(np.isnan(value), names[name], value)
                for (at, name), value in substitutes.items()
                if at == step
            }
            names |= printed_values
            bound = max(bound, _movement(quantity, names, printed_values, 10.0**-self._places))
        from_printed = evaluate(quantity, names)
        if "range" in claim:
            printed = np.asarray(claim["range"], dtype=np.float64)
            status = AGREES if _inside(computed, printed, 0.5 * unit) else DIFFERS
            return Verdict(claim, quantity, printed, computed, from_printed, places, status)
        printed = np.asarray(claim.get("printed", computed), dtype=np.float64)
        if printed.shape != computed.shape:
            raise ValueError(
                f"{self.name}: {claim['where']}: {quantity}: expected printed values of shape "
                f"{computed.shape}, got {printed.shape}"
            )
        slack = 1.5 if quantity in _SUMS else 0.5
        if _within(computed, printed, 0.5 * unit):
            status = AGREES
        elif _within(from_printed, printed, slack * unit) and _within(computed, printed, bound):
            status = CARRIED
        else:
            status = DIFFERS
        return Verdict(claim, quantity, printed, computed, from_printed, places, status)

    @property
    def _places(self) -> int:
        return int(self.content.get("decimals", 3))

    @cached_property
    def _traces(self) -> dict[str | None, tuple[Trace, Trace, Substitutes]]:
        """The exact trace of each variant, the one from printed values, and those values."""
        traces = {}
        for variant in (None, *self.variants):
            network = self.network(variant)
            if network is not None:
                exact = trace(network)
                substitutes = self._substitutes(variant, exact)
                traces[variant] = exact, trace(network, substitutes), substitutes
        return traces

    def _substitutes(self, variant: str | None, exact: Trace) -> Substitutes:
        """Collect the first printed value of every quantity, whole or in part."""
        found: dict[tuple[int | None, str], Array] = {}
        for claim in self.claims:
            if "printed" not in claim or claim.get("variant") != variant:
                continue
            name, index, transposed = target(str(claim["quantity"]))
            step = claim.get("step")
            value = _names(exact, step).get(name)
            if value is None:
                continue
            substitute = found.setdefault((step, name), np.full(value.shape, np.nan))
            printed = np.asarray(claim["printed"], dtype=np.float64)
            printed = printed.T if transposed else printed
            substitute[index] = np.where(np.isnan(substitute[index]), printed, substitute[index])
        return found


def _movement(quantity: str, names: Values, printed: Values, unit: float) -> float:
    """Bound a formula's change if each printed number in it moves by one in its last place."""
    centre = evaluate(quantity, names)
    moved = np.zeros_like(centre)
    for name in printed:
        if not re.search(rf"\b{name}\b", quantity):
            continue
        for index in np.ndindex(names[name].shape):
            nudged = names[name].copy()
            nudged[index] += unit
            moved = moved + np.abs(evaluate(quantity, {**names, name: nudged}) - centre)
    return float(np.max(moved))


def judge_calculation(claim: Mapping[str, Any]) -> Verdict:
    """Check a printed calculation, each stage against the one before it.

    A stage agrees if its terms are the terms before it, rounded as printed, or if its value is
    the value of the stage before it or of the first one, rounded as printed.
    """
    stages = [str(stage) for stage in claim["calculation"]]
    values = [evaluate(stage) for stage in stages]
    status = AGREES
    for after in range(1, len(stages)):
        tolerance = 0.5 * 10.0 ** -_decimals(stages[after])
        agrees = any(_within(values[i], values[after], tolerance) for i in (after - 1, 0))
        if not agrees and not _termwise(stages[after - 1], stages[after]):
            status = DIFFERS
    text = " = ".join(stages)
    places = _decimals(stages[-1])
    return Verdict(claim, text, values[-1], values[0], values[-2], places, status)


def example_folder() -> Path:
    """Return the folder of the examples, in a package or in a checkout."""
    in_package = Path(__file__).parents[1] / "worked_examples"
    if in_package.is_dir():
        return in_package
    return Path(__file__).parents[2] / "docs" / "worked_examples"


def example_paths() -> dict[str, Path]:
    """List the worked examples that come with the package, by name."""
    return {path.stem: path for path in sorted(example_folder().glob("*.json"))}


def load_example(name: str) -> WorkedExample:
    """Load a worked example by name.

    Raises:
        KeyError: No example has this name; the message lists those that exist.
    """
    paths = example_paths()
    if name not in paths:
        raise KeyError(f"name: expected one of {', '.join(paths)}, got {name!r}")
    return WorkedExample(json.loads(paths[name].read_text(encoding="utf-8")))


def load_examples() -> list[WorkedExample]:
    """Load all worked examples, in the order of their texts."""
    examples = [load_example(name) for name in example_paths()]
    return sorted(examples, key=lambda example: int(example.content["order"]))


def _names(found: Trace | None, step: int | None) -> Values:
    if found is None:
        return {}
    return found.totals if step is None else found.steps[step]


def target(quantity: str) -> tuple[str, Any, bool]:
    """Split `z`, `z[1]` or `T(dW_z)` into name, index and transposition; formulas stay whole."""
    match _parse(quantity):
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            return name, ast.literal_eval(index), False
        case ast.Call(func=ast.Name(id="T"), args=[ast.Name(id=name)]):
            return name, Ellipsis, True
    return quantity, Ellipsis, False


def _within(value: Array, printed: Array, tolerance: float) -> bool:
    return bool(np.all(np.abs(value - printed) <= tolerance + 1e-9))


def _inside(value: Array, limits: Array, tolerance: float) -> bool:
    low, high = limits
    return bool(np.all(value >= low - tolerance) and np.all(value <= high + tolerance))


def _termwise(before: str, after: str) -> bool:
    terms, rounded = _addends(before), _addends(after)
    if len(terms) != len(rounded):  # terms that are zero may be left out
        terms = [term for term in terms if evaluate(term) != 0]
    if len(terms) != len(rounded) or len(terms) == 1:
        return False
    return all(
        _within(evaluate(term), evaluate(other), 0.5 * 10.0 ** -_decimals(other))
        for term, other in zip(terms, rounded, strict=True)
    )


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
    "sigmoid": sigmoid,
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
        names: Values of the names in the expression.

    Raises:
        ValueError: The expression contains anything else; the message names it.
    """
    return np.asarray(_value(_parse(expression), names or {}), dtype=np.float64)


def _parse(expression: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"expression: expected arithmetic, got {expression!r}") from error


def _addends(expression: str, tree: ast.expr | None = None) -> list[str]:
    """Split the outermost sum into terms, with a minus sign before the subtracted ones."""
    tree = _parse(expression) if tree is None else tree
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)):
        last = ast.get_source_segment(expression.strip(), tree.right) or ""
        sign = "-" if isinstance(tree.op, ast.Sub) else ""
        return [*_addends(expression, tree.left), f"{sign}({last})"]
    return [ast.get_source_segment(expression.strip(), tree) or ""]


def _decimals(expression: str) -> int:
    """Count the decimals of the finest number written in an expression; 0 without any."""
    fractions = re.findall(r"\d\.(\d+)", expression)
    return max((len(fraction) for fraction in fractions), default=0)


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
