"""Rows with probabilities: read from files and tables, checked, and learned."""

import csv
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gru_training import TextClassifier
from gru_training.__main__ import main
from gru_training.data.problems import DataProblemsError, Problems
from gru_training.errors import ConfigError, DataError
from gru_training.sentiment.config import (
    PretrainingConfig,
    SentimentConfig,
    SentimentDataConfig,
    SoftConfig,
)
from gru_training.sentiment.data import check_sentiment, load_data
from gru_training.sentiment.network.model import predict_logits
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.soft_targets import read_soft
from gru_training.sentiment.warm_start import is_learned
from gru_training.words.vocabulary import token_ids
from tests.made_once import made_once
from tests.training.tickets import config, tickets, write

CLASSES = ("billing", "bug", "delivery")
LATER = {
    "billing": "invoice charged voucher",
    "bug": "crash error stalls",
    "delivery": "parcel van",
}
ROWS = [("the invoice", (0.7, 0.2, 0.1)), ("a crash", (0.05, 0.9, 0.05)), ("late", (0, 0, 1))]


def columns(path, rows=ROWS):
    head = ("text", *CLASSES)
    return write(path, [(text, *shares) for text, shares in rows], head)


def objects(path, rows=ROWS, column="probabilities"):
    lines = [
        {"text": text, column: dict(zip(CLASSES, shares, strict=True))} for text, shares in rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def read(path, kind="class", held_out=(), drop_bad=False, **soft):
    settings = SentimentConfig(
        data=SentimentDataConfig(drop_bad=drop_bad), soft=SoftConfig(soft_data=path, **soft)
    )
    problems = Problems("data.csv", drop_bad)
    texts = read_soft(settings, CLASSES, kind, held_out, problems)
    problems.raise_errors()
    return texts, problems.notes


def test_columns_and_objects_hold_the_same(tmp_path):
    cells = [(text, json.dumps(dict(zip(CLASSES, of, strict=True)))) for text, of in ROWS]
    texts = tuple(text for text, _ in ROWS)
    frame = pd.DataFrame([(text, *of) for text, of in ROWS], columns=["text", *CLASSES])
    frame.to_parquet(tmp_path / "soft.parquet")
    nested = pd.DataFrame(
        {"text": texts, "probabilities": [dict(zip(CLASSES, of, strict=True)) for _, of in ROWS]}
    )
    nested.to_parquet(tmp_path / "nested.parquet")
    for path in (
        columns(tmp_path / "soft.csv"),
        objects(tmp_path / "soft.jsonl"),
        write(tmp_path / "cells.csv", cells, ("text", "probabilities")),
        tmp_path / "soft.parquet",
        tmp_path / "nested.parquet",
    ):
        found, notes = read(path)
        assert found.texts == texts, path
        np.testing.assert_allclose(found.probabilities, [of for _, of in ROWS], rtol=1e-6)
        assert notes == []
    named, _ = read(objects(tmp_path / "named.jsonl", column="said"), soft_column="said")
    np.testing.assert_allclose(named.probabilities, found.probabilities)


def test_labels_need_not_sum_to_one(tmp_path):
    rows = [("a", (0.9, 0.8, 0.1))]
    found, _ = read(columns(tmp_path / "soft.csv", rows), kind="labels")
    np.testing.assert_allclose(found.probabilities, [rows[0][1]], rtol=1e-6)
    with pytest.raises(DataError, match=r"expected data with classes or labels.*numbers"):
        read(columns(tmp_path / "soft.csv"), kind="number")


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0.7, 0.2, 0.3), r"soft.csv, line 3: expected probabilities that sum to 1, got 1.2"),
        ((70, 20, 10), r"line 3: expected a probability from 0 to 1 of 'billing', got 70"),
        ((0.5, "", 0.5), r"line 3: the probability of 'bug' is missing"),
        ((0.5, "much", 0.5), r"line 3: expected a probability from 0 to 1 of 'bug', got much"),
        ((0.5, "nan", 0.5), r"line 3: expected a probability from 0 to 1 of 'bug', got nan"),
    ],
)
def test_what_is_wrong_with_a_row_is_named_with_its_line(tmp_path, shares, said):
    path = columns(tmp_path / "soft.csv", [ROWS[0], ("wrong", shares), ROWS[2]])
    with pytest.raises(DataProblemsError, match=said) as error:
        read(path)
    assert str(error.value).endswith("--drop-bad")
    found, notes = read(path, drop_bad=True)
    assert found.texts == (ROWS[0][0], ROWS[2][0])
    assert "1 row dropped (--drop-bad), line 3" in notes[0]


def test_objects_that_cannot_be_read(tmp_path):
    for cell, said in (
        ({"billing": 1.0, "bug": 0.0}, "the probability of 'delivery' is missing"),
        ({"billing": 1.0, "refund": 0.0}, "expected the classes 'billing', .* got 'refund'"),
        ([0.1, 0.9], "expected a JSON object in column 'probabilities', got"),
        ("{billing: 1}", "expected a JSON object in column 'probabilities', got {billing: 1}"),
    ):
        path = tmp_path / "soft.jsonl"
        path.write_text(json.dumps({"text": "a", "probabilities": cell}), "utf-8")
        with pytest.raises(DataError, match=f"line 1: {said}"):
            read(path)
    path.write_text(json.dumps({"text": " ", "probabilities": {}}), "utf-8")
    with pytest.raises(DataError, match=r"line 1: the text is empty \(column 'text'\)"):
        read(path)


def test_columns_must_be_those_of_the_classes(tmp_path):
    path = write(tmp_path / "soft.csv", [("a", 0.5, 0.5)], ("text", "billing", "bug"))
    with pytest.raises(DataError, match=r"of each class, 'billing', 'bug', 'delivery', or a column "
                       r"'probabilities' .* without 'delivery'"):  # fmt: skip
        read(path)
    with pytest.raises(DataError, match=r"or a column 'said' with JSON objects \(--soft-column\)"):
        read(columns(path), soft_column="said")
    with pytest.raises(DataError, match="no column looks like the text"):
        read(write(path, [(0, 0, 1)], CLASSES))


def test_texts_that_are_held_out_are_left_out(tmp_path):
    path = columns(tmp_path / "soft.csv")
    found, notes = read(path, held_out=["THE  invoice", "another"])
    assert found.texts == ("a crash", "late")
    assert notes == [f"{path}: 1 row left out, whose text is held out for validation or test"]
    with pytest.raises(DataError, match="expected texts that are not held out, got none"):
        read(path, held_out=[text for text, _ in ROWS])


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="--soft-rows"):
        SoftConfig(soft_rows=0)
    with pytest.raises(ConfigError, match="--soft-weight"):
        SoftConfig(soft_weight=0)
    with pytest.raises(ConfigError, match="--soft-temperature"):
        SoftConfig(soft_temperature=-1)


def settings(folder, name, **soft):
    data = SentimentDataConfig(data=folder / "labelled.csv")
    return replace(config(folder, name, data), soft=SoftConfig(**soft))


def make(folder):
    """A run of few labels, and one that also has the probabilities of texts with other words."""
    write(folder / "labelled.csv", tickets(120, 0))
    rows = [
        (text, *(0.8 if name == label else 0.1 for name in CLASSES))
        for text, label in tickets(400, 1, LATER)
    ]
    with (folder / "soft.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", *CLASSES), *rows])
    train_sentiment(settings(folder, "alone"))
    every = {"soft_data": folder / "soft.csv", "soft_rows": 400}
    train_sentiment(settings(folder, "both", **every))


@pytest.fixture(scope="module")
def folder():
    return made_once("soft_runs", make)


@pytest.mark.slow
def test_words_that_only_soft_rows_have_are_learned(folder):
    fresh = tickets(300, 7, LATER)
    known = [CLASSES.index(label) for _, label in fresh]
    right = {}
    for name in ("alone", "both"):
        run = SentimentRun.open(folder / name)
        ids = token_ids(run.preprocessor(), [text for text, _ in fresh])
        answers = predict_logits(run.load_model(), ids).argmax(axis=1)
        right[name] = int(np.sum(answers == known))
    assert right["both"] > right["alone"] + 20
    run = SentimentRun.open(folder / "both")
    assert run.metrics["soft"] == {"rows": 400, "read": 400}
    assert "learned 400 texts with probabilities" in (run.path / "report.md").read_text("utf-8")
    # No later run may test on them.
    assert is_learned([text for text, _ in tickets(400, 1, LATER)], run).all()


@pytest.mark.slow
def test_the_answers_of_a_run_are_soft_data(folder, tmp_path, capsys):
    texts = [(text,) for text, _ in tickets(30, 3, LATER)]
    write(tmp_path / "texts.csv", texts, ("text",))
    scored = tmp_path / "scored.jsonl"
    predict = ["predict", str(folder / "both"), "--data", str(tmp_path / "texts.csv")]
    assert main([*predict, "--output", str(scored)]) == 0
    rows = [json.loads(line) for line in scored.read_text("utf-8").splitlines()]
    data = load_data(settings(folder, "asked", soft_data=scored))
    assert data.soft.texts == tuple(row["text"] for row in rows)
    expected = [[row[name] for name in CLASSES] for row in rows]
    np.testing.assert_allclose(data.soft.probabilities, expected, atol=1e-6)
    asked = settings(folder, "asked", soft_data=scored)
    assert "; 30 with probabilities" in check_sentiment(asked).summary
    command = ["check", str(folder / "labelled.csv"), "--soft-data"]
    assert main([*command, str(tmp_path / "texts.csv")]) == 2
    said = "".join(capsys.readouterr())
    assert "expected a column with the probability of each class" in " ".join(said.split())


@pytest.mark.slow
def test_from_tables_in_memory(tmp_path):
    rows = tickets(120, 0)
    data = pd.DataFrame(rows, columns=["text", "label"])
    soft = [(text, 0.8 if label == "bug" else 0.2) for text, label in tickets(60, 1)]
    frame = pl.DataFrame(
        {
            "text": [text for text, _ in soft],
            "bug": [share for _, share in soft],
            "billing": [(1 - share) / 2 for _, share in soft],
            "delivery": [(1 - share) / 2 for _, share in soft],
        }
    )
    tiny = {"epochs": 1, "units": 4, "embedding_size": 4, "runs_dir": tmp_path, "name": "soft"}
    classifier = TextClassifier(**tiny).fit(data, soft=frame)
    assert classifier.run_.metrics["soft"] == {"rows": 60, "read": 60}
    for wrong, said in (
        (["a"], "soft: expected a table"),
        (frame.drop("bug"), "without 'bug'"),
        (frame.with_columns(bug=pl.lit(0.9)), "soft, row 0: expected probabilities that sum to 1"),
    ):
        with pytest.raises(DataError, match=said):
            TextClassifier(**{**tiny, "name": "wrong"}).fit(data, soft=wrong)


def test_pre_trained_vectors_and_soft_words_stand_side_by_side(tmp_path):
    from gru_training.sentiment.texts import sentiment_words

    write(tmp_path / "labelled.csv", tickets(60, 0))
    columns(tmp_path / "soft.csv", [("voucher voucher zebra", (1, 0, 0)), ("van", (0, 0, 1))])
    asked = settings(tmp_path, "asked", soft_data=tmp_path / "soft.csv")
    data = load_data(asked)
    alone = sentiment_words(replace(data, soft=None), asked, tmp_path).vocabulary.tokens
    both = sentiment_words(data, asked, tmp_path)
    assert both.vocabulary.tokens == (*alone, "voucher", "van", "zebra")
    assert both.trained == len(both.vocabulary)
    full = replace(asked, data=replace(asked.data, max_vocabulary=len(alone) - 2 + 1))
    assert sentiment_words(data, full, tmp_path).vocabulary.tokens == (*alone, "voucher")
    vectors = PretrainingConfig(word_vectors=True, vector_size=4, topic_size=0)
    words = sentiment_words(data, replace(asked, pretraining=vectors), tmp_path)
    assert words.vocabulary.tokens[: words.trained] == (*alone, "voucher", "van", "zebra")
