"""A text classifier and a forecaster with hostile names, trained for a moment and exported."""

import csv
import shutil

import numpy as np

from gru_serving.export.run import export_run
from gru_training.forecasting.config import (
    ForecasterConfig,
    ForecastingConfig,
    ForecastingTrainingConfig,
    RunConfig,
    SeriesConfig,
)
from gru_training.forecasting.pipeline import train_forecasting
from gru_training.sentiment.config import (
    ClassifierConfig,
    SentimentConfig,
    SentimentDataConfig,
    SentimentRunConfig,
    SentimentTrainingConfig,
)
from gru_training.sentiment.grammar import generate_reviews
from gru_training.sentiment.pipeline import train_sentiment

from .big_models import save_estimate, save_several, save_topics, save_wide
from .hostile_names import CLASSES, COLUMNS, HOSTILE

LOOKBACK, HORIZON = 48, 12


def make_all(root):
    """The runs in `runs/`, and base paths of these and of the large models in `models/`."""
    for name, train in {"texts": train_texts, "series": train_series}.items():
        export_run(train(root), root / "models" / name)
    shutil.copytree(root / "models" / "texts" / "1", root / "models" / "texts" / "2")
    save_topics(root / "models" / "topics")
    save_wide(root / "models" / "wide")
    save_several(root / "models" / "several")
    save_estimate(root / "models" / "estimate")


def train_texts(root):
    with (root / "reviews.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "label"])
        for review in generate_reviews(300, 3):
            table.writerow([f"{review.text} {HOSTILE}text'\">", CLASSES[review.label]])
    config = SentimentConfig(
        data=SentimentDataConfig(data=root / "reviews.csv"),
        model=ClassifierConfig(embedding_size=8, units=8),
        training=SentimentTrainingConfig(epochs=1),
        run=SentimentRunConfig(runs_dir=root / "runs", name="texts"),
    )
    return train_sentiment(config).path


def train_series(root):
    rng = np.random.default_rng(1)
    hours = np.arange(500)
    load = 500 + 80 * np.sin(2 * np.pi * hours / 24) + rng.normal(0, 8, len(hours))
    heat = 20 - 5 * np.cos(2 * np.pi * hours / 24)
    times = np.datetime64("2024-01-01T00") + hours.astype("timedelta64[h]")
    with (root / "series.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["time", *COLUMNS])
        for number, (time, *cells) in enumerate(zip(times, load, heat, strict=True)):
            first = "" if number % 97 == 50 else f"{cells[0]:.2f}"
            table.writerow([f"{time}:00", first, f"{cells[1]:.3f}"])
    config = ForecastingConfig(
        data=SeriesConfig(data=root / "series.csv", lookback=LOOKBACK, horizon=HORIZON),
        model=ForecasterConfig(units=8, segment=12),
        training=ForecastingTrainingConfig(epochs=1),
        run=RunConfig(runs_dir=root / "runs", name="series"),
    )
    return train_forecasting(config).path
