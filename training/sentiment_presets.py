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
_SENTENCES = ModelConfig(embedding_size=128, units=128, word_dropout=0.4)
_BESIDE_PRETRAINED = ModelConfig(embedding_size=64, units=128)
_SHORT = TrainingConfig(epochs=5, learning_rate=1e-3, schedule="cosine")

_MR = SentimentConfig(data=DataConfig(data=_SETS / "mr", fold=0), model=_SENTENCES, training=_SHORT)
_SST2 = replace(_MR, data=DataConfig(data=_SETS / "sst2", phrases=True))

PRESETS = {
    "demo": SentimentConfig(),
    "mr": _MR,
    "mr-pretrained": replace(_MR, pretraining=_UNLABELLED, model=_BESIDE_PRETRAINED),
    "sst2": _SST2,
    "sst2-pretrained": replace(_SST2, pretraining=_UNLABELLED, model=_BESIDE_PRETRAINED),
}
