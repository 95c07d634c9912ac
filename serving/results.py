"""What the two tasks' models answer, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from serving.errors import FailedPrecondition


@dataclass(frozen=True)
class Sentiment:
    """The class of one text.

    Attributes:
        label: The likeliest class.
        probability: Of that class.
        scores: Probability of every class, (C,).
    """

    label: str
    probability: float
    scores: np.ndarray

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, np.ndarray]) -> list[Sentiment]:
        """One per row of what `predict` returns for `serving_default` or `step`.

        Raises:
            FailedPrecondition: The model is no text classifier.
        """
        _require(outputs, "label", "probability", "scores")
        return [
            cls(label.decode("utf-8", "replace"), float(probability), scores)
            for label, probability, scores in zip(
                outputs["label"], outputs["probability"], outputs["scores"], strict=True
            )
        ]


@dataclass(frozen=True)
class Explanation:
    """What a text classifier's gates did: T tokens, L layers, R directions, U units, C classes.

    Attributes:
        tokens: As the model read them.
        update_gate: z, (T, L, R, U); with the layer's convention "keep", 1 keeps the old state.
        reset_gate: r, (T, L, R, U).
        state: After the token, (T, L, R, U).
        scores: Probability of every class for the text up to that token, (T, C).
    """

    tokens: tuple[str, ...]
    update_gate: np.ndarray
    reset_gate: np.ndarray
    state: np.ndarray
    scores: np.ndarray

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, np.ndarray]) -> list[Explanation]:
        """One per row of what `predict` returns for the signature `gates`, without padding.

        Raises:
            FailedPrecondition: The signature is another one.
        """
        names = ("update_gate", "reset_gate", "state", "scores")
        _require(outputs, "tokens", *names)
        explanations = []
        for row, padded in enumerate(outputs["tokens"]):
            tokens = tuple(token.decode("utf-8", "replace") for token in padded if token)
            arrays = (outputs[name][row, : len(tokens)] for name in names)
            explanations.append(cls(tokens, *arrays))
        return explanations


@dataclass(frozen=True)
class Forecast:
    """The forecast of one series, in its own units: H horizons, K columns, Q levels.

    Attributes:
        values: The forecast, (H, K).
        quantiles: Of each value, ascending, (H, K, Q); the first and last bound the widest
            interval. The model card has the levels.
    """

    values: np.ndarray
    quantiles: np.ndarray

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, np.ndarray]) -> list[Forecast]:
        """One per row of what `predict` returns for `serving_default` or `step`.

        Raises:
            FailedPrecondition: The model is no forecaster.
        """
        _require(outputs, "forecast", "quantiles")
        rows = zip(outputs["forecast"], outputs["quantiles"], strict=True)
        return [cls(values, quantiles) for values, quantiles in rows]


def _require(outputs: Mapping[str, np.ndarray], *names: str) -> None:
    if not outputs.keys() >= set(names):
        raise FailedPrecondition(
            f"expected a model with the outputs {sorted(names)}; this one answers {sorted(outputs)}"
        )
