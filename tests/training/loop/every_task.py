"""Trains a tiny model of each task: `python -m tests.training.loop.every_task FOLDER DATA`.

Without dropout, so that any number of workers has the same result.
"""

import sys
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest

from gru_training.config import RunConfig
from gru_training.forecasting.config import CombinationConfig
from gru_training.sentiment.config import ClassifierConfig
from gru_training.task import find_task
from tests.training.conftest import tiny_config as sentiment
from tests.training.conftest import tiny_forecasting_config, write_waves
from tests.training.language.conftest import tiny_config as language
from tests.training.language.conftest import write_corpus

TRAIN = ["sentiment", "--name", "run", "--set", "reviews=400", "--units", "5", "--dropout", "0",
         "--set", "word_dropout=0", "--epochs", "60", "--patience", "60"]  # fmt: skip
"""A command that trains a classifier, for long enough to be interrupted."""


def settings(folder, data):
    """Settings of each task, for batches with fewer rows than workers."""
    texts = sentiment(folder, "sentiment", metric="macro_f1")
    texts = replace(
        texts,
        # Of 320 rows the last one is a batch of its own.
        training=replace(texts.training, batch_size=29),
        model=ClassifierConfig(embedding_size=6, units=5, dropout=0, word_dropout=0),
    )
    documents = language(folder, data / "sentences.txt", "language", sampled=5)
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


def weights(run):
    """The weights of the run's models, by file and path."""
    models = {path.name: keras.models.load_model(path) for path in run.glob("*.keras")}
    return {
        (name, variable.path): np.asarray(variable)
        for name, model in models.items()
        for variable in model.weights
    }


def assert_same(run, expected, task):
    found, wanted = weights(run), weights(expected)
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-3, atol=2e-5, err_msg=str(key))
    pair = [find_task(task).open_run(each).history for each in (run, expected)]
    for epoch, expected_epoch in zip(*pair, strict=True):
        for part in ("train", "validation"):
            assert epoch[part] == pytest.approx(expected_epoch[part], rel=1e-4)


if __name__ == "__main__":
    train(*map(Path, sys.argv[1:]))
