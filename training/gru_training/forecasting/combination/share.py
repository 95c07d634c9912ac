"""What a combination is made of, and what a run records of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import keras

from gru_training.forecasting.combination.plan import Plan
from gru_training.loop.fit import FitResult


@dataclass(frozen=True)
class Share:
    """A part of the delivered forecast."""

    name: str
    detail: str
    weight: float
    validation_mse: float
    validation_loss: float
    """Of what the weights were to make small: `Combination.criterion`."""
    network: str | None = None
    """The name of its model within the delivered one; None: it is linear."""
    residual: bool = False
    """Whether the network adds to the ridge regression."""
    lookback: int = 0
    """Of what is linear, as `LinearForecaster` has it; so are the next three."""
    season: int = 1
    penalty: float = 0.0
    own: bool = False


@dataclass(frozen=True)
class Combination:
    """A trained combination."""

    model: keras.Model
    """From standardised windows (B, L, C) to (B, H, K, Q or 1)."""
    result: FitResult
    """How the training of the networks went."""
    shares: tuple[Share, ...]
    """Its parts, those without weight among them: the networks, then the simple forecasters."""
    validation: Mapping[str, float]
    """"mse" and "mae" of what is delivered, on the validation windows."""
    criterion: str = ""
    """What the weights of the parts make small, for people."""


def as_record(plan: Plan, trained: Combination) -> dict[str, Any]:
    """What a run records of a combination."""
    return {
        "network_lookback": plan.network_lookback,
        "training_lookback": plan.training_lookback,
        "criterion": trained.criterion,
        "shares": [asdict(share) for share in trained.shares],
        "transforms": dict(plan.transforms),
    }
