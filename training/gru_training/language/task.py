"""Language modelling as a task; see `gru_training.task`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from gru_training.language.config import PRESETS, LanguageConfig
from gru_training.tables.text_columns import TEXT_COLUMNS
from gru_training.task import Scorable, Searchable, Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from gru_training.criterion import Criterion, Judged
    from gru_training.data.check import DataCheck
    from gru_training.language.data import LanguageData
    from gru_training.language.run import LanguageRun
    from gru_training.language.servable import LanguageScorer, LanguageServable


class LanguageTask(Searchable, Scorable):
    """Language modelling: the prediction of the next token of texts."""

    settings = LanguageConfig
    data_kind = "texts to continue"
    presets = PRESETS
    examples = (
        "gru-train language --preset characters",
        "gru-train language --data more_texts.txt --document line --name mails",
    )
    flags = (
        "data", "more_data", "validation", "test", "text_column", "separator", "encoding",
        "document", "unit", "max_vocabulary", "min_count", "validation_fraction",
        "test_fraction", "split_seed", "embedding_size", "units", "layers", "dropout",
        "epochs", "patience", "batch_size", "learning_rate", "schedule", "seed", "steps",
        "runs_dir", "name", "debug", "track",
    )  # fmt: skip
    scored_columns: ClassVar = {"text": TEXT_COLUMNS}

    def read(self, config: LanguageConfig) -> "DataCheck":
        """Read and split the documents."""
        from gru_training.language.data import check_language

        return check_language(config)

    def train(
        self,
        config: LanguageConfig,
        console: "Console",
        resume: bool,
        data: "LanguageData | None" = None,
    ) -> "LanguageRun | None":
        """Train a language model."""
        from gru_training.language.pipeline import train_language

        return train_language(config, console, resume, data)

    def criterion(self, config: LanguageConfig, data: "LanguageData") -> "Criterion":  # noqa: ARG002
        """Choose the bits per token."""
        from gru_training.criterion import Criterion

        return Criterion(f"bits per {config.data.reads[:-1]}", False, ".4f", "bits")

    def try_settings(
        self,
        config: LanguageConfig,
        data: "LanguageData",
        criterion: "Criterion",  # noqa: ARG002  it is the only one
        after_epoch: Callable[[int, float], None],
    ) -> "Judged":
        """Train a language model and measure it on the validation documents."""
        from gru_training.language.pipeline import try_settings

        return try_settings(config, data, after_epoch)

    def show_results(self, run: "LanguageRun", console: "Console") -> Verdict | None:
        """Print how well the model and the baselines predict the held-out documents."""
        models = {"GRU": run.metrics["model"], **run.metrics["baselines"]}
        for key, heading, style in (
            ("perplexity", "perplexity", ",.2f"),
            ("bits_per_character", "bits per character", ".3f"),
        ):
            width = max(len(heading), *map(len, models))
            console.print(f"\n{heading:{width}}  validation      test", style="bold")
            for name, parts in models.items():
                cells = [format(parts[part][key], style) for part in ("validation", "test")]
                console.print(f"{name:{width}}  {cells[0]:>10}  {cells[1]:>8}")
        own, *floors = ((parts["validation"]["perplexity"], name) for name, parts in models.items())
        best, name = min(floors)
        if best >= own[0]:
            return None
        return Verdict(
            f"{name} does better on the validation documents: a perplexity of {best:,.2f} against "
            f"{own[0]:,.2f}"
        )

    def open_run(self, path: Path) -> "LanguageRun":
        """Open a run directory."""
        from gru_training.language.run import LanguageRun

        return LanguageRun.open(path)

    def servable(self, run: "LanguageRun") -> "LanguageServable":
        """Build the model with its signatures."""
        from gru_training.language.servable import LanguageServable

        return LanguageServable(run)

    def scorer(self, run: "LanguageRun") -> "LanguageScorer":
        """Load the scorer of the likelihood of a table's texts."""
        from gru_training.language.servable import LanguageScorer

        return LanguageScorer(run)


TASK = LanguageTask()
