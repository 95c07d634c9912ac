"""The next steps that a training prints fit its outcome."""

import shlex
from dataclasses import replace
from types import SimpleNamespace

import pytest

from gru_training.__main__ import main
from gru_training.command_line import _again, _served
from gru_training.forecasting import task as forecasting_task
from gru_training.forecasting.config import ForecasterConfig, ForecastingConfig
from gru_training.forecasting.run import ForecastingRun
from gru_training.sentiment import task as sentiment_task
from gru_training.sentiment.config import (
    ClassifierConfig,
    SentimentConfig,
    SentimentDataConfig,
    SentimentRunConfig,
)
from tests.training.conftest import write_waves


def classifier(own, best, ngrams=False):
    floors = {"majority class": 0.5, "bag of words": best}
    metrics = {
        "target": "class",
        "metric": "accuracy",
        "data": {"balance": {"a": {"train": 8}, "b": {"train": 8}}},
        "model": {"validation": {"accuracy": own}},
        "baselines": {name: {"validation_accuracy": value} for name, value in floors.items()},
    }
    config = SentimentConfig(model=ClassifierConfig(ngrams=ngrams))
    return SimpleNamespace(metrics=metrics, config=config)


def forecaster(own, best, linear_skip=False, loss="mse"):
    floors = {"seasonal naive": 2.0, "ridge regression": best}
    metrics = {
        "model": {"validation": {"mse": own}},
        "baselines": {name: {"validation": {"mse": value}} for name, value in floors.items()},
    }
    config = ForecastingConfig(model=ForecasterConfig(linear_skip=linear_skip, loss=loss))
    return SimpleNamespace(metrics=metrics, config=config)


def test_a_classifier_below_a_baseline_is_offered_its_better_setting():
    problem, flags = sentiment_task.verdict(classifier(0.91, 0.943))
    assert problem == "bag of words does better on the validation rows: 94.3% against 91.0%"
    assert flags == ("--ngrams",)
    assert sentiment_task.verdict(classifier(0.91, 0.943, ngrams=True)).flags == ()
    assert sentiment_task.verdict(classifier(0.95, 0.943)) is None
    assert sentiment_task.verdict(classifier(0.943, 0.943)) is None


def test_a_forecaster_above_a_baseline_is_offered_its_better_setting():
    problem, flags = forecasting_task.verdict(forecaster(1.2925, 0.4298))
    assert "ridge regression does better on the validation part" in problem
    assert "0.4298 against 1.2925" in problem
    assert flags == ("--linear-skip",)
    assert forecasting_task.verdict(forecaster(1.2925, 0.4298, linear_skip=True)).flags == ()
    combined = forecaster(1.2925, 0.4298)
    combined.metrics["combination"] = {"shares": []}
    assert forecasting_task.verdict(combined).flags == ()
    assert forecasting_task.verdict(forecaster(0.1, 0.4298)) is None
    problem, _ = forecasting_task.verdict(forecaster(2e-6, 1e-6))
    assert "1e-06 against 2e-06" in problem
    assert forecasting_task.verdict(forecaster(2e-13, 1e-33)) is None  # float32 tells no more


def test_a_forecaster_of_medians_is_judged_by_its_absolute_error():
    median = forecaster(1.2925, 0.4298, loss="mae")
    floors = median.metrics["baselines"]
    median.metrics["model"]["validation"]["mae"] = 0.6
    floors["ridge regression"]["validation"]["mae"] = 0.7
    floors["seasonal naive"]["validation"]["mae"] = 0.9
    assert forecasting_task.verdict(median) is None
    median.metrics["model"]["validation"]["mae"] = 0.8
    problem = forecasting_task.verdict(median).problem
    assert "a mean absolute error of 0.7000 against 0.8000" in problem


@pytest.mark.parametrize(
    ("path", "served"),
    [("tickets.csv.gz", "tickets"), ("Zoë's tickets.csv", "Zoë-s-tickets"), ("..csv", "sentiment")],
)
def test_a_model_is_called_like_the_run_or_else_the_data(tmp_path, path, served):
    config = SentimentConfig(data=SentimentDataConfig(data=tmp_path / path))
    named = replace(config, run=SentimentRunConfig(name="my run.2"))
    assert _served(SimpleNamespace(config=named), "sentiment") == "my-run-2"
    assert _served(SimpleNamespace(config=config), "sentiment") == served
    assert _served(SimpleNamespace(config=SentimentConfig()), "sentiment") == "sentiment"


def test_the_next_training_has_the_same_settings_but_the_name():
    given = ["--name", "first", "--data", "a b.csv", "--units", "8"]
    wanted = ["gru-train", "sentiment", "--data", "a b.csv", "--units", "8", "--ngrams"]
    assert _again("sentiment", given, ("--ngrams",)) == wanted
    equals = ["--name=first", *given[2:]]
    assert _again("sentiment", equals, ("--ngrams",)) == wanted


@pytest.mark.slow
def test_a_training_below_a_baseline_does_not_end_in_a_plain_export(tmp_path, capsys):
    data = write_waves(tmp_path / "waves.csv")
    sizes = ["--units", "4", "--set", "segment=6", "--lookback", "24", "--horizon", "6"]
    command = ["forecasting", *sizes, "--data", str(data), "--validation-fraction", "0.25",
               "--epochs", "1", "--no-combine",
               "--runs-dir", str(tmp_path / "my runs")]  # fmt: skip
    assert main([*command, "--name", "first"]) == 0
    *_, again, export = capsys.readouterr().out.splitlines()
    run = tmp_path / "my runs" / "first"
    assert shlex.split(export.removeprefix("or"), comments=True) == [
        "gru-serve", "export", str(run), "--to", "models/first"]  # fmt: skip
    program, *arguments = shlex.split(again.removeprefix("next"))
    assert (program, arguments) == ("gru-train", [*command, "--linear-skip"])
    assert main(arguments) == 0
    (second,) = (path for path in run.parent.iterdir() if path != run)
    assert ForecastingRun.open(second).config.model.linear_skip
