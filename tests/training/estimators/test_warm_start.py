"""Estimators that begin with the run of another one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from gru_training import Forecaster, TextClassifier
from gru_training.errors import ConfigError, RunDirectoryError
from tests.training.conftest import write_waves
from tests.training.tickets import tickets

TINY = {"epochs": 1, "batch_size": 16, "ngrams": False}
SIZES = {"units": 4, "embedding_size": 6, "bidirectional": False}
STILL = 1e-30
"""A learning rate with which no weight moves."""


def table(rows, seed, names=("billing", "bug")):
    words = dict(zip(names, ("invoice card", "crash error", "parcel late"), strict=False))
    return pd.DataFrame(tickets(rows, seed, words), columns=["body", "kind"])


@pytest.fixture(scope="module")
def first():
    return TextClassifier(**TINY, **SIZES).fit(table(120, 0), text="body", label="kind")


@pytest.mark.slow
def test_a_classifier_begins_with_the_run_of_another_in_memory(first):
    rows = pd.concat([table(120, 0), table(60, 1, ("billing", "bug", "zoo"))])
    warm = TextClassifier(**TINY, warm_start=first.run_.path, learning_rate=STILL)
    assert clone(warm).get_params() == warm.get_params()
    warm.fit(rows, text="body", label="kind")
    assert list(warm.classes_) == ["billing", "bug", "zoo"]
    assert warm.run_.metrics["warm_start"]["run"] == str(first.run_.path)
    assert warm.run_.config.model.units == SIZES["units"]
    old, new = (each.run_.load_model() for each in (first, warm))
    for one, two in zip(old.layers, new.layers, strict=True):
        if one.name not in ("embedding", "logits"):
            for before, after in zip(one.get_weights(), two.get_weights(), strict=True):
                np.testing.assert_array_equal(after, before)
    known = len(first.run_.vocabulary)
    before, after = (model.get_layer("embedding").get_weights()[0] for model in (old, new))
    np.testing.assert_array_equal(after[:known], before)
    (note,) = [each for each in warm.run_.metrics["data"]["notes"] if "are trained on" in each]
    assert "has learned from them already" in note


@pytest.mark.slow
def test_errors_name_the_setting_as_python_calls_it(first, tmp_path):
    wrong = TextClassifier(**TINY, warm_start=first.run_.path, units=9)
    with pytest.raises(ConfigError, match=r"warm_start: .* was trained with units 4, got units 9"):
        wrong.fit(table(120, 0), text="body", label="kind")
    gone = TextClassifier(**TINY, warm_start=tmp_path / "gone")
    with pytest.raises(RunDirectoryError, match="warm_start: there is no run directory"):
        gone.fit(table(120, 0), text="body", label="kind")
    with pytest.raises(ConfigError, match="warm_start must be left out of a search"):
        TextClassifier(**TINY, warm_start=first.run_.path).tune(
            table(120, 0), text="body", label="kind", trials=1
        )


@pytest.mark.slow
def test_a_forecaster_begins_with_the_run_of_another_in_memory(tmp_path):
    frame = pd.read_csv(write_waves(tmp_path / "waves.csv", 380))
    small = {"epochs": 1, "combine": False, "refit": False}
    first = Forecaster(**small, horizon=6, lookback=24, units=6, segment=6).fit(frame[:320])
    warm = Forecaster(**small, warm_start=first.run_.path, learning_rate=STILL).fit(frame)
    assert warm.run_.metrics["warm_start"]["run"] == str(first.run_.path)
    pairs = zip(
        first.run_.load_model().get_weights(), warm.run_.load_model().get_weights(), strict=True
    )
    for before, after in pairs:
        np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(warm.run_.preprocessor().mean, first.run_.preprocessor().mean)
    recent = frame.tail(40)
    pd.testing.assert_series_equal(
        first.predict(data=recent)["forecast"], warm.predict(data=recent)["forecast"]
    )
