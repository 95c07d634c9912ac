"""A tiny trained run and the place of the real data."""

from pathlib import Path

import pytest

from training.sentiment_config import (
    DataConfig,
    ModelConfig,
    SentimentConfig,
    SentimentRunConfig,
    TrainingConfig,
)
from training.sentiment_run import SentimentRun

DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    if not DATA.is_dir():
        pytest.skip("the real data sets are not beside the checkout")
    return DATA


def tiny_config(runs_dir: Path, name: str = "tiny", **training: object) -> SentimentConfig:
    return SentimentConfig(
        DataConfig(reviews=400),
        ModelConfig(embedding_size=6, units=5),
        TrainingConfig(epochs=2, batch_size=32, **training),
        SentimentRunConfig(runs_dir=runs_dir, name=name),
    )


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> SentimentRun:
    from training.sentiment import train_sentiment

    return train_sentiment(tiny_config(tmp_path_factory.mktemp("runs")))
