"""What TensorBoard's own reader finds in the files of a training."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

from gru_training import TextClassifier
from gru_training.errors import ConfigError
from gru_training.forecasting.pipeline import train_forecasting
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.run import SentimentRun
from gru_training.tracking.tracked_training import Tracked
from gru_training.tracking.tracker import TrackedData
from tests.made_once import made_once
from tests.training.conftest import tiny_config, tiny_forecasting_config, write_waves
from tests.training.sentiment.reading import load_sentiment_data

DATA = TrackedData("d", "ab" * 32, {"train": 3})


def read(folder):
    found = EventAccumulator(str(folder), {"tensors": 0})
    found.Reload()
    return found


def scalars(events, name):
    return {each.step: float(tf.make_ndarray(each.tensor_proto)) for each in events.Tensors(name)}


def text(events, name):
    (event,) = events.Tensors(name)
    return tf.make_ndarray(event.tensor_proto).item().decode()


@pytest.fixture(scope="module")
def followed():
    def make(folder):
        config = tiny_config(folder)
        tracked = replace(config.run, track="tensorboard")
        train_sentiment(replace(config, run=tracked))

    return SentimentRun.open(made_once("followed", make) / "tiny")


@pytest.fixture(scope="module")
def events(followed):
    return read(followed.path.parent / "tensorboard" / followed.path.name)


@pytest.mark.slow
def test_scalars_are_the_measures_of_the_epochs(followed, events):
    for part in ("train", "validation"):
        for name in ("loss", "accuracy"):
            told = {each["epoch"]: each[part][name] for each in followed.history}
            assert scalars(events, f"{part}/{name}") == pytest.approx(told, rel=1e-6)
    assert scalars(events, "learning_rate") == pytest.approx({1: 2e-3, 2: 2e-3})
    test = followed.metrics["model"]["test"]["accuracy"]
    best = followed.metrics["best_epoch"]
    assert scalars(events, "final/test/accuracy") == pytest.approx({best: test})


def test_settings_and_data_are_named(followed, events):
    start = plugin_data_pb2.HParamsPluginData.FromString(
        events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    ).session_start_info
    told = dict(start.hparams)
    assert told["training.batch_size"].number_value == 32
    assert told["model.bidirectional"].bool_value is True
    assert told["data.train.rows"].number_value == followed.metrics["data"]["rows"]["train"]
    assert len(told["data.sha256"].string_value) == 64
    assert "| training.batch_size | 32 |" in text(events, "settings")
    assert text(events, "outcome") == "finished"


def test_pictures_are_those_of_the_report(followed, events):
    pictures = {path.stem: path for path in followed.path.glob("*.png")}
    tags = [tag for tag in events.Tags()["tensors"] if tag.startswith("report/")]
    assert {tag.removeprefix("report/") for tag in tags} == set(pictures)
    (event,) = events.Tensors("report/curves")
    width, height, image = tf.make_ndarray(event.tensor_proto)
    own = tf.io.decode_png(pictures["curves"].read_bytes(), channels=3)
    assert (int(height), int(width)) == own.shape[:2]
    np.testing.assert_array_equal(tf.io.decode_png(image), own)


def test_the_projector_shows_the_word_vectors(followed):
    folder = followed.path.parent / "tensorboard" / followed.path.name
    config = text_format.Parse(
        (folder / "projector_config.pbtxt").read_text("utf-8"), ProjectorConfig()
    )
    (one,) = config.embeddings
    words = (folder / one.metadata_path).read_text("utf-8").split("\n")[:-1]
    vectors = np.loadtxt(folder / one.tensor_path, delimiter="\t")
    table = followed.load_model().get_layer("embedding").embeddings.numpy()
    assert vectors.shape == table.shape == (len(words), 6)
    np.testing.assert_allclose(vectors, table, rtol=1e-4, atol=1e-6)
    assert words[2:] == list(followed.vocabulary.tokens[2:])


def test_following_changes_no_weight(followed, tiny_run):
    pairs = zip(
        followed.load_model().get_weights(), tiny_run.load_model().get_weights(), strict=True
    )
    for watched, alone in pairs:
        np.testing.assert_array_equal(watched, alone)


@pytest.mark.slow
def test_a_forecaster_is_followed_too(tmp_path):
    data = write_waves(tmp_path / "waves.csv")
    config = tiny_forecasting_config(tmp_path, data=data)
    tracked = {"track": "tensorboard", "track_to": str(tmp_path / "logs")}
    place = replace(config.run, **tracked)
    run = train_forecasting(replace(config, run=place))
    events = read(tmp_path / "logs" / "waves")
    told = {each["epoch"]: each["validation"]["mse"] for each in run.history}
    assert scalars(events, "validation/mse") == pytest.approx(told, rel=1e-6)
    test = run.metrics["model"]["test"]["mse"]
    assert list(scalars(events, "final/test/mse").values()) == pytest.approx([test], rel=1e-6)
    assert not (tmp_path / "logs" / "waves" / "projector_config.pbtxt").exists()


def test_a_resumed_training_replaces_its_files(tracked_config, console, records, tmp_path):
    for resume, epochs in ((False, records[:2]), (True, records[:3])):
        with Tracked(tracked_config(track="tensorboard"), "sentiment", console, resume) as tracked:
            tracked.begin(tmp_path / "tracked", DATA)
            for record in epochs:
                tracked.epoch(record)
    found = scalars(read(tmp_path / "tensorboard" / "tracked"), "train/loss")
    assert found == pytest.approx({1: 1.0, 2: 0.5, 3: 1 / 3})


def test_the_digest_is_of_the_rows(followed, events):
    """As `gru_training.data.digest` describes it, from the generated reviews themselves."""
    data = load_sentiment_data(followed.config.data, 0)
    whole = hashlib.sha256()
    for content in data.contents():
        if isinstance(content, str):
            kind, raw = "text", content.encode()
        else:
            kind, raw = f"{content.dtype.str} {content.shape}", content.tobytes()
        whole.update(f"{kind}, {len(raw)} bytes\n".encode() + raw)
    assert f"| data.sha256 | {whole.hexdigest()} |" in text(events, "settings")


@pytest.mark.slow
def test_an_estimator_is_followed(tmp_path):
    texts = [f"{word} number {n}" for n in range(40) for word in ("good", "bad")]
    settings = {"epochs": 1, "units": 3, "embedding_size": 3, "ngrams": False}
    fitted = TextClassifier(track="tensorboard", runs_dir=tmp_path, name="own", **settings).fit(
        texts, ["yes", "no"] * 40
    )
    events = read(tmp_path / "tensorboard" / "own")
    told = {each["epoch"]: each["train"]["loss"] for each in fitted.run_.history}
    assert scalars(events, "train/loss") == pytest.approx(told, rel=1e-6)
    with pytest.raises(ConfigError, match="track must be one of"):
        TextClassifier(track="mlflw").fit(texts, ["yes", "no"] * 40)
