"""`partial_fit` of the estimators, beside `gru-train continue` and what scikit-learn asks of it."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from gru_training import Forecaster, TextClassifier, TextRegressor
from gru_training.__main__ import main
from gru_training.errors import CheckpointError, DataError
from gru_training.forecasting.run import ForecastingRun
from gru_training.sentiment.run import SentimentRun
from tests.training.conftest import write_waves

TINY = {"epochs": 2, "units": 4, "embedding_size": 4, "batch_size": 16, "learning_rate": 0.02}
# One direction takes half the time to trace; by default it would answer without n-grams.
TINY |= {"bidirectional": False, "ngrams": True}
WORDS = {7: "invoice charged refund card", 8: "password reset account locked"}
SERIES = {"horizon": 6, "units": 6, "epochs": 2}


def tickets(rows, seed, words=WORDS):
    rng = np.random.default_rng(seed)
    labels = [list(words)[number % len(words)] for number in range(rows)]
    bodies = [
        " ".join([*rng.choice(words[label].split(), 3), f"{seed}x{number}"])
        for number, label in enumerate(labels)
    ]
    return pd.DataFrame({"body": bodies, "kind": labels})


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return TextClassifier(**TINY, runs_dir=folder, name="first").fit(
        tickets(160, 0), text="body", label="kind"
    )


@pytest.mark.long
def test_texts_in_memory(fitted):
    words = {**WORDS, 9: "parcel late courier lost"}
    classifier = copy.copy(fitted).partial_fit(tickets(60, 1, words), classes=[7, 8, 9])
    run, old = classifier.run_, fitted.run_
    assert run.path != old.path
    assert list(classifier.classes_) == [7, 8, 9]
    rows = run.metrics["data"]["rows"]
    assert sum(rows.values()) == 220
    assert sum(run.metrics["continued"]["parts"][f"{part} test rows"]["rows"]
               for part in ("old", "new")) == rows["test"]  # fmt: skip
    held = [row.text for row in old.test_predictions()]
    assert [row.text for row in run.test_predictions()][: len(held)] == held
    # Texts and labels apart, from where the last call ended.
    again = tickets(60, 2, words)
    classifier.partial_fit(list(again["body"]), list(again["kind"]), replay=1.0)
    assert classifier.run_.metrics["continued"]["run"] == str(run.path)
    assert classifier.run_.metrics["continued"]["replay"] == 1.0
    assert sum(classifier.run_.metrics["data"]["rows"].values()) == 280
    assert set(classifier.predict(list(again["body"]))) <= {7, 8, 9}


@pytest.mark.slow
def test_texts_whose_old_rows_are_gone(fitted):
    """An estimator that was pickled holds no rows: it learns from the new ones alone."""
    classifier = pickle.loads(pickle.dumps(fitted))
    with pytest.raises(DataError, match=r"replay: the old rows of .* are not at hand"):
        classifier.partial_fit(tickets(80, 3), replay=0.5)
    classifier.partial_fit(tickets(80, 3))
    of = classifier.run_.metrics["continued"]
    assert (of["only_new"], of["check"]) == (True, None)
    assert of["parts"]["old test rows"]["rows"] == len(list(fitted.run_.test_predictions()))
    with pytest.raises(CheckpointError, match="no checkpoint"):
        TextClassifier.resume(classifier.run_.path, tickets(80, 3))


@pytest.mark.long
def test_a_file_gives_what_the_command_gives(tmp_path):
    for name, table in (("old", tickets(160, 0)), ("new", tickets(60, 1))):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    classifier = TextClassifier(**TINY, runs_dir=tmp_path, name="first")
    classifier.fit(tmp_path / "old.csv", text="body", label="kind")
    arguments = ["--data", str(tmp_path / "new.csv"), "--name", "command"]
    assert main(["continue", str(tmp_path / "first"), *arguments]) == 0
    classifier.partial_fit(tmp_path / "new.csv")
    assert classifier.run_.given is None
    for one, two in zip(
        classifier.run_.load_model().get_weights(),
        SentimentRun.open(tmp_path / "command").load_model().get_weights(),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)


@pytest.mark.long
def test_an_estimator_that_is_not_fitted_is_fitted(tmp_path):
    table = tickets(120, 0)
    table["stars"] = np.linspace(1, 5, len(table))
    regressor = TextRegressor(**TINY, runs_dir=tmp_path)
    regressor.partial_fit(table, text="body", label="stars")
    assert "continued" not in regressor.run_.metrics
    before = regressor.run_
    regressor.partial_fit(table.assign(body=table["body"] + " again"), text="body", label="stars")
    assert regressor.run_.metrics["continued"]["measure"] == "mean absolute error"
    # What cannot be used leaves it as it was.
    after = regressor.run_
    with pytest.raises(DataError):
        regressor.partial_fit(["one"], ["many"])
    assert regressor.run_ is after
    assert after.path != before.path


def waves(folder):
    """All hours, the older ones, and the newer ones, some of which are known."""
    whole = pd.read_csv(write_waves(folder / "all.csv", 400), parse_dates=["time"])
    return whole, whole[:320], whole[310:]


@pytest.mark.long
def test_series_in_memory(tmp_path):
    whole, old, new = waves(tmp_path)
    forecaster = Forecaster(**SERIES, runs_dir=tmp_path, name="memory").fit(old)
    gone = pickle.loads(pickle.dumps(forecaster))
    first = forecaster.run_
    forecaster.partial_fit(new)
    assert forecaster.run_.series.borders[2] == 400
    assert forecaster.run_.metrics["continued"]["run"] == str(first.path)
    assert forecaster.predict()["ds"].iloc[0] == whole["time"].iloc[-1] + pd.Timedelta(hours=1)
    assert len(forecaster.cross_validation(folds=2)) > 0
    # It holds the series; else old rows and new ones are given together.
    gone._series = None
    with pytest.raises(DataError, match="give its rows and the newer ones together"):
        gone.partial_fit(new)
    gone.partial_fit(whole)
    for one, two in zip(
        gone.run_.load_model().get_weights(),
        forecaster.run_.load_model().get_weights(),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)


@pytest.mark.long
def test_a_file_of_series_gives_what_the_command_gives(tmp_path):
    _, old, new = waves(tmp_path)
    old.to_csv(tmp_path / "old.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    files = Forecaster(**SERIES, runs_dir=tmp_path, name="files").fit(tmp_path / "old.csv")
    arguments = ["--data", str(tmp_path / "new.csv"), "--name", "command"]
    assert main(["continue", str(tmp_path / "files"), *arguments]) == 0
    files.partial_fit(tmp_path / "new.csv")
    command = ForecastingRun.open(tmp_path / "command")
    for one, two in zip(
        files.run_.load_model().get_weights(), command.load_model().get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, two)
