"""The settings of a text classifier that goes on from a run."""

from dataclasses import replace

from training.continuing.config import ContinueConfig
from training.continuing.settings import continued_settings
from training.errors import ConfigError
from training.sentiment.config import SentimentConfig, TeachingConfig
from training.sentiment.run import SentimentRun


def continuation(run: SentimentRun, wanted: ContinueConfig) -> SentimentConfig:
    """Those of the run; what was left to its data is as it was decided there.

    Raises:
        DataError: There is no file of new rows.
        ConfigError: The run averages others.
    """
    if "ensemble" in run.metrics:
        raise ConfigError(
            f"{run.path} averages several runs; continue each of those, then average them again"
        )
    old = run.config
    changed = continued_settings(old, wanted)
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
