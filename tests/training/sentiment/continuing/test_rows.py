import numpy as np
import pandas as pd
import pytest

from gru_training.continuing.config import ContinueConfig
from gru_training.errors import ConfigError, DataError
from gru_training.loop.batches import Drawn, LengthBucketedBatches
from gru_training.sentiment.config import SentimentDataConfig
from gru_training.sentiment.continuing.rows import load_data
from gru_training.sentiment.data import load_sentiment_data
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.run import SentimentRun
from tests.made_once import made_once
from tests.training.sentiment.continuing.tickets import (
    NEW_WORDS,
    config,
    first_run,
    settings,
    tickets,
    write,
)


@pytest.fixture(scope="module")
def old():
    return SentimentRun.open(made_once("continued_rows", first_run) / "old")


@pytest.fixture
def new(tmp_path):
    return write(tmp_path / "new.csv", tickets(60, 1, NEW_WORDS))


def texts(data):
    return {name: set(part.texts) for name, part in data.parts().items()}


def test_what_a_refusal_advises_is_taken(old, tmp_path):
    """`--drop-bad --drop-small-classes` were named, but `gru-train continue` did not know them."""
    rows = [*tickets(60, 1), ("what is this", "other"), ("and this", "other"), ("", "bug")]
    new = write(tmp_path / "new.csv", rows)
    with pytest.raises(DataError, match="without them: --drop-bad --drop-small-classes"):
        load_data(settings(old, new))
    data = load_data(settings(old, new, drop_bad=True, drop_small_classes=True))
    assert data.classes == old.classes
    assert sum(map(len, texts(data).values())) == 240 + 60


def test_old_rows_stay_in_their_part_and_new_ones_come_behind(old, new, tmp_path):
    before = load_sentiment_data(old.config.data, 0)
    data = load_data(settings(old, new))
    fresh = {text for text, _ in tickets(60, 1, NEW_WORDS)}
    for name, part in before.parts().items():
        count = data.earlier[name]
        assert data.parts()[name].texts[:count] == part.texts
        assert set(data.parts()[name].texts[count:]) < fresh
    parts = texts(data)
    assert parts["test"].isdisjoint(parts["train"] | parts["validation"])
    assert parts["train"].isdisjoint(parts["validation"])
    assert data.classes == ("billing", "bug", "delivery", "login")
    labels = dict(tickets(60, 1, NEW_WORDS))
    for part in data.parts().values():
        for text, number in zip(part.texts, part.labels, strict=True):
            if text in labels:
                assert data.classes[number] == labels[text]
    assert sum(map(len, parts.values())) == 300
    # By default as many old rows are read as there are new ones, or three in ten if that is more.
    assert 0.2 < (len(data.train) - 192) / 192 < 0.3
    assert data.replay == 0.3
    more = write(tmp_path / "more.csv", tickets(120, 1, NEW_WORDS))
    many = load_data(settings(old, more))
    assert many.replay == pytest.approx((len(many.train) - 192) / 192, abs=0.02)
    assert many.replay > 0.4
    assert "1 new class: 'login'" in data.notes


def test_texts_that_are_known_are_dropped_wherever_they_were(old, tmp_path):
    rows = tickets(240, 0)
    held = next(iter(load_sentiment_data(old.config.data, 0).test.texts))
    wrong = (held.upper(), "bug" if dict(rows)[held] != "bug" else "billing")
    new = write(tmp_path / "longer.csv", [*rows, wrong, *tickets(30, 2)])
    data = load_data(settings(old, new))
    assert sum(len(part) for part in data.parts().values()) == 270
    assert held.upper() not in set().union(*texts(data).values())
    (note,) = [note for note in data.notes if "among the old rows" in note]
    assert note.startswith("241 new rows dropped")
    assert "1 of them with another label" in note


def test_only_new_reads_no_old_row_but_keeps_the_test_rows_apart(tmp_path):
    run = first_run(tmp_path)
    held = [row.text for row in run.test_predictions()]
    (tmp_path / "old.csv").unlink()
    new = write(tmp_path / "new.csv", [*tickets(60, 1), (held[0], "bug")])
    with pytest.raises(DataError, match=r"cannot be read again .*old.csv.*--only-new"):
        load_data(settings(run, new))
    data = load_data(settings(run, new, only_new=True))
    assert data.earlier == {"train": 0, "validation": 0, "test": len(held)}
    assert list(data.test.texts[: len(held)]) == held
    assert held[0] not in data.train.texts + data.validation.texts
    few = write(tmp_path / "few.csv", [row for row in tickets(60, 1) if row[1] == "bug"])
    with pytest.raises(DataError, match="at least two classes with --only-new, got only 'bug'"):
        load_data(settings(run, few, only_new=True))


def test_changed_rows_are_not_taken_for_the_old_ones(tmp_path, new):
    run = first_run(tmp_path)
    rows = tickets(240, 0)
    write(tmp_path / "old.csv", [*rows[:-1], (rows[-1][0], "bug")])
    with pytest.raises(DataError, match=r"expected the rows that .*old was trained on, got others"):
        load_data(settings(run, new))


def test_earlier_runs_without_a_digest_are_recognised_by_their_test_rows(old, new, monkeypatch):
    del (metrics := {**old.metrics, "data": dict(old.metrics["data"])})["data"]["digest"]
    run = SentimentRun.open(old.path)
    assert "digest" in run.metrics["data"]
    monkeypatch.setattr(SentimentRun, "metrics", metrics)
    assert load_data(settings(run, new)).earlier["train"] == 192


def test_few_rows_of_known_classes_will_do_and_new_classes_need_three(old, tmp_path):
    new = write(tmp_path / "new.csv", [("crash again a", "bug"), ("crash again b", "bug")])
    assert len(load_data(settings(old, new)).train) > 192
    new = write(tmp_path / "new.csv", [*tickets(30, 1), ("forgot my pin", "login")])
    with pytest.raises(DataError, match=r"class 'login' has 1 row, expected at least 3"):
        load_data(settings(old, new))


@pytest.mark.slow
def test_a_group_stays_in_the_part_that_it_was_in(tmp_path):
    rows = [(text, label, f"c{k // 4}") for k, (text, label) in enumerate(tickets(240, 0))]
    head = ("text", "label", "customer")
    data = SentimentDataConfig(
        data=write(tmp_path / "old.csv", rows, head), group_column="customer"
    )
    run = train_sentiment(config(tmp_path, "old", data))
    more = [(text, label, f"c{k // 2}") for k, (text, label) in enumerate(tickets(200, 1))]
    joined = load_data(settings(run, write(tmp_path / "new.csv", more, head)))
    of = {text: group for text, _, group in [*rows, *more]}
    groups = [{of[text] for text in part.texts} for part in joined.parts().values()]
    assert groups[0].isdisjoint(groups[1] | groups[2])
    assert groups[1].isdisjoint(groups[2])
    assert len(joined.test) > joined.earlier["test"]


def test_known_sets_and_made_up_reviews_are_read_again(tiny_run, tmp_path):
    frame = pd.DataFrame({"text": [f"a fine film {k}" for k in range(9)], "label": "positive"})
    frame.to_csv(tmp_path / "new.csv", index=False)
    data = load_data(settings(tiny_run, tmp_path / "new.csv"))
    assert data.classes == ("negative", "positive")
    assert data.made_up
    assert data.earlier["train"] == tiny_run.metrics["data"]["rows"]["train"]
    assert set(data.train.labels[data.earlier["train"] :]) == {1}


def test_what_cannot_be_asked_for(old, tmp_path):
    with pytest.raises(DataError, match="expected a file with new rows"):
        settings(old, tmp_path)
    with pytest.raises(ConfigError, match=r"--replay must be 0 to 1, got 1\.5"):
        ContinueConfig(old.path, tmp_path, replay=1.5)
    with pytest.raises(ConfigError, match="--only-new excludes --replay"):
        ContinueConfig(old.path, tmp_path, only_new=True, replay=0.1)


def test_each_epoch_reads_all_new_rows_and_a_share_of_the_old():
    rows = [np.full(1 + k % 5, k + 1, np.int32) for k in range(100)]
    batches = LengthBucketedBatches(rows, np.arange(100), 8, drawn=Drawn(0, 80, 0.25))
    seen = [sorted(int(t) for _, targets in batches.epoch(n) for t in targets) for n in (1, 2, 1)]
    assert seen[0] == seen[2] != seen[1]
    for epoch in seen:
        assert len(epoch) == 40 == len(set(epoch))
        assert epoch[20:] == list(range(80, 100))
    assert len(batches) == 5
