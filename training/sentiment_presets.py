"""Settings of the rows of the results table, by name; chosen on validation rows alone."""

from dataclasses import replace
from pathlib import Path

from training.sentiment_config import (
    DataConfig,
    ModelConfig,
    PretrainingConfig,
    SentimentConfig,
    TrainingConfig,
)

_SETS = Path("../shared/data")
_UNLABELLED = PretrainingConfig(unlabelled=_SETS / "imdb")
_ALONE = ModelConfig(
    embedding_size=128,
    units=128,
    word_dropout=0.4,
    subwords=True,
    word_ratios=True,
    ngrams=True,
)
_PRETRAINED = ModelConfig(embedding_size=64, units=128, ngrams=True)
_SHORT = TrainingConfig(epochs=5, learning_rate=1e-3, schedule="cosine")


def _rows(data: DataConfig, training: TrainingConfig = _SHORT) -> dict[str, SentimentConfig]:
    """Without and with pre-training."""
    assert data.data is not None
    alone = SentimentConfig(data=data, model=_ALONE, training=training)
    pretrained = replace(alone, model=_PRETRAINED, pretraining=_UNLABELLED)
    return {data.data.name: alone, f"{data.data.name}-pretrained": pretrained}


PRESETS = {
    "demo": SentimentConfig(),
    **_rows(DataConfig(data=_SETS / "mr", fold=0)),
    **_rows(DataConfig(data=_SETS / "sst2", phrases=True)),
    **_rows(
        DataConfig(data=_SETS / "imdb", max_tokens=1000),
        TrainingConfig(epochs=3, learning_rate=1e-3, schedule="cosine"),
    ),
}
