"""What is chosen where classes are of very unequal size and no setting says how to learn them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from gru_training.sentiment.class_weights import class_weights, for_unequal_classes
from gru_training.sentiment.config import SentimentConfig, SentimentDataConfig
from gru_training.sentiment.data import LabelledTexts, SentimentData
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.task import find_task
from tests.training.sentiment.target_runs import WORDS, config, text


def data(rows, kind="class", own=True):
    labels = np.repeat(np.arange(len(rows), dtype=np.int32), rows)
    part = LabelledTexts(tuple(map(str, labels)), labels)
    names = tuple("abc"[: len(rows)])
    return SentimentData("own", names, part, part, part, kind=kind, own=own)


def chosen(found, **settings):
    given = SentimentConfig()
    given = replace(given, training=replace(given.training, **settings))
    after, noted = for_unequal_classes(given, found)
    assert (noted is found) == (after == given)
    return after.training.metric, after.training.class_weight


def test_ten_times_the_rows_call_for_macro_f1_and_balanced_weights():
    assert chosen(data([50, 20, 5])) == ("macro_f1", "balanced")
    assert chosen(data([49, 20, 5])) == (None, None)


@pytest.mark.parametrize(
    "settings",
    [
        {"metric": "accuracy"},
        {"class_weight": "none"},
        {"metric": "f1:a", "class_weight": "balanced"},
    ],
)
def test_what_is_given_stays(settings):
    wanted = settings.get("metric"), settings.get("class_weight")
    assert chosen(data([500, 5]), **settings) == wanted


def test_known_sets_and_other_targets_stay():
    assert chosen(data([500, 5], own=False)) == (None, None)
    assert chosen(data([500, 5], kind="number")) == (None, None)


@pytest.mark.parametrize(("rows", "name"), [([500, 5], "macro_f1"), ([50, 40], "log loss")])
def test_a_search_judges_by_the_loss_but_for_unequal_classes(rows, name):
    assert find_task("sentiment").criterion(SentimentConfig(), data(rows)).name == name


def test_the_note_names_the_classes_and_the_way_back():
    _, noted = for_unequal_classes(SentimentConfig(), data([500, 30, 5]))
    (note,) = noted.notes
    assert "'a' has 500 training rows and 'c' only 5" in note
    assert "--metric accuracy" in note


def test_none_is_one_for_each():
    members = np.eye(3, dtype=bool)[[0, 0, 0, 1, 2]]
    np.testing.assert_array_equal(class_weights("none", "abc", members), [1, 1, 1])


@pytest.fixture
def unequal_file(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {"text": text(rng, rng.choice(words.split(), 2), f"{name}{n}"), "label": name}
        for (name, words), count in zip(WORDS.items(), (300, 60, 24), strict=True)
        for n in range(count)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    return SentimentDataConfig(data=tmp_path / "rows.csv")


@pytest.mark.slow
def test_a_training_does_so_and_says_so(tmp_path, unequal_file):
    run = train_sentiment(config(tmp_path, "own", unequal_file))
    assert run.metrics["metric"] == "macro_f1"
    assert run.config.training.metric is None  # config.json holds what was given
    assert "--metric accuracy" in (run.path / "report.md").read_text()
    found = list(run.test_predictions())
    truth, said = [row.label for row in found], [row.predicted for row in found]
    assert run.metrics["model"]["test"]["macro_f1"] == pytest.approx(
        f1_score(truth, said, average="macro")
    )
