"""A classifier that also learns what another one answers to texts without labels."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from tests.made_once import made_once
from tests.training.sentiment.continuing.tickets import WORDS, config, tickets, write
from training.__main__ import main
from training.errors import ConfigError, DataError, RunDirectoryError
from training.loop.batches import LengthBucketedBatches
from training.sentiment.config import (
    PretrainingConfig,
    SentimentConfig,
    SentimentDataConfig,
    SentimentTrainingConfig,
    TeachingConfig,
)
from training.sentiment.continuing.rows import load_data
from training.sentiment.fitting import read_texts
from training.sentiment.network.logits import predict_logits
from training.sentiment.pipeline import train_sentiment
from training.sentiment.run import SentimentRun
from training.sentiment.targets.made import make_target
from training.sentiment.teaching.lessons import taught
from training.sentiment.teaching.teacher import held_out_alike
from training.words.vocabulary import token_ids

LATER = {
    "billing": "invoice charged voucher",
    "bug": "crash error stalls",
    "delivery": "parcel van",
}
LABELLED, UNLABELLED = 120, 400


def settings(folder, name, **teaching):
    pretraining = PretrainingConfig(
        unlabelled=folder / "texts.txt", vector_size=6, topic_size=0, vector_words=30
    )
    data = SentimentDataConfig(data=folder / "labelled.csv")
    made = config(folder, name, data, ngrams=True)
    return replace(made, pretraining=pretraining, teaching=TeachingConfig(**teaching))


def make(folder):
    labelled = tickets(LABELLED, 0)
    write(folder / "labelled.csv", labelled)
    # Texts that have a label are passed over, and so is what is there twice.
    texts = [text for text, _ in (*tickets(UNLABELLED, 1, LATER), *labelled)]
    (folder / "texts.txt").write_text("\n".join([*texts, texts[0].upper()]), encoding="utf-8")
    train_sentiment(settings(folder, "teacher"))
    every = {"teach": folder / "teacher", "teach_texts": UNLABELLED}
    train_sentiment(settings(folder, "student", **every))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_once(tmp_path_factory, "taught_runs", make)


@pytest.mark.slow
def test_a_student_learns_labels_of_rows_and_answers_to_texts(folder):
    asked = settings(folder, "asked", teach=folder / "teacher")
    data, teacher = load_data(asked), SentimentRun.open(folder / "teacher")
    read = read_texts(data, asked, folder)
    lessons = taught(asked, data, read.preprocessor, make_target(data, asked)).target
    rows, classes = read.rows["train"], len(data.classes)
    learned = lessons.learned_from("train", rows)
    assert len(learned.ids) == len(rows.ids) + UNLABELLED
    np.testing.assert_array_equal(learned.labels[: len(rows.ids), 0], 1)
    np.testing.assert_array_equal(learned.labels[: len(rows.ids), 1], rows.labels)
    np.testing.assert_array_equal(learned.labels[len(rows.ids) :, 0], 0)
    texts = (folder / "texts.txt").read_text("utf-8").split("\n")[:UNLABELLED]
    ids = token_ids(teacher.preprocessor(), texts)
    expected = predict_logits(teacher.load_model(), ids) / teacher.temperature.value
    np.testing.assert_allclose(learned.labels[len(rows.ids) :, -classes:], expected, rtol=1e-5)


@pytest.mark.slow
def test_the_report_says_what_was_taught(folder):
    student, teacher = (SentimentRun.open(folder / name) for name in ("student", "teacher"))
    of = student.metrics["taught"]
    assert (of["run"], of["texts"]) == ("teacher", UNLABELLED)
    for part in ("validation", "test"):
        for name, run in (("teacher", teacher), ("model", student)):
            assert of[name][part]["accuracy"] == run.metrics["model"][part]["accuracy"]
    for name in ("report.md", "report.html"):
        text = (student.path / name).read_text("utf-8")
        assert "What it was taught" in text
        assert f"{UNLABELLED} texts without labels" in text
    assert student.metrics["model"]["test"]["accuracy"] > 0.9
    assert "taught" not in teacher.metrics


@pytest.mark.slow
def test_texts_that_the_teacher_knows_teach_words_that_no_labelled_row_has(folder):
    found = {}
    for name in ("teacher", "student"):
        run = SentimentRun.open(folder / name)
        ids = token_ids(run.preprocessor(), ["voucher please", "stalls again", "van today"])
        logits = predict_logits(run.load_model(), ids)
        found[name] = (logits - logits.mean(axis=1, keepdims=True))[np.arange(3), np.arange(3)]
    assert np.all(found["student"] > found["teacher"])


@pytest.mark.slow
def test_each_epoch_reads_some_of_the_texts(folder):
    asked = settings(folder, "asked", teach=folder / "teacher", teach_texts=50)
    data = load_data(asked)
    read = read_texts(data, asked, folder)
    told = taught(asked, data, read.preprocessor, make_target(data, asked))
    epochs, labelled = asked.training.epochs, len(data.train)
    # The teacher answers no more texts than all epochs read.
    assert (told.figures["texts"], told.figures["read"]) == (epochs * 50, 50)
    rows = told.target.learned_from("train", read.rows["train"])
    assert len(rows.ids) == labelled + epochs * 50
    drawn = told.target.drawn(labelled, len(rows.ids))
    batches = LengthBucketedBatches(rows.ids, rows.labels, 16, drawn=drawn)
    known = [
        np.concatenate([batch.targets[:, 0] for batch in batches.epoch(number)])
        for number in (1, 2)
    ]
    assert [(int(row.sum()), len(row)) for row in known] == [(labelled, labelled + 50)] * 2


@pytest.mark.slow
def test_documents_are_taught_as_sentences(folder, tmp_path):
    texts = (folder / "texts.txt").read_text("utf-8").split("\n")[:UNLABELLED]
    documents = [". ".join(text.capitalize() for text in texts[k : k + 4]) for k in range(0, 40, 4)]
    (tmp_path / "texts.txt").write_text("\n".join(documents), encoding="utf-8")
    write(tmp_path / "labelled.csv", tickets(LABELLED, 0))
    counts = []
    for cut in (False, True):
        asked = settings(tmp_path, "asked", teach=folder / "teacher", teach_sentences=cut)
        data = load_data(asked)
        preprocessor = SentimentRun.open(folder / "teacher").preprocessor()
        told = taught(asked, data, preprocessor, make_target(data, asked))
        counts.append(told.figures["texts"])
    assert counts == [10, 40]


@pytest.mark.slow
def test_a_teacher_must_not_know_the_rows_that_are_held_out(folder, tmp_path):
    asked = settings(folder, "asked", teach=folder / "teacher")
    asked = replace(asked, training=replace(asked.training, seed=5))
    said = r"was trained on \d+ of the \d+ rows that are held out here; .* --split-seed 0$"
    with pytest.raises(DataError, match=said):
        train_sentiment(asked)
    # The rows of another file, or in another order, are split differently by the same seed.
    labelled = tickets(LABELLED, 0)
    write(tmp_path / "turned.csv", labelled[1:] + labelled[:1])
    turned = replace(asked, data=replace(asked.data, data=tmp_path / "turned.csv", split_seed=0))
    with pytest.raises(
        DataError, match=rf"with --data {folder / 'labelled.csv'} and --split-seed 0"
    ):
        held_out_alike(SentimentRun.open(folder / "teacher"), load_data(turned))
    alike = load_data(replace(asked, data=replace(asked.data, split_seed=0)))
    assert held_out_alike(SentimentRun.open(folder / "teacher"), alike)


@pytest.mark.slow
def test_a_teacher_whose_file_has_changed_is_refused(folder, tmp_path):
    # Rows that are held out now may have been trained on, in whichever part they are today.
    shutil.copytree(folder / "teacher", tmp_path / "teacher")
    write(tmp_path / "labelled.csv", [*tickets(LABELLED, 0), *tickets(20, 3)])
    path, manifest = tmp_path / "teacher/config.json", tmp_path / "teacher/manifest.json"
    path.write_text(path.read_text("utf-8").replace(str(folder), str(tmp_path)), "utf-8")
    sizes = json.loads(manifest.read_text("utf-8"))
    manifest.write_text(json.dumps({**sizes, "config.json": path.stat().st_size}), "utf-8")
    (tmp_path / "texts.txt").write_bytes((folder / "texts.txt").read_bytes())
    with pytest.raises(DataError, match=r"expected the rows that .*teacher was trained on"):
        train_sentiment(settings(tmp_path, "asked", teach=tmp_path / "teacher"))


@pytest.mark.slow
def test_a_teacher_must_answer_the_same_classes(folder, tmp_path):
    other = {**WORDS, "login": "password locked"}
    write(tmp_path / "labelled.csv", tickets(LABELLED, 2, other))
    (tmp_path / "texts.txt").write_bytes((folder / "texts.txt").read_bytes())
    asked = settings(tmp_path, "asked", teach=folder / "teacher")
    with pytest.raises(DataError, match="expected a run that answers class billing, bug, delivery"):
        train_sentiment(asked)


def test_a_run_of_another_task_is_named_as_such(tmp_path, capsys):
    series = tmp_path / "series"
    series.mkdir()
    (series / "config.json").write_text('{"task": "forecasting"}', "utf-8")
    (series / "manifest.json").write_text('{"config.json": 23}', "utf-8")
    (tmp_path / "texts.txt").write_text("a\nb\n", encoding="utf-8")
    data = write(tmp_path / "labelled.csv", tickets(LABELLED, 0))
    command = f"sentiment --data {data} --teach {series} --unlabelled {tmp_path / 'texts.txt'}"
    assert main([*command.split(), "--runs-dir", str(tmp_path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"--teach: expected a run of sentiment, got {series}, one of forecasting" in said


def test_what_is_missing_is_named_before_training(tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("a\nb\n", encoding="utf-8")
    write(tmp_path / "labelled.csv", tickets(LABELLED, 0))
    command = ["sentiment", "--data", str(tmp_path / "labelled.csv"), "--runs-dir", str(tmp_path)]
    missing = ["--teach", str(tmp_path / "nowhere")]
    assert main([*command, *missing]) == 2
    assert "--teach needs --unlabelled PATH" in capsys.readouterr().err
    assert main([*command, *missing, "--unlabelled", str(tmp_path / "texts.txt")]) == 2
    assert f"there is no run directory {tmp_path / 'nowhere'}" in " ".join(
        capsys.readouterr().err.split()
    )


def test_settings_that_exclude_each_other():
    with pytest.raises(ConfigError, match="--teach-texts needs --teach RUN"):
        TeachingConfig(teach_texts=3)
    with pytest.raises(ConfigError, match="--teach-sentences needs --teach RUN"):
        TeachingConfig(teach_sentences=True)
    with pytest.raises(ConfigError, match="--teach excludes --balanced-batches"):
        SentimentConfig(
            pretraining=PretrainingConfig(unlabelled="texts.txt"),
            teaching=TeachingConfig(teach="run"),
            training=SentimentTrainingConfig(balanced_batches=True),
        )
    with pytest.raises(RunDirectoryError, match="there is no run directory"):
        SentimentRun.open("run")
