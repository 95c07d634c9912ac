"""Settings by name."""

from pathlib import Path

from gru_training.language.config import (
    LanguageConfig,
    LanguageDataConfig,
    LanguageModelConfig,
    LanguageTrainingConfig,
)

PRESETS = {
    "characters": LanguageConfig(
        data=LanguageDataConfig(unit="characters"),
        model=LanguageModelConfig(embedding_size=128, units=512),
        # Small chunks: of a text like Python's help 128 steps of 32 rows make too few updates.
        training=LanguageTrainingConfig(batch_size=16, learning_rate=2e-3),
    ),
    "imdb": LanguageConfig(
        data=LanguageDataConfig(data=Path("../shared/data/imdb"), validation_fraction=0.01),
        model=LanguageModelConfig(embedding_size=256, units=512),
        training=LanguageTrainingConfig(epochs=3, batch_size=64),
    ),
}
