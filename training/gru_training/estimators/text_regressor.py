"""Estimates a number for each text; trained on tables."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from gru_training.errors import ConfigError
from gru_training.estimators.settings import in_python, takes
from gru_training.estimators.text_estimator import TextEstimator
from gru_training.estimators.text_settings import SETTINGS
from gru_training.estimators.text_source import labelled


@takes(SETTINGS)
class TextRegressor(RegressorMixin, TextEstimator):
    """A GRU that estimates numbers, as `gru-train sentiment --target-type number` trains it.

    Args:
        **settings: As of `gru_training.TextClassifier`; `target_type` is `number`.

    Attributes:
        run_: The run directory (`gru_training.sentiment.run.SentimentRun`).

    Example:
        >>> regressor = TextRegressor(epochs=5).fit(reviews, text="body", label="stars")
        >>> regressor.predict(["Two hours I will not get back"])  # value and its intervals
    """

    def __init__(self, **settings: Any):
        if settings.get("target_type") not in (None, "number"):
            raise ConfigError(f"target_type: expected number, got {settings['target_type']!r}")
        super().__init__(**{**settings, "target_type": "number"})

    def score(
        self, data: Any, y: Any = None, *, text: str | None = None, label: str | None = None
    ) -> float:
        """R² of the rows, as scikit-learn's tools ask for it.

        Args:
            data: A table, or texts.
            y: The numbers, where they are not a column of `data`.
            text: The column of texts; by default that of the training.
            label: The column of numbers; likewise.
        """
        return self.evaluate(data, y, text=text, label=label)["r2"]

    def evaluate(
        self, data: Any, y: Any = None, *, text: str | None = None, label: str | None = None
    ) -> dict[str, float]:
        """Measures on rows whose number is known; arguments as of `score`.

        Returns:
            `rows`, `mae`, `rmse`, `r2`, and the shares inside the intervals, `inside_80` and
            `inside_95`.
        """
        from gru_training.classification.measures import number_measures

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
