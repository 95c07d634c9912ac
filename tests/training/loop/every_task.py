"""Trains a tiny model of each task: `python -m tests.training.loop.every_task FOLDER DATA`.

Without dropout, so that any number of workers has the same result.
"""

import sys
from dataclasses import replace
from pathlib import Path

from gru_training.config import RunConfig
from gru_training.forecasting.config import CombinationConfig
from gru_training.sentiment.config import ClassifierConfig
from gru_training.task import find_task
from tests.training.conftest import tiny_config as sentiment
from tests.training.conftest import tiny_forecasting_config, write_waves
from tests.training.language.conftest import tiny_config as language
from tests.training.language.conftest import write_corpus


def settings(folder, data):
    """Settings of each task, for batches with fewer rows than workers, and sparse gradients."""
    texts = sentiment(folder, "sentiment", sparse_updates=True, metric="macro_f1")
    texts = replace(
        texts,
        # Of 320 rows the last one is a batch of its own.
        training=replace(texts.training, batch_size=29),
        model=ClassifierConfig(embedding_size=6, units=5, dropout=0, word_dropout=0),
    )
    documents = language(folder, data / "sentences.txt", "language", sampled=5, average=0.9)
    documents = replace(documents, model=replace(documents.model, dropout=0))
    series = tiny_forecasting_config(folder, "forecasting", data / "waves.csv", dropout=0)
    series = replace(
        series,
        training=replace(series.training, batch_size=33),
        combination=CombinationConfig(combine=False, refit=True),
        run=RunConfig(folder, "forecasting"),
    )
    return {"sentiment": texts, "language": documents, "forecasting": series}


def write_data(folder):
    write_corpus(folder)
    write_waves(folder / "waves.csv")


def train(folder, data):
    folder.mkdir()
    for name, config in settings(folder, data).items():
        find_task(name).train(config, None, resume=False)


if __name__ == "__main__":
    train(*map(Path, sys.argv[1:]))
