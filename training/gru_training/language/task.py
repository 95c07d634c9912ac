"""Language modelling as a task; see `gru_training.task`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from gru_training.criterion import Criterion
from gru_training.errors import TrainingError
from gru_training.language.config import LanguageConfig
from gru_training.language.presets import PRESETS
from gru_training.tables.text_columns import TEXT_COLUMNS
from gru_training.task import Command, Task, Verdict

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from gru_training.data.check import DataCheck
    from gru_training.judged import Judged
    from gru_training.language.data import LanguageData
    from gru_training.language.run import LanguageRun
    from gru_training.language.served.scorer import LanguageScorer
    from gru_training.language.served.servable import LanguageServable


class LanguageTask(Task):
    """Texts in, what comes next out."""

    config_type = LanguageConfig
    presets = PRESETS
    commands: tuple[Command, ...] = ()
    scored_columns: Mapping[str, Sequence[str]] = {"text": TEXT_COLUMNS}

    def check(self, config: LanguageConfig) -> "DataCheck":
        """Read and split the documents."""
        from gru_training.language.check import check_language

        return check_language(config)

    def train(
        self,
        config: LanguageConfig,
        console: "Console",
        resume: bool,
        data: "LanguageData | None" = None,
    ) -> "LanguageRun":
        """Train a language model."""
        from gru_training.language.pipeline import train_language

        return train_language(config, console, resume, data)

    def criterion(self, config: LanguageConfig, data: "LanguageData") -> Criterion:  # noqa: ARG002
        """Bits per token."""
        return Criterion(f"bits per {config.data.reads[:-1]}", False, ".4f", "bits")

    def contents(self, data: "LanguageData") -> "Iterable[str | np.ndarray]":
        """The documents of each part."""
        return data.contents()

    def try_settings(
        self,
        config: LanguageConfig,
        data: "LanguageData",
        criterion: Criterion,  # noqa: ARG002  it is the only one
        after_epoch: Callable[[int, float], None],
    ) -> "Judged":
        """Train a language model and measure it on the validation documents."""
        from gru_training.language.trial import try_settings

        return try_settings(config, data, after_epoch)

    def reseeded(self, config: LanguageConfig, seed: int) -> LanguageConfig:
        """The settings with another seed, with the documents dealt out as before."""
        drawn = config.data.drawn_with(config.training.seed)
        return replace(
            config,
            data=replace(config.data, split_seed=drawn),
            training=replace(config.training, seed=seed),
        )

    def print_results(self, metrics: Mapping[str, Any], console: "Console") -> None:
        """Print how well the model and the baselines predict."""
        models = {"GRU": metrics["model"], **metrics["baselines"]}
        for key, heading, style in (
            ("perplexity", "perplexity", ",.2f"),
            ("bits_per_character", "bits per character", ".3f"),
        ):
            width = max(len(heading), *map(len, models))
            console.print(f"\n{heading:{width}}  validation      test", style="bold")
            for name, parts in models.items():
                cells = [format(parts[part][key], style) for part in ("validation", "test")]
                console.print(f"{name:{width}}  {cells[0]:>10}  {cells[1]:>8}", highlight=False)

    def verdict(self, run: "LanguageRun") -> Verdict | None:
        """That n-grams do better on the validation documents."""
        own = run.metrics["model"]["validation"]["perplexity"]
        floors = run.metrics["baselines"]
        name = min(floors, key=lambda name: float(floors[name]["validation"]["perplexity"]))
        best = floors[name]["validation"]["perplexity"]
        if best >= own:
            return None
        return Verdict(
            f"{name} does better on the validation documents: a perplexity of {best:,.2f} against "
            f"{own:,.2f}"
        )

    def open_run(self, path: Path) -> "LanguageRun":
        """Open a run directory."""
        from gru_training.language.run import LanguageRun

        return LanguageRun.open(path)

    def servable(self, run: "LanguageRun") -> "LanguageServable":
        """The model with its signatures."""
        from gru_training.language.served.servable import LanguageServable

        return LanguageServable(run)

    def scorer(self, run: "LanguageRun") -> "LanguageScorer":
        """What says how likely the texts of a table are."""
        from gru_training.language.served.scorer import LanguageScorer

        return LanguageScorer(run)

    def outcomes(self, run: "LanguageRun", data: Path | None, like: Any) -> NoReturn:  # noqa: ARG002
        """None: a text has no right answer; the figures of runs stand in their reports."""
        raise TrainingError(
            f"{run.path}: gru-train compare knows runs of sentiment and forecasting, got a "
            "language model; its perplexity is in its report, beside those of n-grams"
        )


TASK: Task = LanguageTask()
