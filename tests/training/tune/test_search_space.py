"""Which settings a search varies, and between which values."""

import json

import optuna
import pytest

from gru_training.config import from_dict, to_dict
from gru_training.errors import ConfigError
from gru_training.search_ranges import Floats, Integers, OneOf
from gru_training.sentiment.config import SentimentConfig
from gru_training.task import TASKS, find_task
from gru_training.tune.search_space import SearchSpace


@pytest.fixture(params=TASKS)
def config(request):
    return find_task(request.param).settings()


def test_default_ranges_hold_the_defaults_and_make_settings_that_can_be_trained(config):
    space = SearchSpace.of(config)
    assert len(space.choices) >= 6
    assert space.allows(space.defaults())
    assert space.with_values(space.defaults()) == config
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    for _ in range(50):
        trial = study.ask()
        values = {name: choice.suggest(trial, name) for name, choice in space.choices.items()}
        assert space.allows(values)
        settings = space.with_values(values)
        assert from_dict(type(config), json.loads(json.dumps(to_dict(settings)))) == settings
        assert space.with_values({**values, **space.defaults()}) == config


def test_what_is_given_is_not_searched():
    space = SearchSpace.of(SentimentConfig(), ["units", "pooling"])
    assert {"units", "pooling"}.isdisjoint(space.choices)
    assert "dropout" in space.choices


def test_a_range_grows_to_hold_the_settings_to_begin_with():
    assert Integers(32, 160, 16).including(100) == Integers(32, 160, 4)
    assert Integers(32, 160, 16).including(300).holds(300)
    assert Floats(0.1, 0.5).including(0.7) == Floats(0.1, 0.7)
    assert OneOf(("max", "mean")).including("last").values == ("max", "mean", "last")


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("units=64:256", Integers(64, 256)),
        ("units=64:256:32", Integers(64, 256, 32)),
        ("--learning-rate=1e-4:1e-2:log", Floats(1e-4, 1e-2, log=True)),
        ("dropout=0:.5", Floats(0, 0.5)),
        ("pooling=max, last", OneOf(("max", "last"))),
        ("layers=1,2", OneOf((1, 2))),
        ("bidirectional=yes,no", OneOf((True, False))),
        ("clip_norm=1,5", OneOf((1.0, 5.0))),
    ],
)
def test_ranges_of_the_command_line(text, choice):
    name = text.partition("=")[0].lstrip("-").replace("-", "_")
    assert SearchSpace.of(SentimentConfig()).varying(text).choices[name] == choice


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("units", "--vary must be SETTING=RANGE, as units=64:256, got 'units'"),
        ("unit=1:2", "there is no setting 'unit'"),
        ("units=a:b", "--vary units must be LOW:HIGH"),
        ("units=256:64", "--vary units must begin below its end"),
        ("units=64:256:0", "--vary units must be LOW:HIGH"),
        ("dropout=0:2", "--dropout must be at least 0 and below 1, got 2"),
        ("dropout=0:.5:log", "--vary dropout must begin above 0 to be drawn by logarithm"),
        ("pooling=max,sum", "--vary pooling: pooling must be one of"),
        ("name=a,b", "there is no setting 'name'"),
    ],
)
def test_ranges_that_cannot_be_used(text, said):
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")):
        SearchSpace.of(SentimentConfig()).varying(text)
