"""A tiny trained run and the place of the real data."""

from pathlib import Path

import pytest

from training.config import DataConfig, ModelConfig, RunConfig, SentimentConfig, TrainingConfig
from training.run_directory import RunDirectory

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
        RunConfig(runs_dir=runs_dir, name=name),
    )


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    from training.sentiment import train_sentiment

    return train_sentiment(tiny_config(tmp_path_factory.mktemp("runs")))
