"""Tiny trained runs, and the location of the real data."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gru_training.config import RunConfig
from gru_training.forecasting.config import (
    CombinationConfig,
    ForecasterConfig,
    ForecastingConfig,
    ForecastingTrainingConfig,
    SeriesConfig,
)
from gru_training.forecasting.run import ForecastingRun
from gru_training.sentiment.config import (
    ClassifierConfig,
    SentimentConfig,
    SentimentDataConfig,
    SentimentRunConfig,
    SentimentTrainingConfig,
)
from gru_training.sentiment.run import SentimentRun
from tests.made_once import made_once

DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    if not DATA.is_dir():
        pytest.skip("the real data sets are not beside the checkout")
    return DATA


def tiny_config(runs_dir: Path, name: str = "tiny", **training: object) -> SentimentConfig:
    return SentimentConfig(
        data=SentimentDataConfig(reviews=400),
        model=ClassifierConfig(embedding_size=6, units=5),
        training=SentimentTrainingConfig(epochs=2, batch_size=32, **training),
        run=SentimentRunConfig(runs_dir=runs_dir, name=name),
    )


def tiny_sentiment_run() -> SentimentRun:
    """The run of `tiny_config`, which is made once."""
    from gru_training.sentiment.pipeline import train_sentiment

    folder = made_once("tiny_run", lambda runs: train_sentiment(tiny_config(runs)))
    return SentimentRun.open(folder / "tiny")


@pytest.fixture(scope="session")
def tiny_run() -> SentimentRun:
    return tiny_sentiment_run()


def tiny_forecasting_config(
    runs_dir: Path, name: str = "waves", data: Path | None = None, **model: object
) -> ForecastingConfig:
    return ForecastingConfig(
        data=SeriesConfig(data, lookback=24, horizon=6, validation_fraction=0.25),
        model=ForecasterConfig(**{"units": 6, "segment": 6, **model}),
        training=ForecastingTrainingConfig(epochs=2, learning_rate=5e-3),
        combination=CombinationConfig(combine=False, refit=False),
        run=RunConfig(runs_dir, name),
    )


def write_waves(path: Path, rows: int = 320) -> Path:
    """Two hourly columns, the second of which follows the first, with some cells missing."""
    rng = np.random.default_rng(0)
    t = np.arange(rows)
    up = np.sin(2 * np.pi * t / 24) + 0.1 * rng.normal(size=rows)
    values = np.column_stack([100 + 10 * up, -3 * np.roll(up, 2)])
    values[40:43, 0] = np.nan
    frame = pd.DataFrame(values, columns=["up", "down"])
    frame.insert(0, "time", pd.date_range("2021-05-01", periods=rows, freq="h"))
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def forecasting_run() -> ForecastingRun:
    from gru_training.forecasting.pipeline import train_forecasting

    def make(runs: Path) -> None:
        data = write_waves(runs / "waves.csv")
        train_forecasting(tiny_forecasting_config(runs, data=data))

    folder = made_once("forecasting_run", make)
    return ForecastingRun.open(folder / "waves")
