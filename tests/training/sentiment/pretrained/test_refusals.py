"""What cannot begin with a language model is told in one line, and nothing is left behind."""

import json
from dataclasses import replace

import numpy as np
import pytest

from gru_training.__main__ import main
from gru_training.errors import ConfigError
from gru_training.sentiment.config import ClassifierConfig, PretrainingConfig, SentimentConfig
from gru_training.sentiment.continuing.rows import load_data
from gru_training.sentiment.pretrained.settings import with_encoder_sizes
from gru_training.sentiment.run import SentimentRun
from gru_training.task import find_task
from gru_training.tune.config import TuneConfig
from gru_training.tune.run import search_space
from tests.training.sentiment.continuing.tickets import tickets
from tests.training.sentiment.pretrained.runs import changed_copy, classifier_config


def train(folder, runs, *flags):
    return main(
        ["sentiment", "--data", str(folder / "labelled.csv"), "--runs-dir", str(runs), *flags]
    )


@pytest.mark.slow
def test_runs_that_are_no_language_model_of_words(folder, tmp_path, capsys):
    letters = changed_copy(
        folder / "lm", tmp_path / "letters", '"unit": null', '"unit": "characters"'
    )
    for path, message in (
        (folder / "none", f"--pretrained: there is no run directory {folder / 'none'}"),
        (folder, f"{folder} is not a complete run"),
        (folder / "tuned", f"{folder / 'tuned'}: expected a run of gru-train language, got one of "
         "gru-train sentiment"),
        (letters, f"{letters}: expected a language model of words, got one of characters"),
    ):  # fmt: skip
        assert train(folder, tmp_path / "runs", "--pretrained", str(path)) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--units", "10"], "--units must be left out with --pretrained, or that of RUN, 9; got 1"),
        (["--embedding-size", "8"], "--embedding-size must be left out with --pretrained"),
        (["--layers", "3"], "--layers must be left out with --pretrained, or that of RUN, 2"),
        (["--unlabelled", "texts.txt"], "--pretrained excludes --unlabelled, --word-vectors and"),
        (["--word-vectors"], "--pretrained excludes --unlabelled, --word-vectors and --vectors"),
        (["--vectors", "glove.txt"], "--pretrained excludes --unlabelled, --word-vectors and"),
        (["--subwords"], "--pretrained excludes --subwords and --word-ratios"),
        (["--word-ratios"], "--pretrained excludes --subwords and --word-ratios"),
        (["--pieces", "200"], "--pieces excludes --vectors, --unlabelled, --word-vectors and --pr"),
        (["--spacing"], "--spacing excludes --vectors, --unlabelled, --word-vectors and --pretra"),
    ],
)
def test_settings_that_contradict_it(folder, tmp_path, capsys, flags, message):
    path = str(folder / "lm")
    assert train(folder, tmp_path / "runs", "--pretrained", path, *flags) == 2
    error = capsys.readouterr().err
    assert message.replace("RUN", path) in error
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_frozen_alone_is_refused():
    with pytest.raises(ConfigError, match="--frozen needs --pretrained RUN"):
        PretrainingConfig(frozen=True)


def test_sizes_may_be_said_if_they_are_those_of_the_run(folder):
    asked = classifier_config(folder, "a")
    said = replace(asked, model=replace(asked.model, embedding_size=7, units=9, layers=2))
    assert with_encoder_sizes(said) == with_encoder_sizes(asked)
    assert with_encoder_sizes(with_encoder_sizes(asked)) == with_encoder_sizes(asked)
    plain = SentimentConfig(model=ClassifierConfig(units=10))
    assert with_encoder_sizes(plain) is plain


def test_a_search_leaves_alone_what_the_language_model_decides(folder):
    task, settings = find_task("sentiment"), classifier_config(folder, "a")
    space = search_space(TuneConfig("sentiment"), settings, task.held(settings))
    assert set(space.choices) & {"embedding_size", "units", "subwords", "word_ratios"} == set()
    assert {"learning_rate", "dropout", "pooling"} <= set(space.choices)
    usual = search_space(TuneConfig("sentiment"), SentimentConfig(), task.held(SentimentConfig()))
    assert "units" in usual.choices


def test_a_trial_of_a_search_begins_with_it(folder):
    task, settings = find_task("sentiment"), classifier_config(folder, "a", frozen=True)
    space = search_space(TuneConfig("sentiment"), settings, task.held(settings))
    chosen = space.with_values({**space.defaults(), "pooling": "mean"})
    chosen = replace(chosen, training=replace(chosen.training, epochs=1))
    data = load_data(chosen)
    found = []
    score = task.try_settings(
        chosen, data, task.criterion(chosen, data), lambda *told: found.append(told)
    )
    ((epoch, loss),) = found
    assert epoch == 1
    assert 0 < score.value <= loss


@pytest.mark.long
def test_the_estimator_begins_with_it(folder, tmp_path):
    from gru_training.estimators.text_classifier import TextClassifier

    texts, labels = zip(*tickets(60, 0), strict=True)
    made = TextClassifier(
        pretrained=folder / "lm", frozen=True, epochs=1, runs_dir=tmp_path, name="fitted"
    ).fit(list(texts), list(labels))
    assert len(made.predict(list(texts[:3]))) == 3
    written = json.loads((tmp_path / "fitted" / "config.json").read_text("utf-8"))
    assert written["model"]["units"] == 9
    own = SentimentRun.open(tmp_path / "fitted").load_model().get_layer("gru_2").get_weights()
    other = find_task("language").open_run(folder / "lm").load_model().grus[1].get_weights()
    for one, two in zip(own, other, strict=True):
        np.testing.assert_array_equal(one, two)
