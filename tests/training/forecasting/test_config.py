import json
from pathlib import Path

import pytest

from gru_training.command_settings import task_settings
from gru_training.config import from_dict, preset, to_dict
from gru_training.errors import ConfigError
from gru_training.forecasting.config import (
    ForecastingConfig,
    ForecastingTrainingConfig,
    SeriesConfig,
)
from gru_training.forecasting.network.config import ForecasterConfig
from gru_training.forecasting.presets import PRESETS
from gru_training.forecasting.task import TASK


def test_json_round_trip():
    config = ForecastingConfig(
        data=SeriesConfig(Path("a/b.csv"), target=("x", "y"), lookback=9, test_fraction=0.25)
    )
    assert from_dict(ForecastingConfig, json.loads(json.dumps(to_dict(config)))) == config
    for known in PRESETS.values():
        assert from_dict(ForecastingConfig, json.loads(json.dumps(to_dict(known)))) == known


@pytest.mark.parametrize(
    ("cls", "values", "message"),
    [
        (SeriesConfig, {"lookback": 0}, "--lookback must be at least 1, got 0"),
        (SeriesConfig, {"horizon": -2}, "--horizon must be at least 1"),
        (SeriesConfig, {"target": ["a", "a"]}, "--target must name each column once, got a a"),
        (SeriesConfig, {"target": "a"}, "target must be a list, got 'a'"),
        (SeriesConfig, {"target": [1]}, "target must be str, got 1"),
        (SeriesConfig, {"test_fraction": 0.95}, "must leave something to train on"),
        (SeriesConfig, {"time_format": "%d"}, "need --data"),
        (SeriesConfig, {"resample": "mean"}, "--resample needs --frequency"),
        (ForecasterConfig, {"intervals": [0.8, 1.0]}, "--intervals must be .*got 0.8 1.0"),
        (ForecasterConfig, {"intervals": []}, "--intervals must be one or more"),
        (ForecastingTrainingConfig, {"train_stride": 0}, "--train-stride must be at least 1"),
        (ForecastingTrainingConfig, {"schedule": "step"}, "schedule must be one of"),
    ],
)
def test_says_what_is_wrong(cls, values, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(cls, values)


def test_intervals_say_which_quantiles_there_are():
    assert ForecasterConfig().levels == (0.025, 0.1, 0.5, 0.9, 0.975)
    assert ForecasterConfig(intervals=(0.9, 0.5)).levels == (0.05, 0.25, 0.5, 0.75, 0.95)


def test_presets_are_found_on_a_command_line():
    def parsed(*words):
        return task_settings(TASK, words, "gru-train")

    assert parsed() == ForecastingConfig()
    named = parsed("--preset", "etth1-96")
    assert named == parsed("--preset=etth1-96") == preset("etth1-96", PRESETS)
    assert (named.preset, named.data.horizon) == ("etth1-96", 96)
    assert named.data.data is not None
    with pytest.raises(ConfigError, match=r"--preset must be one of co2, etth1-96, .*got 'nope'"):
        parsed("--preset", "nope")


@pytest.mark.parametrize(
    ("lookback", "season", "segment"),
    [
        (336, 24, 48),
        (210, 7, 42),
        (72, 24, 24),  # less than five of them: three
        (36, 12, 12),
        (21, 7, 7),
        (24, 12, 6),
        (156, 52, 26),
        (336, 144, 48),
        (100, 1, 12),  # no season
        (2, 7, 1),
    ],
)
def test_segments_follow_from_the_season(lookback, season, segment):
    chosen = ForecasterConfig().for_series(lookback, season, targets=3)
    assert chosen.segment == segment
    assert chosen.channel_embedding is True
    chosen.require_lookback(lookback)
    assert ForecasterConfig(segment=5).for_series(lookback, season, 3).segment == 5
    assert ForecasterConfig().for_series(lookback, season, 33).channel_embedding is False
