"""Sentiment as a task; see `gru_training.task`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gru_training.sentiment.config import PRESETS, SentimentConfig
from gru_training.tables.text_columns import TEXT_COLUMNS
from gru_training.task import Comparable, Scorable, Searchable, Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from gru_training.criterion import Criterion, Judged
    from gru_training.data.check import DataCheck
    from gru_training.outcomes import Outcomes
    from gru_training.scoring.scorer import Scorer
    from gru_training.sentiment.data import SentimentData
    from gru_training.sentiment.run import SentimentRun
    from gru_training.sentiment.served.scorer import GraphScorer
    from gru_training.sentiment.served.servable import SentimentServable

_LOSS_METRICS = ("mae",)
"""Measures of which less is better."""
_MIN_ROWS = 100
"""Number of validation rows below which a search warns that it chooses by chance."""
_MIN_ROWS_RATIO = 3
"""Ratio of the largest to the smallest class from which the macro F1 is shown, too."""


class SentimentTask(Searchable, Scorable, Comparable):
    """The labelling of texts, with probabilities."""

    settings = SentimentConfig
    data_kind = "labelled texts"
    presets = PRESETS
    examples = (
        "gru-train sentiment --preset demo",
        "gru-train sentiment --data tickets.csv --name tickets",
        "gru-train sentiment --data mails.csv --label-separator ';' --units 128",
    )
    flags = (
        "data", "more_data", "validation", "test", "text_column", "label_column",
        "label_columns", "label_separator", "target_type", "separator", "encoding",
        "drop_near_duplicates", "group_column", "time_column", "drop_bad",
        "drop_duplicates", "drop_small_classes", "merge_labels", "fold",
        "max_tokens", "unlabelled", "vectors", "soft_data", "units", "layers",
        "bidirectional", "pooling", "dropout", "ngrams", "epochs", "patience", "batch_size",
        "learning_rate", "seed", "class_weight", "metric", "warm_start", "runs_dir", "name",
        "debug", "track",
    )  # fmt: skip
    scored_columns: ClassVar = {"text": TEXT_COLUMNS}

    def read(self, config: SentimentConfig) -> "DataCheck":
        """Read the texts, and check rows and classes."""
        from gru_training.sentiment.data import check_sentiment

        return check_sentiment(config)

    def train(
        self,
        config: SentimentConfig,
        console: "Console",
        resume: bool,
        data: "SentimentData | None" = None,
    ) -> "SentimentRun | None":
        """Train a classifier."""
        from gru_training.sentiment.pipeline import train_sentiment

        return train_sentiment(config, console, resume, data)

    def criterion(self, config: SentimentConfig, data: "SentimentData") -> "Criterion":
        """Choose the requested metric, or else the log loss of classes and labels.

        Of many trials, the one with the most right answers to a few hundred rows is often the
        luckiest. The log loss varies less between rows.
        """
        from gru_training.criterion import Criterion, caution
        from gru_training.sentiment.class_weights import for_unequal_classes
        from gru_training.sentiment.measures import LOG_LOSS, chosen_metric

        name = for_unequal_classes(config, data)[0].training.metric
        if name is None and data.kind != "number":
            name = LOG_LOSS
        metric, rows = chosen_metric(name, data.kind, data.classes), len(data.validation.texts)
        return Criterion(
            metric.name.replace("log_loss", "log loss"),
            metric.higher_is_better,
            ".2%" if metric.higher_is_better else ".4g",
            metric.name,
            "" if rows >= _MIN_ROWS else caution(f"only {rows} validation rows"),
        )

    def try_settings(
        self,
        config: SentimentConfig,
        data: "SentimentData",
        criterion: "Criterion",
        after_epoch: Callable[[int, float], None],
    ) -> "Judged":
        """Train a classifier and measure it on the validation rows."""
        from gru_training.sentiment.pipeline import try_settings

        return try_settings(config, data, criterion.measure, after_epoch)

    def show_results(self, run: "SentimentRun", console: "Console") -> Verdict | None:
        """Print how good the model and the baselines are on held-out rows."""
        metrics = run.metrics
        for key, heading, style in _shown(metrics):
            rows = {
                name: (parts["validation"][key], parts["test"][key])
                for name, parts in _models(metrics).items()
            }
            for name, floor in metrics["baselines"].items():
                rows[name] = (floor[f"validation_{key}"], floor[f"test_{key}"])
            width = max(len(heading), *map(len, rows))
            console.print(f"\n{heading:{width}}  validation    test", style="bold")
            for name, (validation, test) in rows.items():
                console.print(
                    f"{name:{width}}  {validation:>10{style}}  {test:>6{style}}", highlight=False
                )
        return verdict(run)

    def open_run(self, path: Path) -> "SentimentRun":
        """Open a run directory."""
        from gru_training.sentiment.run import SentimentRun

        return SentimentRun.open(path)

    def servable(self, run: "SentimentRun") -> "SentimentServable":
        """Load the classifier with its signatures."""
        from gru_training.sentiment.served.servable import SentimentServable

        return SentimentServable(run)

    def graph_scorer(self, run: "SentimentRun") -> "GraphScorer | None":
        """Return the scorer that labels the texts of a table by the run's ONNX graph."""
        from gru_training.sentiment.served.scorer import graph_scorer

        return graph_scorer(run)

    def scorer(self, run: "SentimentRun") -> "Scorer":
        """Return the scorer that labels the texts of a table."""
        found = self.graph_scorer(run)
        if found is not None:
            return found
        from gru_training.sentiment.served.keras_model import KerasScorer

        return KerasScorer(run)

    def outcomes(self, run: "SentimentRun", data: Path | None, like: "SentimentRun") -> "Outcomes":
        """Return right and wrong labels, and the probabilities of the right ones."""
        from gru_training.sentiment.outcomes import file_outcomes, held_out_outcomes

        if data is None:
            return held_out_outcomes(run, like)
        return file_outcomes(run, data, like, self.scorer(run))


def _shown(metrics: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """List the measures to print: key, heading and format; the first one decides."""
    kind = metrics["target"]
    if kind == "number":
        return [("mae", "mean absolute error", ".4g")]
    if kind == "labels":
        return [("micro_f1", "micro F1", ".1%"), ("macro_f1", "macro F1", ".1%")]
    shown = [("accuracy", "accuracy", ".1%")]
    counts = [of["train"] for of in metrics["data"]["balance"].values()]
    if metrics["metric"] != "accuracy" or max(counts) > _MIN_ROWS_RATIO * min(counts):
        shown.append(("macro_f1", "macro F1", ".1%"))
    if metrics["metric"] == "macro_f1":
        shown.reverse()
    return shown


def _models(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """List the trained parts by name."""
    from gru_training.sentiment.run import model_name

    model = metrics["model"]
    if "gru_alone" in metrics:
        return {model_name(metrics): model, "GRU alone": metrics["gru_alone"]}
    return {model_name(metrics): model}


def verdict(run: "SentimentRun") -> Verdict | None:
    """Write a warning if a baseline does better on the validation rows.

    It may also say that the network has no share in the answers.
    """
    key, _, style = _shown(run.metrics)[0]
    own = run.metrics["model"]["validation"][key]
    sign = -1 if key in _LOSS_METRICS else 1
    floors = run.metrics["baselines"]
    name = max(floors, key=lambda name: sign * floors[name][f"validation_{key}"])
    best = floors[name][f"validation_{key}"]
    if sign * best <= sign * own:
        if run.metrics.get("shares", {}).get("gru") != 0:
            return None
        return Verdict(
            "the simple model does: the network did not help the regression on n-grams on the "
            "validation rows, and has no share in the answers"
        )
    problem = f"{name} does better on the validation rows: {best:{style}} against {own:{style}}"
    combined = "gru_alone" in run.metrics or "shares" in run.metrics
    return Verdict(problem, () if run.config.model.ngrams or combined else ("--ngrams",))


TASK = SentimentTask()
