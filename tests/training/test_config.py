import dataclasses
import json
import math
from pathlib import Path

import pytest

from gru_training.command_settings import task_settings
from gru_training.config import from_dict, preset, to_dict
from gru_training.errors import ConfigError
from gru_training.sentiment.config import (
    PRESETS,
    ClassifierConfig,
    DecisionConfig,
    SentimentConfig,
    SentimentDataConfig,
    SentimentRunConfig,
    SentimentTrainingConfig,
)
from gru_training.task import find_task


def test_json_round_trip():
    config = SentimentConfig(
        data=SentimentDataConfig(
            data=Path("some/where"),
            more_data=(Path("b.csv"), Path("c.csv")),
            text_column="body",
            target_type="labels",
            label_columns=("urgent", "billing"),
            cleaning=False,
            reviews=500,
        ),
        model=ClassifierConfig(units=7, dropout=0.125, bidirectional=False),
        training=SentimentTrainingConfig(schedule="cosine", metric="macro_f1", seed=9),
        decision=DecisionConfig(Path("costs.json"), ("spam=0.9",)),
        run=SentimentRunConfig(name="x"),
    )
    assert from_dict(SentimentConfig, json.loads(json.dumps(to_dict(config)))) == config
    assert from_dict(SentimentConfig, {}) == SentimentConfig()


def test_configs_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SentimentConfig().model.units = 3


@pytest.mark.parametrize(
    ("cls", "values", "message"),
    [
        (ClassifierConfig, {"units": 0}, "--units must be at least 1, got 0"),
        (ClassifierConfig, {"layers": -1}, "--layers must be at least 1"),
        (ClassifierConfig, {"dropout": 1.0}, "--dropout must be at least 0 and below 1"),
        (ClassifierConfig, {"word_dropout": -0.1}, "--word-dropout"),
        (SentimentTrainingConfig, {"epochs": -3}, "--epochs must be at least 1, got -3"),
        (
            SentimentTrainingConfig,
            {"learning_rate": math.nan},
            "--learning-rate must be a finite",
        ),
        (SentimentTrainingConfig, {"clip_norm": 0.0}, "--clip-norm"),
        (SentimentTrainingConfig, {"seed": -1}, "--seed must be at least 0"),
        (SentimentTrainingConfig, {"schedule": "linear"}, "schedule must be one of"),
        (SentimentDataConfig, {"target_type": "classes"}, "target_type must be one of"),
        (SentimentDataConfig, {"reviews": 5}, "--reviews must be 100 to 1000000, got 5"),
        (SentimentDataConfig, {"test_fraction": 1.5}, "--test-fraction must lie between 0 and 1"),
        (
            SentimentDataConfig,
            {"test_fraction": 0.6, "validation_fraction": 0.4},
            "leave something",
        ),
        (SentimentDataConfig, {"text_column": "x"}, "need --data"),
        (SentimentRunConfig, {"name": "../up"}, "--name must be a plain name"),
        (SentimentRunConfig, {"name": ".hidden"}, "--name must be a plain name"),
        (ClassifierConfig, {"units": "64"}, "units must be int, got '64'"),
        (ClassifierConfig, {"units": True}, "units must be int, got True"),
        (ClassifierConfig, {"unit": 64}, "no field 'unit'"),
        (SentimentConfig, {"model": 3}, "ClassifierConfig must be an object"),
    ],
)
def test_says_what_is_wrong(cls, values, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(cls, values)


def test_sentiment_presets_hold_their_name_and_differ_in_pretraining():
    for name in ("mr", "sst2", "imdb"):
        alone, pretrained = preset(name, PRESETS), preset(f"{name}-pretrained", PRESETS)
        assert alone.preset == name
        assert alone.data == pretrained.data
        assert alone.pretraining.unlabelled is None
        assert pretrained.pretraining.unlabelled.name == "imdb"
        assert alone.model.ngrams
        assert pretrained.model.ngrams
    found = task_settings(find_task("sentiment"), ["--preset", "imdb"], "gru-train")
    assert found == preset("imdb", PRESETS)
    assert found.data.max_tokens == 1000
