"""A classifier that also learns what another one answers to texts without labels."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from gru_training.__main__ import main
from gru_training.classification.report import taught_lines
from gru_training.errors import ConfigError, DataError, RunDirectoryError
from gru_training.loop.batches import LengthBucketedBatches
from gru_training.sentiment.config import (
    PretrainingConfig,
    SentimentConfig,
    SentimentDataConfig,
    SentimentTrainingConfig,
    TeachingConfig,
)
from gru_training.sentiment.data import load_data
from gru_training.sentiment.fitting import read_texts
from gru_training.sentiment.network.logits import predict_logits
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.targets.made import make_target
from gru_training.sentiment.teaching.lessons import sure_of_each, taught
from gru_training.sentiment.teaching.teacher import teacher_of
from gru_training.words.vocabulary import token_ids
from tests.made_once import made_once
from tests.training.tickets import WORDS, config, tickets, write

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
def folder():
    return made_once("taught_runs", make)


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
def test_a_student_is_right_about_more_texts_with_words_that_no_labelled_row_has(folder):
    fresh = tickets(300, 7, LATER)
    known = [sorted(LATER).index(label) for _, label in fresh]
    right = {}
    for name in ("teacher", "student"):
        run = SentimentRun.open(folder / name)
        ids = token_ids(run.preprocessor(), [text for text, _ in fresh])
        answers = predict_logits(run.load_model(), ids).argmax(axis=1)
        right[name] = int(np.sum(answers == known))
    assert right["student"] > right["teacher"]


@pytest.mark.long
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


@pytest.mark.long
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


def test_sure_answers_by_the_shares_of_the_classes():
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.69, 0.31], [0.95, 0.05], [0.1, 0.9]])
    half = np.array([0.5, 0.5])
    drawn = {
        tuple(sure_of_each(np.log(probabilities), 0.7, half, 4, np.random.default_rng(seed)))
        for seed in range(30)
    }
    # Two of the three sure ones of the first class, and all that there are of the second.
    assert drawn == {(0, 1, 4), (0, 3, 4), (1, 3, 4)}
    few = sure_of_each(np.log(probabilities), 0.7, half, 1, np.random.default_rng(0))
    assert len(few) == 2  # one of each class at least
    assert not sure_of_each(np.log(probabilities), 0.96, half, 4, np.random.default_rng(0)).size


@pytest.mark.slow
def test_only_sure_answers_are_learned(folder):
    asked = settings(
        folder, "asked", teach=folder / "teacher", teach_texts=UNLABELLED, teach_sure=0.9
    )
    data, teacher = load_data(asked), SentimentRun.open(folder / "teacher")
    read = read_texts(data, asked, folder)
    told = taught(asked, data, read.preprocessor, make_target(data, asked))
    assert told.figures["asked"] == UNLABELLED
    assert 0 < told.figures["texts"] < UNLABELLED
    rows = read.rows["train"]
    answers = told.target.learned_from("train", rows).labels[len(rows.ids) :, -len(data.classes) :]
    assert len(answers) == told.figures["texts"]
    texts = (folder / "texts.txt").read_text("utf-8").split("\n")[:UNLABELLED]
    logits = predict_logits(teacher.load_model(), token_ids(teacher.preprocessor(), texts))
    scores = softmax(logits / teacher.temperature.value, axis=1)
    assert len(answers) == np.sum(scores.max(axis=1) >= 0.9)
    assert np.all(softmax(answers, axis=1).max(axis=1) >= 0.9)


def test_the_report_says_from_how_many_texts_they_were_chosen():
    figures = {"run": "teacher", "texts": 1200, "read": 600}
    (plain,) = [line for line in taught_lines({"taught": figures}) if "texts" in line]
    (sure,) = [
        line for line in taught_lines({"taught": {**figures, "asked": 4800}}) if "texts" in line
    ]
    assert plain.endswith("1,200 texts without labels, of which each epoch read 600.")
    assert sure == f"{plain} They were chosen from 4,800, by how sure it is."


@pytest.mark.slow
def test_texts_of_which_the_teacher_is_never_sure(folder, tmp_path):
    (tmp_path / "texts.txt").write_text("lorem ipsum\ndolor sit amet\n", encoding="utf-8")
    write(tmp_path / "labelled.csv", tickets(LABELLED, 0))
    asked = settings(tmp_path, "asked", teach=folder / "teacher", teach_sure=0.99)
    data = load_data(asked)
    preprocessor = SentimentRun.open(folder / "teacher").preprocessor()
    said = r"--teach-sure: expected texts of which the run is sure by 0.99, got 2 of which it is"
    with pytest.raises(DataError, match=said):
        taught(asked, data, preprocessor, make_target(data, asked))


@pytest.mark.slow
def test_a_teacher_must_not_know_the_rows_that_are_held_out(folder, tmp_path):
    asked = settings(folder, "asked", teach=folder / "teacher")
    asked = replace(asked, training=replace(asked.training, seed=5))
    asked = replace(asked, run=replace(asked.run, runs_dir=tmp_path))
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
        teacher_of(asked.teaching, load_data(turned))
    alike = load_data(replace(asked, data=replace(asked.data, split_seed=0)))
    assert teacher_of(asked.teaching, alike).held_out_alike


@pytest.mark.long
def test_a_teacher_whose_file_has_changed_is_refused(folder, tmp_path):
    # Rows that are held out now may have been trained on, in whichever part they are today.
    shutil.copytree(folder / "teacher", tmp_path / "teacher")
    write(tmp_path / "labelled.csv", [*tickets(LABELLED, 0), *tickets(20, 3)])
    path, manifest = tmp_path / "teacher/config.json", tmp_path / "teacher/manifest.json"
    path.write_text(path.read_text("utf-8").replace(str(folder), str(tmp_path)), "utf-8")
    sizes = json.loads(manifest.read_text("utf-8"))
    manifest.write_text(json.dumps({**sizes, "config.json": path.stat().st_size}), "utf-8")
    (tmp_path / "texts.txt").write_bytes((folder / "texts.txt").read_bytes())
    with pytest.raises(DataError, match=r"teacher was trained on \d+ of the \d+ rows"):
        train_sentiment(settings(tmp_path, "asked", teach=tmp_path / "teacher"))


@pytest.mark.long
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
    with pytest.raises(ConfigError, match="--teach-sure needs --teach RUN"):
        TeachingConfig(teach_sure=0.7)
    with pytest.raises(ConfigError, match=r"--teach-sure must be between 0 and 1, got 70"):
        TeachingConfig(teach="run", teach_sure=70)
    with pytest.raises(ConfigError, match="--teach excludes --balanced-batches"):
        SentimentConfig(
            pretraining=PretrainingConfig(unlabelled="texts.txt"),
            teaching=TeachingConfig(teach="run"),
            training=SentimentTrainingConfig(balanced_batches=True),
        )
    with pytest.raises(RunDirectoryError, match="there is no run directory"):
        SentimentRun.open("run")
