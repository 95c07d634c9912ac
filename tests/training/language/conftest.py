"""A tiny corpus, and a run trained on it."""

import pytest

from gru_training.config import RunConfig
from gru_training.language.config import (
    LanguageConfig,
    LanguageDataConfig,
    LanguageModelConfig,
    LanguageTrainingConfig,
)
from gru_training.language.run import LanguageRun
from tests.made_once import made_once

SUBJECTS, VERBS = ("the cat", "a dog", "my friend"), ("sees", "likes", "hears")
OBJECTS = ("the moon.", "a fish.", "old songs.", "the rain!")


def sentences():
    return [f"{s} {v} {o}" for s in SUBJECTS for v in VERBS for o in OBJECTS]


def tiny_config(runs, data, name="tiny", unit="words", **training):
    return LanguageConfig(
        data=LanguageDataConfig(data=data, document="line", unit=unit),
        model=LanguageModelConfig(embedding_size=6, units=7, layers=2, dropout=0.1),
        training=LanguageTrainingConfig(
            **{"epochs": 3, "batch_size": 4, "steps": 3, "learning_rate": 0.02, **training}
        ),
        run=RunConfig(runs_dir=runs, name=name),
    )


def write_corpus(folder):
    path = folder / "sentences.txt"
    path.write_text("\n".join(sentences()) + "\n")
    return path


@pytest.fixture(scope="session")
def corpus():
    return made_once("corpus", write_corpus) / "sentences.txt"


@pytest.fixture(scope="session")
def config_of(corpus):
    """Makes the settings of a tiny run in a folder."""
    return lambda runs, **settings: tiny_config(runs, corpus, **settings)


@pytest.fixture(scope="session")
def language_run(corpus):
    from gru_training.language.pipeline import train_language

    folder = made_once("language_run", lambda runs: train_language(tiny_config(runs, corpus)))
    return LanguageRun.open(folder / "tiny")
