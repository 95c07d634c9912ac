"""Sentiment as a task; see `training.task`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from training.sentiment.config import SentimentConfig
from training.sentiment.presets import PRESETS
from training.task import Command, Task

if TYPE_CHECKING:
    from training.sentiment.run import SentimentRun
    from training.sentiment.servable import SentimentServable


class SentimentTask:
    """Texts in, a label and its probability out."""

    config_type = SentimentConfig
    presets = PRESETS
    commands: tuple[Command, ...] = ()

    def train(self, config: SentimentConfig, console: Console, resume: bool) -> "SentimentRun":
        """Train a classifier."""
        from training.sentiment.pipeline import train_sentiment

        return train_sentiment(config, console, resume)

    def print_results(self, metrics: Mapping[str, Any], console: Console) -> None:
        """Print the accuracy of the model and of the baselines."""
        model = metrics["model"]
        answered = {"GRU": model}
        if "gru_alone" in metrics:
            answered = {"GRU and n-grams": model, "GRU alone": metrics["gru_alone"]}
        results = {
            name: (parts["validation"]["accuracy"], parts["test"]["accuracy"])
            for name, parts in answered.items()
        }
        for name, floor in metrics["baselines"].items():
            results[name] = (floor["validation_accuracy"], floor["test_accuracy"])
        width = max(map(len, results))
        console.print(f"\n{'accuracy':{width}}  validation    test", style="bold")
        for name, (validation, test) in results.items():
            console.print(f"{name:{width}}  {validation:>10.1%}  {test:>6.1%}", highlight=False)

    def open_run(self, path: Path) -> "SentimentRun":
        """Open a run directory."""
        from training.sentiment.run import SentimentRun

        return SentimentRun.open(path)

    def servable(self, run: "SentimentRun") -> "SentimentServable":
        """The classifier with its signatures."""
        from training.sentiment.servable import SentimentServable

        return SentimentServable(run)


TASK: Task = SentimentTask()
