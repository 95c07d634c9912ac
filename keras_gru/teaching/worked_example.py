"""Worked examples of published texts: their JSON files, their printed numbers, our verdicts.

A file holds a network (see `keras_gru.teaching.network`), claims and errata. A claim is either a
quantity of the trace with the value that the text prints for it, or a calculation as printed,
stage after stage; errata say why a claim is wrong.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from keras_gru.teaching.cells.notebook import Substitutes, Values
from keras_gru.teaching.expression import addends, decimals, evaluate, parse
from keras_gru.teaching.network import Network, parse_network
from keras_gru.teaching.network_fields import Array, NetworkError
from keras_gru.teaching.trace import Trace, trace

_PACKAGED = Path(__file__).parents[1] / "worked_examples"
_CHECKOUT = Path(__file__).parents[2] / "docs" / "worked_examples"

# Sums of products: a text rounds each term, so its sum may be off by one in the last place.
_SUMS = frozenset(
    ["a_z", "a_r", "a_g", "rhU_g", "hV", "logits", "d_rh", "dh_output", "dh_reset_gate", "dh"]
)
AGREES, CARRIED, DIFFERS = "agrees", "rounding carried", "differs"


@dataclass(frozen=True)
class Verdict:
    """A printed number set beside ours."""

    claim: Mapping[str, Any]
    quantity: str
    """The expression evaluated, or the printed calculation."""
    printed: Array
    computed: Array
    """In float64 from the network's weights and inputs alone."""
    from_printed: Array
    """From the numbers that the text prints one line before."""
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
        """What the text prints, in its order."""
        return list(self.content["claims"])

    @property
    def errata(self) -> list[Mapping[str, Any]]:
        """What the text has wrong: id, kind, cause, equation."""
        return list(self.content.get("errata", []))

    @property
    def variants(self) -> dict[str, str]:
        """What each variant of the network is about, by name."""
        named = self.content.get("variants", {})
        return {name: str(fields["about"]) for name, fields in named.items()}

    def network(self, variant: str | None = None) -> Network | None:
        """The network, or one of its named variants; None for pure arithmetic.

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
        """The first variant whose network has a cell; None for the network as it stands.

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
        """Every claim, judged."""
        return [verdict for claim in self.claims for verdict in self._judge(claim)]

    def _judge(self, claim: Mapping[str, Any]) -> Iterator[Verdict]:
        if "calculation" in claim:
            yield judge_calculation(claim)
        else:
            yield self._judge_quantity(claim)

    def _judge_quantity(self, claim: Mapping[str, Any]) -> Verdict:
        variant = claim.get("variant")
        quantity, step = str(claim["quantity"]), claim.get("step")
        exact, chained = self._traces.get(variant, (None, None))
        computed = evaluate(quantity, _names(exact, step))
        names = dict(_names(chained, step))
        if quantity not in names:  # a formula over printed values, not a line of the trace
            names |= self._printed(variant, step)
        from_printed = evaluate(quantity, names)
        places = int(claim.get("decimals", self.content.get("decimals", 3)))
        unit = 10.0**-places
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
        bound = max(2.5 * unit, self._rounding(quantity, names, variant, step))
        if _within(computed, printed, 0.5 * unit):
            status = AGREES
        elif _within(from_printed, printed, slack * unit) and _within(computed, printed, bound):
            status = CARRIED
        else:
            status = DIFFERS
        return Verdict(claim, quantity, printed, computed, from_printed, places, status)

    def _rounding(
        self, quantity: str, names: Values, variant: str | None, step: int | None
    ) -> float:
        """How far a formula moves if each printed number in it moves by one in its last place."""
        if quantity in _names(self._traces.get(variant, (None, None))[1], step):
            return 0.0
        centre = evaluate(quantity, names)
        moved = np.zeros_like(centre)
        unit = 10.0 ** -int(self.content.get("decimals", 3))
        for at, name in self._substitutes(variant):
            if at != step or not re.search(rf"\b{name}\b", quantity):
                continue
            for index in np.ndindex(names[name].shape):
                nudged = names[name].copy()
                nudged[index] += unit
                moved = moved + np.abs(evaluate(quantity, {**names, name: nudged}) - centre)
        return float(np.max(moved))

    @cached_property
    def _traces(self) -> dict[str | None, tuple[Trace, Trace]]:
        traces = {}
        for variant in (None, *self.content.get("variants", {})):
            network = self.network(variant)
            if network is not None:
                traces[variant] = (trace(network), trace(network, self._substitutes(variant)))
        return traces

    def _substitutes(self, variant: str | None) -> Substitutes:
        """First printed value of every quantity that the text prints whole or in part."""
        found: dict[tuple[int | None, str], Array] = {}
        network = self.network(variant)
        if network is None:
            return found
        exact = trace(network)
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

    def _printed(self, variant: str | None, step: int | None) -> Values:
        names = _names(self._traces[variant][1], step) if variant in self._traces else {}
        return {
            name: np.where(np.isnan(value), names[name], value)
            for (at, name), value in self._substitutes(variant).items()
            if at == step
        }


def judge_calculation(claim: Mapping[str, Any]) -> Verdict:
    """Check a printed calculation, each stage against the one before it.

    A stage agrees if its terms are the terms before it, rounded as printed, or if its value is
    the value of the stage before it or of the first one, rounded as printed.
    """
    stages = [str(stage) for stage in claim["calculation"]]
    values = [evaluate(stage) for stage in stages]
    status = AGREES
    for after in range(1, len(stages)):
        tolerance = 0.5 * 10.0 ** -decimals(stages[after])
        agrees = any(_within(values[i], values[after], tolerance) for i in (after - 1, 0))
        if not agrees and not _termwise(stages[after - 1], stages[after]):
            status = DIFFERS
    text = " = ".join(stages)
    places = decimals(stages[-1])
    return Verdict(claim, text, values[-1], values[0], values[-2], places, status)


def example_paths() -> dict[str, Path]:
    """The worked examples that come with the package, by name."""
    folder = _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
    return {path.stem: path for path in sorted(folder.glob("*.json"))}


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
    """All worked examples, in the order of their texts."""
    examples = [load_example(name) for name in example_paths()]
    return sorted(examples, key=lambda example: int(example.content["order"]))


def _names(found: Trace | None, step: int | None) -> Values:
    if found is None:
        return {}
    return found.totals if step is None else found.steps[step]


def target(quantity: str) -> tuple[str, Any, bool]:
    """Name, index and transposition of `z`, `z[1]` or `T(dW_z)`; formulas stay whole."""
    match parse(quantity):
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
    terms, rounded = addends(before), addends(after)
    if len(terms) != len(rounded):  # terms that are zero may be left out
        terms = [term for term in terms if evaluate(term) != 0]
    if len(terms) != len(rounded) or len(terms) == 1:
        return False
    return all(
        _within(evaluate(term), evaluate(other), 0.5 * 10.0 ** -decimals(other))
        for term, other in zip(terms, rounded, strict=True)
    )
