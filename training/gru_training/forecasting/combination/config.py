"""Whether to combine, and how many networks; see `gru_training.config`."""

from dataclasses import dataclass

from gru_training.config import require_at_least


@dataclass(frozen=True)
class CombinationConfig:
    """What is delivered: the network alone, or a weighted mean of it and simple forecasters."""

    combine: bool = True
    """Deliver a weighted mean of the network, of networks that learn what a ridge regression leaves
    over, of ridge regressions, exponential smoothing and the last season; the weights are those
    that do best on validation windows. --no-combine delivers the network alone. A network that can
    answer tick by tick always stands alone."""
    networks: int = 1
    """Networks of each kind that are trained, with initial weights of their own, for a mean."""

    refit: bool = True
    """Train once more, on all rows and for as many epochs as did best, for forecasts and exports;
    what the report measures is the training before. Not with --distribute."""

    def __post_init__(self) -> None:
        require_at_least("--networks", self.networks, 1)
