"""What was measured in the folds of a backtest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.scores.forecast_errors import ForecastErrors
from gru_training.forecasting.scores.metrics import crps, error_details, error_summary


@dataclass(frozen=True)
class Fold:
    """Some consecutive windows, and the errors of every model on them."""

    first_time: str
    """Of the first step that is forecast; no model knows the truth from there on."""
    last_time: str
    """Of the last step that is forecast."""
    windows: int
    errors: dict[str, ForecastErrors]
    """The first of them those of the run's model."""
    pinball: np.ndarray
    """(Q, H, K), of the run's model."""
    coverage: dict[float, float]
    """Of the run's intervals, by nominal coverage."""
    adaptive: dict[float, float] = field(default_factory=dict)
    """Of intervals that adapt, if they were asked for."""


def measures(
    folds: Sequence[Fold], levels: Sequence[float], data: ForecastingData
) -> dict[str, dict[str, float | None]]:
    """Every measure of every model over all windows of some folds, each value weighed alike.

    Args:
        folds: One or more.
        levels: Of the quantiles.
        data: On the scale on which errors are measured.
    """
    found: dict[str, dict[str, float | None]] = {}
    for name in folds[0].errors:
        errors = [fold.errors[name] for fold in folds]
        all_errors = _together(errors)
        details = error_details(all_errors, data)
        scaled = {kind: details[kind] for kind in ("mase", "rmsse", "smape")}
        found[name] = {**error_summary(all_errors), **scaled}
    own = next(iter(folds[0].errors))
    counts = np.stack([fold.errors[own].count for fold in folds])
    ranked = np.stack([crps(fold.pinball, levels) for fold in folds])
    found[own]["crps"] = float(np.nansum(ranked * counts) / counts.sum())
    return found


def covered(folds: Sequence[Fold], of_fold: Sequence[Mapping[float, float]]) -> dict[str, float]:
    """The share of all values inside, by nominal coverage.

    Args:
        folds: Whose values they are.
        of_fold: The shares of each.
    """
    counts = [int(next(iter(fold.errors.values())).count.sum()) for fold in folds]
    return {
        f"{nominal:g}": float(np.average([each[nominal] for each in of_fold], weights=counts))
        for nominal in of_fold[0]
    }


def _together(errors: Sequence[ForecastErrors]) -> ForecastErrors:
    if len(errors) == 1:
        return errors[0]
    counts = np.stack([each.count for each in errors])
    total = counts.sum(axis=0)

    def pooled(kind: str) -> Any:
        values = np.stack([getattr(each, kind) for each in errors])
        with np.errstate(invalid="ignore"):
            return np.nansum(values * counts, axis=0) / total

    return ForecastErrors(
        pooled("squared"), pooled("absolute"), pooled("percentage"), total, errors[0].windows
    )


def fold_table(
    folds: Sequence[Fold], levels: Sequence[float], data: ForecastingData
) -> pd.DataFrame:
    """A row for each fold and model, as `gru_training.estimators.forecaster` gives it.

    Args:
        folds: One or more.
        levels: Of the quantiles.
        data: On the scale on which errors are measured.
    """
    rows = []
    for number, fold in enumerate(folds, start=1):
        when = {"first_time": pd.Timestamp(fold.first_time), "last_time": fold.last_time}
        for name, errors in measures([fold], levels, data).items():
            row = {"fold": number, "model": name, **when, "windows": fold.windows, **errors}
            if name == next(iter(fold.errors)):
                row |= {f"inside-{100 * k:g}": share for k, share in fold.coverage.items()}
                row |= {f"adaptive-{100 * k:g}": share for k, share in fold.adaptive.items()}
            rows.append(row)
    table = pd.DataFrame(rows)
    return table.assign(last_time=pd.to_datetime(table["last_time"]))
