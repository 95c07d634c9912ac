"""The settings of a text classifier that goes on from a run."""

from dataclasses import replace

from gru_training.continuing.config import ContinueConfig
from gru_training.continuing.settings import continued_settings, require_file
from gru_training.errors import ConfigError
from gru_training.sentiment.config import SentimentConfig, TeachingConfig
from gru_training.sentiment.run import SentimentRun

RATE, EPOCHS = 1.0, 3
"""Share of the old run's learning rate, and most epochs; chosen on validation rows of MR."""


def continuation(run: SentimentRun, wanted: ContinueConfig) -> SentimentConfig:
    """Those of the run; what was left to its data is as it was decided there.

    Raises:
        DataError: There is no file of new rows.
        ConfigError: The run averages others, or the option is for other runs.
    """
    require_file(wanted)
    return continued_config(run, wanted)


def continued_config(run: SentimentRun, wanted: ContinueConfig) -> SentimentConfig:
    """As `continuation`, wherever the new rows are.

    Raises:
        ConfigError: The run averages others, or the option is for other runs.
    """
    if wanted.refit_scaler:
        raise ConfigError(
            f"--refit-scaler is for runs of series, got {run.path}, which reads texts"
        )
    old = run.config
    changed = continued_settings(run, wanted, RATE, EPOCHS)
    data = replace(
        old.data,
        cleaning=run.cleaned,
        spacing=None if run.reading == "pieces" else run.reading == "spaced",
        drop_bad=old.data.drop_bad or wanted.drop_bad,
        drop_small_classes=old.data.drop_small_classes or wanted.drop_small_classes,
    )
    combined = "gru_alone" in run.metrics or "shares" in run.metrics
    model = replace(old.model, ngrams=combined)
    # What it was taught is in its weights.
    return replace(old, data=data, teaching=TeachingConfig(), model=model, **changed)
