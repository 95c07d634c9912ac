"""Settings by name."""

from pathlib import Path

from training.language.config import (
    LanguageConfig,
    LanguageDataConfig,
    LanguageModelConfig,
    LanguageTrainingConfig,
)

PRESETS = {
    "characters": LanguageConfig(
        data=LanguageDataConfig(unit="characters"),
        model=LanguageModelConfig(embedding_size=128, units=512),
        training=LanguageTrainingConfig(steps=128),
    ),
    "imdb": LanguageConfig(
        data=LanguageDataConfig(data=Path("../shared/data/imdb"), validation_fraction=0.01),
        model=LanguageModelConfig(embedding_size=256, units=512),
        training=LanguageTrainingConfig(epochs=3, batch_size=64),
    ),
}
