"""Settings of the rows of the results table, by name; chosen on validation rows alone."""

from dataclasses import replace
from pathlib import Path

from gru_training.sentiment.config import (
    ClassifierConfig,
    PretrainingConfig,
    SentimentConfig,
    SentimentDataConfig,
    SentimentTrainingConfig,
)

_SETS = Path("../shared/data")
_NO_VECTORS = PretrainingConfig()
_OWN_TEXTS = PretrainingConfig(word_vectors=True)
_UNLABELLED = PretrainingConfig(unlabelled=_SETS / "imdb")
_ALONE = ClassifierConfig(
    embedding_size=128,
    units=128,
    word_dropout=0.4,
    subwords=True,
    word_ratios=True,
    ngrams=True,
)
_PRETRAINED = ClassifierConfig(embedding_size=64, units=128, ngrams=True)
_LONG_TEXTS = ClassifierConfig(
    embedding_size=16, units=64, pooling="attention", word_dropout=0.3, ngrams=True
)


def _preset(
    data: SentimentDataConfig, pretraining: PretrainingConfig, model: ClassifierConfig, epochs: int
) -> SentimentConfig:
    training = SentimentTrainingConfig(epochs=epochs, learning_rate=1e-3, schedule="cosine")
    return SentimentConfig(data=data, pretraining=pretraining, model=model, training=training)


_MR = SentimentDataConfig(data=_SETS / "mr", fold=0)
_SST2 = SentimentDataConfig(data=_SETS / "sst2", phrases=True)
_IMDB = SentimentDataConfig(data=_SETS / "imdb", max_tokens=1000)

PRESETS = {
    "demo": SentimentConfig(),
    "mr": _preset(_MR, _NO_VECTORS, _ALONE, 5),
    "mr-pretrained": _preset(_MR, _UNLABELLED, _PRETRAINED, 5),
    # With ratios it learns the phrases by heart: most are parts of others.
    "sst2": _preset(_SST2, _OWN_TEXTS, replace(_ALONE, word_ratios=False), 2),
    "sst2-pretrained": _preset(_SST2, _UNLABELLED, _PRETRAINED, 3),
    "imdb": _preset(_IMDB, _OWN_TEXTS, _LONG_TEXTS, 3),
    "imdb-pretrained": _preset(_IMDB, _UNLABELLED, _LONG_TEXTS, 3),
}
