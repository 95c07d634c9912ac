"""The comparison of several models on the same test rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from gru_training.compare.estimates import (
    LEVEL,
    MeasureEstimates,
    of_independent_rows,
    of_rows_in_time,
)
from gru_training.errors import RunDirectoryError
from gru_training.outcomes import Answers, Outcomes

EXACT_TEST_ROWS = 25


class McNemar(NamedTuple):
    """Rows on which one of two models is right and the other wrong, and the test's result."""

    gained: int
    """Rows that only the model gets right."""
    lost: int
    """Rows that only the reference gets right."""
    p_value: float


def mcnemar_test(right: np.ndarray, reference: np.ndarray) -> McNemar:
    """Run McNemar's test (1947) of whether two models are right equally often where they differ.

    It is exact if they differ on fewer than 25 rows; otherwise it is chi-squared without a
    correction for continuity, which keeps its level there and has more power (Fagerland, Lydersen
    and Laake, 2013, "The McNemar test for binary matched-pairs data", BMC Medical Research
    Methodology 13).

    Args:
        right: (N,) bool, the rows that a model gets right.
        reference: (N,) bool, those that the other model gets right.
    """
    gained, lost = int(np.sum(right & ~reference)), int(np.sum(~right & reference))
    table = [[int(np.sum(right & reference)), gained], [lost, int(np.sum(~right & ~reference))]]
    tested = mcnemar(table, exact=gained + lost < EXACT_TEST_ROWS, correction=False)
    return McNemar(gained, lost, float(min(tested.pvalue, 1.0)))


@dataclass(frozen=True)
class Contender:
    """One of the models compared."""

    name: str
    is_run: bool
    """Whether the contender is a run rather than a simple model beside the reference."""
    measures: dict[str, MeasureEstimates]
    mcnemar: McNemar | None = None
    """Result against the reference, for a run on rows with right and wrong answers."""
    p_value: float | None = None
    """P-value of the first measure's difference from the reference."""
    adjusted: float | None = None
    """P-value after Holm's correction, over all runs compared with the reference."""
    verdict: str = ""
    """`better`, `worse` or `no difference shown`; empty where nothing was tested."""


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison."""

    source: str | None
    """The file of the rows; None for the rows that the runs held out."""
    rows: str
    """Name of the rows, such as `held-out texts`."""
    count: int
    overlap: int | None
    """Steps that each row forecasts, see `gru_training.outcomes.Outcomes.overlap`; or None."""
    contenders: tuple[Contender, ...]
    """The reference, the other runs, the simple models."""
    styles: dict[str, str]
    """Format of the values of each measure, by its name; the first measure decides."""
    higher_is_better: dict[str, bool]
    settings: dict[str, dict[str, str]]
    """Settings that differ between runs: by flag, the values of each run by its name."""
    notes: tuple[str, ...]

    @property
    def reference(self) -> Contender:
        """The contender with which all others are compared."""
        return self.contenders[0]

    @property
    def deciding(self) -> str:
        """The name of the measure that is tested."""
        return next(iter(self.styles))


def compare_outcomes(
    outcomes: Mapping[str, Outcomes],
    settings: Mapping[str, Mapping[str, str]],
    source: str | None,
    resamples: int,
    seed: int,
) -> Comparison:
    """Compare runs with the first of them.

    Args:
        outcomes: Outcomes by the runs' names, all on the same rows (`on_the_same_rows`).
        settings: Settings of each run by flag.
        source: File of the rows; None for rows that the runs held out.
        resamples: Number of draws of the bootstrap.
        seed: Seed of the bootstrap.
    """
    reference = next(iter(outcomes.values()))
    models = {name: each.model for name, each in outcomes.items()}
    answers = [*models.values(), *reference.baselines.values()]
    if reference.overlap is None:
        estimates = of_independent_rows(answers, resamples, seed)
    else:
        estimates = of_rows_in_time(answers, reference.overlap)
    measures = reference.model.measures
    contenders = [
        Contender(name, name in models, of)
        for name, of in zip([*models, *reference.baselines], estimates, strict=True)
    ]
    return Comparison(
        source,
        reference.rows,
        len(reference.keys),
        reference.overlap,
        tuple(_tested(contenders, list(models.values()), measures[0].higher_is_better)),
        {measure.name: measure.style for measure in measures},
        {measure.name: measure.higher_is_better for measure in measures},
        differing(settings),
        tuple(f"{name}: {note}" for name, each in outcomes.items() for note in each.notes),
    )


def on_the_same_rows(outcomes: Mapping[str, Outcomes], held_out: bool) -> dict[str, Outcomes]:
    """Keep the rows that all runs answered, in the order of the first run.

    Args:
        outcomes: Outcomes by the runs' names.
        held_out: Whether these are the rows that each run held out and must be the same.

    Raises:
        RunDirectoryError: The rows differ, or none is common to all runs.
    """
    (first, reference), *others = outcomes.items()
    shared = np.ones(len(reference.keys), bool)
    for name, each in others:
        same = np.isin(reference.keys, each.keys)
        if held_out and (not same.all() or len(each.keys) != len(same)):
            raise RunDirectoryError(
                f"{name}: expected the {len(same):,} {reference.rows} of {first}, got "
                f"{len(each.keys):,}, of which {np.count_nonzero(same):,} are the same; compare "
                "these runs on rows that neither was trained on, with --data FILE"
            )
        shared &= same
    keys = reference.keys[shared]
    if not len(keys):
        raise RunDirectoryError(
            f"expected {reference.rows} that all runs can answer, got none that {first} shares "
            f"with {' and '.join(name for name, _ in others)}"
        )
    return {name: each.of_rows(_places(each.keys, keys)) for name, each in outcomes.items()}


def differing(settings: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return the settings that differ between runs: by flag, each run's value by its name."""
    flags = list(dict.fromkeys(flag for of in settings.values() for flag in of))
    table = {flag: {name: of.get(flag, "") for name, of in settings.items()} for flag in flags}
    return {flag: values for flag, values in table.items() if len(set(values.values())) > 1}


def _tested(
    contenders: Sequence[Contender], models: Sequence[Answers], higher_is_better: bool
) -> list[Contender]:
    """Add p-values and verdicts to the runs after the first."""
    first = models[0].measures[0].name
    tested = []
    for contender, answers in zip(contenders[1 : len(models)], models[1:], strict=True):
        p_value, counts = contender.measures[first].p_value, None
        if answers.right is not None and models[0].right is not None:
            counts = mcnemar_test(answers.right, models[0].right)
            p_value = counts.p_value
        tested.append(replace(contender, mcnemar=counts, p_value=p_value))
    known = [each.p_value for each in tested if each.p_value is not None]
    adjusted = iter(multipletests(known, method="holm")[1].tolist() if known else ())
    for number, each in enumerate(tested):
        if each.p_value is None:
            continue
        value, difference = next(adjusted), each.measures[first].difference
        assert difference is not None
        verdict = "no difference shown"
        if value < 1 - LEVEL:
            verdict = "better" if (difference.value > 0) == higher_is_better else "worse"
        tested[number] = replace(each, adjusted=value, verdict=verdict)
    return [contenders[0], *tested, *contenders[len(models) :]]


def _places(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the position of each requested key."""
    order = np.argsort(keys)
    return np.asarray(order[np.searchsorted(keys, wanted, sorter=order)])
