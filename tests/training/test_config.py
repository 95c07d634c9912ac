import dataclasses
import json
from pathlib import Path

import pytest

from training.config import from_dict, to_dict
from training.errors import ConfigError
from training.presets import preset, preset_in
from training.sentiment_config import (
    DataConfig,
    ModelConfig,
    SentimentConfig,
    SentimentRunConfig,
    TrainingConfig,
)
from training.sentiment_presets import PRESETS


def test_json_round_trip():
    config = SentimentConfig(
        data=DataConfig(data=Path("some/where"), text_column="body", reviews=500),
        model=ModelConfig(units=7, dropout=0.125, bidirectional=False),
        training=TrainingConfig(schedule="cosine", seed=9),
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
        (ModelConfig, {"units": 0}, "--units must be at least 1, got 0"),
        (ModelConfig, {"layers": -1}, "--layers must be at least 1"),
        (ModelConfig, {"dropout": 1.0}, "--dropout must be at least 0 and below 1"),
        (ModelConfig, {"word_dropout": -0.1}, "--word-dropout"),
        (TrainingConfig, {"epochs": -3}, "--epochs must be at least 1, got -3"),
        (TrainingConfig, {"learning_rate": float("nan")}, "--learning-rate must be a finite"),
        (TrainingConfig, {"clip_norm": 0.0}, "--clip-norm"),
        (TrainingConfig, {"seed": -1}, "--seed must be at least 0"),
        (TrainingConfig, {"schedule": "linear"}, "schedule must be one of"),
        (DataConfig, {"reviews": 5}, "--reviews must be 100 to 1000000, got 5"),
        (DataConfig, {"test_fraction": 1.5}, "--test-fraction must lie between 0 and 1"),
        (DataConfig, {"test_fraction": 0.6, "validation_fraction": 0.4}, "leave something"),
        (DataConfig, {"text_column": "x"}, "need --data"),
        (SentimentRunConfig, {"name": "../up"}, "--name must be a plain name"),
        (SentimentRunConfig, {"name": ".hidden"}, "--name must be a plain name"),
        (ModelConfig, {"units": "64"}, "units must be int, got '64'"),
        (ModelConfig, {"units": True}, "units must be int, got True"),
        (ModelConfig, {"unit": 64}, "no field 'unit'"),
        (SentimentConfig, {"model": 3}, "ModelConfig must be an object"),
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
    found = preset_in(["sentiment", "--preset", "imdb"], PRESETS, SentimentConfig())
    assert found.data.max_tokens == 1000
