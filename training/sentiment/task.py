"""Sentiment as a task; see `training.task`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from training.sentiment.config import SentimentConfig
from training.sentiment.presets import PRESETS
from training.tables.text_columns import TEXT_COLUMNS
from training.task import Command, Task, Verdict

if TYPE_CHECKING:
    from training.data.check import DataCheck
    from training.outcomes import Outcomes
    from training.sentiment.data import SentimentData
    from training.sentiment.run import SentimentRun
    from training.sentiment.served.scorer import SentimentScorer
    from training.sentiment.served.servable import SentimentServable


class SentimentTask(Task):
    """Texts in, a label and its probability out."""

    config_type = SentimentConfig
    presets = PRESETS
    commands: tuple[Command, ...] = ()
    scored_columns: Mapping[str, Sequence[str]] = {"text": TEXT_COLUMNS}

    def check(self, config: SentimentConfig) -> "DataCheck":
        """Read the texts, and look at rows and classes."""
        from training.sentiment.check import check_sentiment

        return check_sentiment(config)

    def train(
        self,
        config: SentimentConfig,
        console: Console,
        resume: bool,
        data: "SentimentData | None" = None,
    ) -> "SentimentRun":
        """Train a classifier."""
        from training.sentiment.pipeline import train_sentiment

        return train_sentiment(config, console, resume, data)

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

    def verdict(self, run: "SentimentRun") -> Verdict | None:
        """That a baseline has a higher accuracy on the validation rows."""
        own = run.metrics["model"]["validation"]["accuracy"]
        floors = run.metrics["baselines"]
        name = max(floors, key=lambda name: floors[name]["validation_accuracy"])
        best = floors[name]["validation_accuracy"]
        if best <= own:
            return None
        problem = f"{name} does better on the validation rows: {best:.1%} against {own:.1%}"
        return Verdict(problem, () if run.config.model.ngrams else ("--ngrams",))

    def open_run(self, path: Path) -> "SentimentRun":
        """Open a run directory."""
        from training.sentiment.run import SentimentRun

        return SentimentRun.open(path)

    def servable(self, run: "SentimentRun") -> "SentimentServable":
        """The classifier with its signatures."""
        from training.sentiment.served.servable import SentimentServable

        return SentimentServable(run)

    def scorer(self, run: "SentimentRun") -> "SentimentScorer":
        """What labels the texts of a table."""
        from training.sentiment.served.scorer import SentimentScorer

        return SentimentScorer(run)

    def outcomes(self, run: "SentimentRun", data: Path | None, like: "SentimentRun") -> "Outcomes":
        """Right and wrong labels, and the probabilities of the right ones."""
        from training.classification.outcomes import file_outcomes, held_out_outcomes

        if data is None:
            return held_out_outcomes(run, like)
        return file_outcomes(run, data, like, self.scorer(run))


TASK: Task = SentimentTask()
