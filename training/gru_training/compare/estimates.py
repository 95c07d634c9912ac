"""Estimates of each contender's quality and its difference from the reference, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import stats

from gru_training.compare.diebold_mariano import diebold_mariano
from gru_training.outcomes import Answers, Measure

LEVEL = 0.95
_COUNTS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Estimate:
    """A number and the bounds of its 95 % interval, if the rows allow one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class MeasureEstimates:
    """One measure of one contender."""

    value: Estimate
    difference: Estimate | None
    """Difference from the reference; None for the reference itself."""
    p_value: float | None = None
    """P-value of the Diebold-Mariano test if the rows are in time; otherwise None."""


def of_independent_rows(
    contenders: Sequence[Answers], resamples: int, seed: int
) -> list[dict[str, MeasureEstimates]]:
    """Estimate by a paired bootstrap, in which every draw of rows scores all contenders.

    Args:
        contenders: The reference, then the others, on the same N rows.
        resamples: Number of draws.
        seed: Seed of the draws.

    Returns:
        The measures of each contender, by name.
    """
    named = [(position, one) for position, of in enumerate(contenders) for one in of.measures]
    measures = [measure for _, measure in named]
    reference = {measure.name: number for number, measure in enumerate(contenders[0].measures)}
    against = [reference[measure.name] for measure in measures]
    count = len(measures[0].columns)
    drawn = stats.bootstrap(
        (np.arange(count),),  # the same rows for all contenders
        partial(_values_and_differences, measures=measures, against=against),
        n_resamples=resamples,
        batch=max(1, _COUNTS_AT_ONCE // count),
        vectorized=True,
        confidence_level=LEVEL,
        method="percentile",
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    values = np.array([measure.value for measure in measures])
    found = np.concatenate([values, values - values[against]])
    bounds = [Estimate(*map(float, of)) for of in zip(found, drawn.low, drawn.high, strict=True)]
    estimates: list[dict[str, MeasureEstimates]] = [{} for _ in contenders]
    for number, (position, measure) in enumerate(named):
        difference = bounds[len(measures) + number] if position else None
        estimates[position][measure.name] = MeasureEstimates(bounds[number], difference)
    return estimates


def of_rows_in_time(
    contenders: Sequence[Answers], overlap: int
) -> list[dict[str, MeasureEstimates]]:
    """Estimate by the Diebold-Mariano test.

    Args:
        contenders: The reference, then the others, on the same N rows in the order of time.
        overlap: H, of `gru_training.outcomes.Outcomes`.

    Returns:
        The measures of each contender, by name.
    """
    reference = {each.name: pseudo_values(each) for each in contenders[0].measures}
    values = {each.name: each.value for each in contenders[0].measures}
    found = []
    for position, contender in enumerate(contenders):
        of_contender = {}
        for measure in contender.measures:
            rows = pseudo_values(measure)
            value, _ = _tested(measure.value, rows, overlap)
            if value.low is not None and measure.columns.min() >= 0:  # errors are never below 0
                value = replace(value, low=max(0.0, value.low))
            difference = p_value = None
            if position:
                difference, p_value = _tested(
                    measure.value - values[measure.name], rows - reference[measure.name], overlap
                )
            of_contender[measure.name] = MeasureEstimates(value, difference, p_value)
        found.append(of_contender)
    return found


def pseudo_values(measure: Measure) -> np.ndarray:
    """Compute the contribution of each row, (N,), to a measure that is their mean.

    For a mean these are the rows' own values; otherwise those of the jackknife (Tukey, 1958), whose
    mean is the measure up to a bias of the order 1/N.
    """
    columns = measure.columns
    count, total = len(columns), columns.sum(axis=0)
    without = measure.of_means((total - columns) / (count - 1))
    return np.asarray(count * measure.of_means(total / count) - (count - 1) * without)


def _tested(value: float, rows: np.ndarray, overlap: int) -> tuple[Estimate, float | None]:
    test = diebold_mariano(rows, overlap)
    if test is None:
        return Estimate(value), None
    low, high = test._replace(mean=value).interval(LEVEL)
    return Estimate(value, low, high), test.p_value


def _values_and_differences(
    rows: np.ndarray, axis: int, measures: Sequence[Measure], against: Sequence[int]
) -> np.ndarray:
    """Evaluate measures and differences, (2M, ...), on drawn row numbers (..., N)."""
    rows = np.moveaxis(rows, axis, -1)
    count = rows.shape[-1]
    draws = rows.reshape(-1, count)
    places = draws + count * np.arange(len(draws))[:, np.newaxis]
    shares = np.bincount(places.ravel(), minlength=draws.size).reshape(draws.shape) / count
    values = np.stack([measure.of_means(shares @ measure.columns) for measure in measures])
    both = np.concatenate([values, values - values[list(against)]])
    return both.reshape(len(both), *rows.shape[:-1])
