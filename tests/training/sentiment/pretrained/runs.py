"""A tiny language model of tickets, and the settings of classifiers that begin with it."""

import json
import shutil
from dataclasses import replace

from gru_training.language.config import (
    LanguageConfig,
    LanguageDataConfig,
    LanguageModelConfig,
    LanguageRunConfig,
    LanguageTrainingConfig,
)
from gru_training.language.pipeline import train_language
from gru_training.sentiment.config import PretrainingConfig, SentimentDataConfig
from gru_training.sentiment.pipeline import train_sentiment
from tests.training.sentiment.continuing.tickets import WORDS, config, tickets, write

UNHEARD = {**WORDS, "delivery": "parcel courier vanished"}
"""The language model knows no `vanished`."""


def language_config(folder, name):
    return LanguageConfig(
        data=LanguageDataConfig(data=folder / "texts.csv", min_count=2),
        model=LanguageModelConfig(embedding_size=7, units=9, layers=2, dropout=0.1),
        training=LanguageTrainingConfig(epochs=3, batch_size=8, steps=8, learning_rate=0.02),
        run=LanguageRunConfig(runs_dir=folder, name=name),
    )


def classifier_config(folder, name, **pretraining):
    data = SentimentDataConfig(data=folder / "labelled.csv", min_count=2)
    made = config(folder, name, data, embedding_size=64, units=64)  # what nobody asked for
    return replace(
        made,
        pretraining=PretrainingConfig(pretrained=folder / "lm", **pretraining),
        training=replace(made.training, epochs=8, patience=8, learning_rate=0.03),
    )


def make(folder):
    write(folder / "texts.csv", tickets(150, 3))
    train_language(language_config(folder, "lm"))
    write(folder / "labelled.csv", tickets(120, 0, UNHEARD))
    train_sentiment(classifier_config(folder, "tuned"))
    train_sentiment(classifier_config(folder, "frozen", frozen=True))


def changed_copy(run, path, old, new):
    """A copy of a run in whose settings a text stands in place of another."""
    shutil.copytree(run, path)
    settings, manifest = path / "config.json", path / "manifest.json"
    settings.write_text(settings.read_text("utf-8").replace(old, new), "utf-8")
    sizes = json.loads(manifest.read_text("utf-8"))
    sizes[settings.name] = settings.stat().st_size
    manifest.write_text(json.dumps(sizes), "utf-8")
    return path
