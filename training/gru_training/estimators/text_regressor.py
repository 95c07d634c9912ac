"""Estimates a number for each text; trained on tables."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from gru_training.errors import ConfigError, RunDirectoryError
from gru_training.estimators.settings import in_python, takes
from gru_training.estimators.text_estimator import TextEstimator
from gru_training.estimators.text_settings import SETTINGS
from gru_training.estimators.text_source import labelled, row_weights


@takes(SETTINGS, target_type="number")
class TextRegressor(RegressorMixin, TextEstimator):
    """A GRU that estimates numbers, as `gru-train sentiment --target-type number` trains it.

    Args:
        **settings: As of `gru_training.TextClassifier`; `target_type` is `number`.

    Attributes:
        run_: The run directory (`gru_training.sentiment.run.SentimentRun`).

    Example:
        >>> regressor = TextRegressor(epochs=5).fit(reviews, text="body", label="stars")
        >>> regressor.predict_frame(["Two hours I will not get back"])  # value and its intervals
    """

    def __init__(self, **settings: Any):
        if settings.get("target_type") not in (None, "number"):
            raise ConfigError(f"target_type: expected number, got {settings['target_type']!r}")
        super().__init__(**{**settings, "target_type": "number"})

    def predict(self, data: Any, *, text: str | None = None) -> np.ndarray:
        """Estimate the numbers (N,) of texts.

        Args:
            data: A table with a column of texts, or texts alone (a list, array or column).
            text: Name of that column; by default that of the training, else found by its name.

        Returns:
            Numbers (N,); `predict_frame` also has their intervals.
        """
        values: np.ndarray = self._answers(self._texts(data, text)).column("value").to_numpy()
        return values

    def score(
        self,
        data: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        text: str | None = None,
        label: str | None = None,
    ) -> float:
        """R² of the rows, as scikit-learn's tools ask for it.

        Args:
            data: A table, or texts.
            y: The numbers, where they are not a column of `data`.
            sample_weight: One weight per row; by default 1 each.
            text: The column of texts; by default that of the training.
            label: The column of numbers; likewise.
        """
        with in_python():
            texts, numbers = labelled(data, y, self._columns(data, text, label))
            weights = None if sample_weight is None else row_weights(sample_weight, len(texts))
        values = self._answers(texts).column("value").to_numpy()
        return float(r2_score(np.array(numbers, np.float64), values, sample_weight=weights))

    def _fitted(self, run: Any) -> None:
        if run.kind != "number":
            raise RunDirectoryError(
                f"{run.path}: expected a run of numbers, got one of classes; use TextClassifier or "
                "load_run"
            )
        super()._fitted(run)

    def evaluate(
        self, data: Any, y: Any = None, *, text: str | None = None, label: str | None = None
    ) -> dict[str, float]:
        """Measures on rows whose number is known; arguments as of `score`.

        Returns:
            `rows`, `mae`, `rmse`, `r2`, and the shares inside the intervals, `inside_80` and
            `inside_95`.
        """
        from gru_training.sentiment.measures import number_measures

        with in_python():
            texts, numbers = labelled(data, y, self._columns(data, text, label))
        values = np.array(numbers, np.float64)
        answers = self._answers(texts)
        low95, low80, high80, high95 = (answers.column(k).to_numpy() for k in range(1, 5))
        return {
            "rows": len(values),
            **number_measures(values, answers.column("value").to_numpy()),
            "inside_80": float(np.mean((values >= low80) & (values <= high80))),
            "inside_95": float(np.mean((values >= low95) & (values <= high95))),
        }
