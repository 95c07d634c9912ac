"""A classifier that begins with a language model."""

import shutil
from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from gru_serving.export.run import export_run
from gru_training.__main__ import main
from gru_training.language.data import load_language_data
from gru_training.language.run import LanguageRun
from gru_training.loop.checkpoint import Checkpoint
from gru_training.sentiment.continuing.rows import load_data
from gru_training.sentiment.fitting import read_texts
from gru_training.sentiment.network.model import build_sentiment_model
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.pretrained.encoder import encoder_layers
from gru_training.sentiment.pretrained.settings import with_encoder_sizes, with_note_on_known_texts
from gru_training.sentiment.run import SentimentRun
from gru_training.words.vocabulary import UNKNOWN
from tests import oracle
from tests.training.sentiment.continuing.tickets import tickets, write
from tests.training.sentiment.pretrained.runs import (
    UNHEARD,
    changed_copy,
    classifier_config,
    language_config,
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def language(folder):
    run = LanguageRun.open(folder / "lm")
    return run, run.load_model()


def numbers(run):
    return {word: number for number, word in enumerate(run.vocabulary.tokens)}


def states_of(language, words):
    """Of both GRUs of the language model after each word, in NumPy."""
    run, model = language
    places = numbers(run)
    x = model.embedding.embeddings.numpy()[[places.get(word, UNKNOWN) for word in words]]
    found = []
    for gru in model.grus:
        kernel, recurrent, bias = gru.get_weights()
        x, _ = oracle.forward(x, np.zeros(9), kernel, recurrent, bias, reset_after=True)
        found.append(x)
    return found


def test_before_it_learns_it_reads_as_the_language_model(folder, language):
    config = with_encoder_sizes(classifier_config(folder, "a"))
    read = read_texts(load_data(config), config, folder)
    model = build_sentiment_model(config.model, len(read.words.vocabulary), 3)
    read.encoder.set_weights(model)
    states = keras.Model(model.input, [model.get_layer(f"gru_{k}").output for k in (1, 2)])
    for text in ("Please, the parcel is lost again", "my courier vanished", "nowhereseen"):
        words = read.preprocessor.tokens([text]).to_list()[0]
        got = states(read.preprocessor([text]))
        expected = states_of(language, [word.decode() for word in words])
        for one, two in zip(got, expected, strict=True):
            np.testing.assert_allclose(one[0], two, atol=1e-6)


def test_its_words_are_those_of_the_language_model_and_further_ones(folder, language):
    known = language[0].vocabulary.tokens
    run = SentimentRun.open(folder / "tuned")
    words = run.vocabulary.tokens
    assert words[2 : len(known) - 1] == known[3:]  # without the end of a document
    assert "[END]" not in words
    assert "vanished" not in known
    assert set(words) - set(known) >= {"vanished"}
    assert all(word in " ".join(map(str, tickets(120, 0, UNHEARD))) for word in
               set(words) - set(known))  # fmt: skip
    assert (run.cleaned, run.reading) == (False, "words")


def test_what_is_frozen_stays_as_it_is(folder, language):
    run = SentimentRun.open(folder / "frozen")
    model, (of, other) = run.load_model(), language
    table, places = model.get_layer("embedding").embeddings.numpy(), numbers(of)
    vectors = other.embedding.embeddings.numpy()
    for number, word in enumerate(run.vocabulary.tokens):
        np.testing.assert_array_equal(table[number], vectors[places.get(word, UNKNOWN)])
    for number, gru in enumerate(other.grus, start=1):
        for own, theirs in zip(
            model.get_layer(f"gru_{number}").get_weights(), gru.get_weights(), strict=True
        ):
            np.testing.assert_array_equal(own, theirs)
    losses = [epoch["train"]["loss"] for epoch in run.history]
    assert losses[-1] < losses[0]


def test_every_layer_is_trained_on(folder, language):
    model, (_, other) = SentimentRun.open(folder / "tuned").load_model(), language
    for number, gru in enumerate(other.grus, start=1):
        own = model.get_layer(f"gru_{number}").get_weights()[1]
        assert np.abs(own - gru.get_weights()[1]).mean() > 0
    assert [layer.name for layer in encoder_layers(model)] == ["embedding", "gru_1", "gru_2"]


def test_held_out_texts_that_the_language_model_knows_are_told(folder, tmp_path):
    asked = classifier_config(folder, "a")
    data = load_data(asked)
    assert with_note_on_known_texts(asked, data) == data
    same = replace(asked, data=replace(asked.data, data=folder / "texts.csv"))
    data = load_data(same)
    learned = load_language_data(language_config(folder, "lm").data, seed=0).train
    known = len({*data.validation.texts, *data.test.texts} & set(learned))
    assert known > 10
    path = folder / "lm"
    assert with_note_on_known_texts(same, data).notes[-1] == (
        f"{known} of the 30 texts held out here are among those that {path} has learned from, "
        "without their labels"
    )
    gone = changed_copy(path, tmp_path / "lm", "texts.csv", "gone.csv")
    moved = replace(same, pretraining=replace(same.pretraining, pretrained=gone))
    assert (
        f"whether {gone} has learned from texts held out here cannot be said"
        in (with_note_on_known_texts(moved, data).notes[-1])
    )


def test_the_run_has_the_sizes_of_the_language_model(folder):
    run = SentimentRun.open(folder / "tuned")
    found = run.config.model
    assert (found.embedding_size, found.units, found.layers) == (7, 9, 2)
    assert found.bidirectional is False
    losses = [epoch["validation"]["loss"] for epoch in run.history]
    assert min(losses[1:]) < losses[0]


def test_resumed_in_the_middle_it_ends_with_the_same_weights(folder, tmp_path, monkeypatch):
    config = classifier_config(folder, "whole")
    config = replace(config, run=replace(config.run, runs_dir=tmp_path))
    whole = train_sentiment(config)
    save = Checkpoint.save

    class Killed(BaseException):
        pass

    def save_and_die(*arguments):
        save(*arguments)
        raise Killed

    broken = replace(config, run=replace(config.run, name="broken"))
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_die)
        with pytest.raises(Killed):
            train_sentiment(broken)
    assert main(["resume", str(tmp_path / "broken")]) == 0
    again = SentimentRun.open(tmp_path / "broken")
    for own, expected in zip(
        again.load_model().get_weights(), whole.load_model().get_weights(), strict=True
    ):
        np.testing.assert_array_equal(own, expected)


def test_it_is_exported_and_streams(folder, tmp_path):
    """A fresh process compares its answers with the Keras model's while it is written."""
    exported = export_run(folder / "frozen", tmp_path / "model")
    assert set(exported.signatures) == {
        "serving_default", "classify", "gates", "attribution", "step",
    }  # fmt: skip
    run = SentimentRun.open(folder / "frozen")
    rows = list(run.test_predictions())[:5]
    served = tf.saved_model.load(str(exported.version)).signatures["serving_default"]
    answer = served(text=tf.constant([row.text for row in rows]))
    np.testing.assert_allclose(answer["scores"], [row.scores for row in rows], atol=1e-5)


def test_it_goes_on_with_new_rows_without_the_language_model(folder, tmp_path):
    shutil.copy(folder / "labelled.csv", tmp_path / "labelled.csv")
    path = changed_copy(folder / "frozen", tmp_path / "frozen", str(folder), str(tmp_path))
    new = write(tmp_path / "new.csv", tickets(60, 1, UNHEARD))
    assert not (tmp_path / "lm").exists()
    assert main(["continue", str(path), "--data", str(new), "--name", "more", "--epochs", "1"]) == 0
    old, more = SentimentRun.open(path), SentimentRun.open(tmp_path / "more")
    for k in (1, 2):
        for own, before in zip(
            more.load_model().get_layer(f"gru_{k}").get_weights(),
            old.load_model().get_layer(f"gru_{k}").get_weights(),
            strict=True,
        ):
            np.testing.assert_array_equal(own, before)


def test_runs_are_compared(folder, capsys):
    assert main(["compare", str(folder / "tuned"), str(folder / "frozen")]) == 0
    assert "accuracy" in capsys.readouterr().out
