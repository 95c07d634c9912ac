"""A run whose words are cut into pieces: trained, read again, exported, served by both runtimes."""

import csv

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.engine.onnx.manifest import Manifest
from gru_serving.export.run import export_run
from gru_training.errors import ConfigError
from gru_training.sentiment.config import (
    ClassifierConfig,
    PretrainingConfig,
    SentimentConfig,
    SentimentDataConfig,
)
from gru_training.sentiment.data import LabelledTexts, SentimentData
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.served.text_model import build_text_model
from gru_training.sentiment.vocabulary.words import text_reading
from tests.made_once import made_once
from tests.training.sentiment.targets.runs import config

pytestmark = pytest.mark.long


def make(folder):
    """Which class it is, only the case says."""
    rng = np.random.default_rng(0)
    words = ["parcel", "courier", "invoice", "refund", "late", "lost", "again"]
    with (folder / "rows.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("text", "label"))
        for number in range(300):
            shouted = number % 2 == 0
            text = " ".join(rng.choice(words, 4)) + f" n{number}"
            table.writerow((text.upper() if shouted else text, ("calm", "angry")[shouted]))
    data = SentimentDataConfig(data=folder / "rows.csv", pieces=120)
    train_sentiment(config(folder, "pieces", data))


@pytest.fixture(scope="module")
def run():
    return SentimentRun.open(made_once("cased_pieces", make) / "pieces")


def test_case_is_read(run):
    assert run.metrics["model"]["test"]["accuracy"] > 0.95


def test_the_run_is_read_again(run):
    again = SentimentRun.open(run.path)
    assert again.reading == "pieces"
    assert len(again.vocabulary) <= 122
    texts = ["PARCEL lost!", "", "parcel Zürich"]
    tokens = again.preprocessor().tokens(tf.constant(texts)).to_list()
    assert b"".join(tokens[0]) == "▁PARCEL▁lost!".encode()
    rows = [row.text for row in again.test_predictions()]
    scores = build_text_model(again)(tf.constant(rows))
    kept = np.array([row.scores for row in again.test_predictions()])
    np.testing.assert_allclose(scores, kept, atol=1e-5)


def test_the_export_answers_in_both_runtimes(run, tmp_path):
    """Golden requests and fuzzed texts are compared while the export is written."""
    exported = export_run(run.path, tmp_path / "model")
    manifest = Manifest.read(exported.version)
    assert manifest is not None
    assert set(manifest.signatures) == {"serving_default", "classify", "gates"}


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ({"model": ClassifierConfig(subwords=True)}, "--pieces excludes --subwords"),
        ({"model": ClassifierConfig(bidirectional=False)}, "--pieces needs --bidirectional"),
        (
            {"pretraining": PretrainingConfig(word_vectors=True)},
            "--unlabelled and --word-vectors, which are of words",
        ),
    ],
)
def test_what_pieces_exclude(further, message):
    with pytest.raises(ConfigError, match=message):
        SentimentConfig(data=SentimentDataConfig(pieces=500), **further)


@pytest.mark.parametrize(
    ("further", "wanted"),
    [
        ({}, "spaced"),
        ({"model": ClassifierConfig(bidirectional=False)}, "words"),
        ({"pretraining": PretrainingConfig(word_vectors=True)}, "words"),
        ({"data": SentimentDataConfig(spacing=False)}, "words"),
        ({"data": SentimentDataConfig(pieces=500)}, "pieces"),
    ],
)
def test_what_the_tokens_of_own_texts_are(further, wanted):
    part = LabelledTexts(("a",), np.zeros(1, np.int32))
    data = SentimentData("own", ("x", "y"), part, part, part, own=True)
    assert text_reading(data, SentimentConfig(**further)) == wanted
    known = SentimentData("mr", ("x", "y"), part, part, part)
    assert text_reading(known, SentimentConfig()) == "words"


def test_spacing_is_not_for_models_in_one_direction():
    with pytest.raises(ConfigError, match="--spacing needs --bidirectional"):
        SentimentConfig(
            data=SentimentDataConfig(spacing=True), model=ClassifierConfig(bidirectional=False)
        )


def test_too_few_pieces():
    with pytest.raises(ConfigError, match="--pieces must be at least 100, got 5"):
        SentimentDataConfig(pieces=5)
