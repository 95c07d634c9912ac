import ast
import inspect
import json
import re
import textwrap
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from gru_training import plots
from gru_training.errors import ConfigError, RunDirectoryError
from gru_training.sentiment.config import (
    ClassifierConfig,
    SentimentConfig,
    SentimentDataConfig,
    SentimentRunConfig,
    SentimentTrainingConfig,
)
from gru_training.sentiment.pipeline import train_sentiment
from tests.training.conftest import tiny_config


@pytest.mark.long
def test_the_same_seed_gives_the_same_weights(tiny_run, tmp_path):
    again = train_sentiment(tiny_config(tmp_path))
    other = train_sentiment(tiny_config(tmp_path, name="other", seed=1))
    weights = tiny_run.load_model().get_weights()
    for one, two in zip(weights, again.load_model().get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(weights[0], other.load_model().get_weights()[0])


@pytest.mark.long
def test_word_order_is_learned_where_a_bag_of_words_cannot(tmp_path):
    config = SentimentConfig(
        data=SentimentDataConfig(reviews=3000),
        training=SentimentTrainingConfig(batch_size=32),
        model=ClassifierConfig(word_dropout=0.1, dropout=0.2),
        run=SentimentRunConfig(tmp_path, "a"),
    )
    metrics = train_sentiment(config).metrics
    assert metrics["model"]["test"]["accuracy"] >= 0.97
    assert metrics["baselines"]["bag of words, logistic regression"]["test_accuracy"] <= 0.65


@pytest.mark.slow
def test_three_classes_from_a_file(tmp_path):
    words = {"Sports": "goal match team", "Food": "soup bread cook", "Sky": "star moon comet"}
    rng = np.random.default_rng(0)
    path = tmp_path / "topics.jsonl"
    with path.open("w") as file:
        for i in range(240):
            label = list(words)[i % 3]
            picked = [*rng.choice(words[label].split(), 3), str(i), *rng.choice(["a", "the"], 2)]
            text = " ".join(rng.permutation(picked))
            file.write(json.dumps({"sentence": text, "class": label}) + "\n")
    config = tiny_config(tmp_path)
    run = train_sentiment(
        replace(
            config,
            data=SentimentDataConfig(data=path, min_count=2),
            training=SentimentTrainingConfig(epochs=15, batch_size=16, learning_rate=0.02),
            run=replace(config.run, ngram_baseline=True),
        )
    )
    assert run.classes == ("Food", "Sky", "Sports")
    assert (run.column_of("text"), run.column_of("label")) == ("sentence", "class")
    assert run.metrics["model"]["test"]["accuracy"] >= 0.9
    assert set(run.metrics["baselines"]) == {
        "majority class",
        "bag of words, logistic regression",
        "bigrams, multinomial naive Bayes",
        "NB-weighted bigrams, logistic regression",
    }
    prediction = next(run.test_predictions())
    assert len(prediction.scores) == 3
    assert sum(prediction.scores) == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
def test_a_crash_while_writing_leaves_no_run(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(plots, "draw_curves", full)
    with pytest.raises(RunDirectoryError, match="No space left"):
        train_sentiment(tiny_config(tmp_path))
    # The training is not lost: `gru-train resume` only needs to write.
    assert [path.name for path in tmp_path.iterdir()] == [".tiny.checkpoint"]


@pytest.mark.data
@pytest.mark.long
def test_mr_reaches_75_percent(real_data, tmp_path):
    run = train_sentiment(
        SentimentConfig(
            data=SentimentDataConfig(data=real_data / "mr"),
            training=SentimentTrainingConfig(epochs=3),
            run=SentimentRunConfig(tmp_path, "mr"),
        )
    )
    assert run.metrics["model"]["test"]["accuracy"] >= 0.75


def test_too_many_words_are_refused_before_the_training(tmp_path, monkeypatch):
    monkeypatch.setattr("gru_training.words.ngrams._LARGEST_KEY", 1000)
    config = tiny_config(tmp_path)
    config = replace(
        config,
        model=replace(config.model, ngrams=True, ngram_order=3),
        training=replace(config.training, epochs=2),
    )
    console = Console(file=StringIO())
    with pytest.raises(ConfigError, match="--ngram-order 3 is for at most 9 words"):
        train_sentiment(config, console)
    assert "epoch" not in console.file.getvalue()
    assert not list(tmp_path.rglob("*.keras"))


def test_the_architecture_shows_the_pipeline_as_it_is():
    source = inspect.getsource(train_sentiment)
    assert source.count("\n") < 100
    (whole,) = ast.parse(source).body[0].body[-1:]
    (page,) = re.findall(
        r"```python\n(config, data, texts.*?)```",
        (Path(__file__).parents[3] / "ARCHITECTURE.md").read_text("utf-8"),
        re.DOTALL,
    )
    shown = ast.parse(f"def shown():\n{textwrap.indent(page, '    ')}").body[0].body
    assert list(map(ast.dump, shown)) == list(map(ast.dump, whole.body))
