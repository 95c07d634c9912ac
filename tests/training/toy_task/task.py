"""Tagging as a task."""

from gru_training.task import Task
from tests.training.toy_task.config import TaggingConfig, TaggingDataConfig

PRESETS = {"few": TaggingConfig(data=TaggingDataConfig(64))}

SCORED = {"tokens": ("tokens", "digits")}


class TaggingTask(Task):
    config_type = TaggingConfig
    presets = PRESETS
    commands = ()
    scored_columns = SCORED

    def train(self, config, console, resume, data=None):
        from tests.training.toy_task.pipeline import train_tagging

        return train_tagging(config, console, resume)

    def print_results(self, metrics, console):
        console.print(f"tags right: {metrics['model']['test']['accuracy']:.1%}")

    def open_run(self, path):
        from tests.training.toy_task.run import TaggingRun

        return TaggingRun.open(path)

    def servable(self, run):
        from tests.training.toy_task.run import TaggingServable

        return TaggingServable(run)

    def scorer(self, run):
        from tests.training.toy_task.scorer import TaggingScorer

        return TaggingScorer(run)

    def outcomes(self, run, data, like):
        from tests.training.toy_task.outcomes import tagging_outcomes

        return tagging_outcomes(run, data)


TASK = TaggingTask()
