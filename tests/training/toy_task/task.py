"""A minimal task: which digits of a made-up sequence are lower than the digit before."""

from dataclasses import dataclass, field

from gru_training.config import OptionalName, RunConfig, TrainingConfig
from gru_training.task import Task


@dataclass(frozen=True)
class TaggingDataConfig:
    sequences: int = 200
    """How many sequences to make up."""


@dataclass(frozen=True)
class TaggingConfig:
    """Train a sequence tagger on made-up sequences."""

    preset: OptionalName = None
    data: TaggingDataConfig = field(default_factory=TaggingDataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    run: RunConfig = field(default_factory=RunConfig)


class TaggingTask(Task):
    settings, presets = TaggingConfig, {"few": TaggingConfig(data=TaggingDataConfig(64))}

    def train(self, config, console, resume, data=None):
        from .training import train_tagging

        return train_tagging(config, console, resume)

    def open_run(self, path):
        from .training import TaggingRun

        return TaggingRun.open(path)

    def servable(self, run):
        from .training import TaggingServable

        return TaggingServable(run)


TASK = TaggingTask()
