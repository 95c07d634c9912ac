"""The settings of the tagger."""

from dataclasses import dataclass, field

from gru_training.config import OptionalName, RunConfig, TrainingConfig


@dataclass(frozen=True)
class TaggingDataConfig:
    """What to learn from."""

    sequences: int = 200
    """How many sequences to make up."""


@dataclass(frozen=True)
class TaggingConfig:
    """Train a sequence tagger on made-up sequences."""

    preset: OptionalName = None
    data: TaggingDataConfig = field(default_factory=TaggingDataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    run: RunConfig = field(default_factory=RunConfig)
