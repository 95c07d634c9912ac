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


def _preset(
    data: DataConfig, model: ModelConfig, epochs: int, pretraining: PretrainingConfig | None = None
) -> SentimentConfig:
    training = TrainingConfig(epochs=epochs, learning_rate=1e-3, schedule="cosine")
    return SentimentConfig(
        data=data, pretraining=pretraining or PretrainingConfig(), model=model, training=training
    )


_MR = DataConfig(data=_SETS / "mr", fold=0)
_SST2 = DataConfig(data=_SETS / "sst2", phrases=True)
_IMDB = DataConfig(data=_SETS / "imdb", max_tokens=1000)

PRESETS = {
    "demo": SentimentConfig(),
    "mr": _preset(_MR, _ALONE, 5),
    "mr-pretrained": _preset(_MR, _PRETRAINED, 5, _UNLABELLED),
    # With ratios it learns the phrases by heart: most are parts of others.
    "sst2": _preset(_SST2, replace(_ALONE, word_ratios=False), 2),
    "sst2-pretrained": _preset(_SST2, _PRETRAINED, 3, _UNLABELLED),
    "imdb": _preset(_IMDB, _ALONE, 3),
    "imdb-pretrained": _preset(_IMDB, _PRETRAINED, 3, _UNLABELLED),
}
