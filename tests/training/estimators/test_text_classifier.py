"""TextClassifier, compared with the command line, scikit-learn and Keras."""

import json
import pickle
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import cross_val_score

from gru_training import TextClassifier
from gru_training.__main__ import main
from gru_training.errors import CheckpointError, ConfigError, DataError, RunDirectoryError
from gru_training.estimators.text_source import text_source
from gru_training.sentiment.run import SentimentRun
from tests.made_once import made_once
from tests.training.cut_short import killed

REPOSITORY = Path(__file__).resolve().parents[3]
TINY = {"epochs": 2, "units": 4, "embedding_size": 4, "batch_size": 16}
FLAGS = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
# One direction takes half the time to trace; by default it would answer without n-grams.
TINY |= {"bidirectional": False, "ngrams": True}
FLAGS += ["--no-bidirectional", "--ngrams"]
WORDS = {"billing": "invoice charged refund card", "login": "password reset account locked"}


def tickets(rows=160, seed=0):
    rng = np.random.default_rng(seed)
    labels = [list(WORDS)[i % 2] for i in range(rows)]
    bodies = [
        " ".join([*rng.choice(WORDS[label].split(), 3), "ticket", str(i), "please"])
        for i, label in enumerate(labels)
    ]
    return pd.DataFrame({"id": range(1000, 1000 + rows), "body": bodies, "category": labels})


def weights(run):
    return SentimentRun.open(run).load_model().get_weights()


@pytest.fixture(scope="module")
def fitted():
    def make(folder):
        classifier = TextClassifier(**TINY, runs_dir=folder, name="frame")
        classifier.fit(tickets(), text="body", label="category")

    return TextClassifier.load(made_once("text_classifier", make) / "frame")


@pytest.mark.slow
def test_a_frame_gives_the_run_of_the_same_rows_in_a_file(fitted, tmp_path):
    path = tmp_path / "tickets.csv"
    tickets().to_csv(path, index=False)
    arguments = ["sentiment", "--data", str(path), "--text-column", "body", *FLAGS]
    assert main([*arguments, "--runs-dir", str(tmp_path), "--name", "file"]) == 0
    for one, two in zip(weights(tmp_path / "file"), weights(fitted.run_.path), strict=True):
        np.testing.assert_array_equal(one, two)
    file, frame = SentimentRun.open(tmp_path / "file"), fitted.run_
    for part in ("validation", "test"):
        assert frame.metrics["model"][part] == file.metrics["model"][part]
    assert frame.config.training == file.config.training
    # For commands without TensorFlow; an estimator keeps its model loaded.
    graph = {"model.onnx", "tokens.json"}
    of_file, of_frame = ({p.name for p in run.path.iterdir()} for run in (file, frame))
    assert of_file - of_frame == graph
    assert of_frame <= of_file


def test_predictions_are_those_of_the_held_out_rows_of_the_run(fitted):
    stored = list(fitted.run_.test_predictions())
    answered = fitted.predict_frame([row.text for row in stored])
    assert list(answered.columns) == ["label", "probability", "billing", "login"]
    assert answered["label"].tolist() == [row.predicted for row in stored]
    expected = np.array([row.scores for row in stored])
    np.testing.assert_allclose(answered[["billing", "login"]], expected, rtol=2e-5)
    np.testing.assert_allclose(answered["probability"], expected.max(axis=1), rtol=2e-5)
    metrics = fitted.evaluate([row.text for row in stored], [row.label for row in stored])
    assert metrics["accuracy"] == fitted.run_.metrics["model"]["test"]["accuracy"]


@pytest.mark.long
def test_every_kind_of_table_is_read_and_answered_in_kind(fitted):
    frame = tickets(20, seed=3).set_index("id", drop=False).iloc[::-1]
    expected = fitted.predict_frame(frame)
    assert expected.index.equals(frame.index)
    texts = frame["body"].tolist()
    for data in (texts, np.array(texts), np.array(texts, object), tuple(texts)):
        pd.testing.assert_frame_equal(fitted.predict_frame(data), expected.reset_index(drop=True))
    polars = fitted.predict_frame(pl.from_pandas(frame))
    assert isinstance(polars, pl.DataFrame)
    assert polars["label"].to_list() == expected["label"].tolist()
    assert isinstance(fitted.predict_frame(pl.Series(texts)), pl.DataFrame)
    arrow = fitted.predict_frame(pa.Table.from_pandas(frame))
    assert isinstance(arrow, pa.Table)
    np.testing.assert_array_equal(arrow["login"].to_numpy(), expected["login"])
    other = frame.rename(columns={"body": "message"})
    pd.testing.assert_frame_equal(fitted.predict_frame(other), expected)
    pd.testing.assert_frame_equal(fitted.predict_frame(frame["body"]), expected)
    assert len(fitted.predict_frame([])) == 0


@pytest.mark.long
def test_tables_of_other_libraries_train_the_same_model(fitted, tmp_path):
    for name, table in (("polars", pl.from_pandas(tickets())), ("arrow", pa.table(tickets()))):
        other = TextClassifier(**TINY, runs_dir=tmp_path, name=name)
        other.fit(table, text="body", label="category")
        for one, two in zip(weights(other.run_.path), weights(fitted.run_.path), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.long
def test_measures_are_those_of_scikit_learn(fitted):
    frame = tickets(60, seed=5)
    frame["category"] = np.random.default_rng(0).permutation(frame["category"])
    measured = fitted.evaluate(frame)
    answered = fitted.predict_frame(frame)
    assert fitted.predict(frame).tolist() == answered["label"].tolist()
    truth = frame["category"]
    assert measured["rows"] == 60
    assert measured["accuracy"] == accuracy_score(truth, answered["label"])
    assert fitted.score(frame) == measured["accuracy"]
    assert measured["macro_f1"] == pytest.approx(
        f1_score(truth, answered["label"], average="macro")
    )
    of_truth = [answered[label].iloc[row] for row, label in enumerate(truth)]
    assert measured["log_loss"] == pytest.approx(-np.log(of_truth).mean(), rel=1e-5)
    assert measured["per_class"]["login"]["rows"] == 30


def with_config(classifier, path, change, **files):
    """A copy of a fitted estimator, with other settings and files in its run."""
    shutil.copytree(classifier.run_.path, path)
    files["config"] = json.loads((path / "config.json").read_text())
    change(files["config"])
    sizes = json.loads((path / "manifest.json").read_text())
    for name, values in files.items():
        (path / f"{name}.json").write_text(json.dumps(values))
        sizes[f"{name}.json"] = (path / f"{name}.json").stat().st_size
    (path / "manifest.json").write_text(json.dumps(sizes))
    return TextClassifier.load(path)


@pytest.mark.slow
def test_merged_labels_are_right_in_any_spelling(fitted, tmp_path):
    frame = tickets(40, seed=5)
    frame["category"] = frame["category"].sample(frac=1, random_state=0).to_numpy()
    shouted = frame.assign(category=" " + frame["category"].str.upper())
    with pytest.warns(UserWarning, match="'login'.* count as wrong: 'BILLING', 'LOGIN'"):
        assert fitted.score(shouted) == 0
    merged = with_config(
        fitted, tmp_path / "run", lambda config: config["data"].update(merge_labels=True)
    )
    assert 0 < merged.score(shouted) == fitted.score(frame) < 1
    assert merged.evaluate(shouted) == fitted.evaluate(frame)
    with pytest.warns(UserWarning, match="count as wrong: 'shipping'"):
        assert merged.score(shouted.assign(category="shipping")) == 0


def test_equal_numbers_are_the_same_class_whatever_their_type(fitted, tmp_path):
    kinds = {"labels": "integer", "dtype": "<i8"}
    numbered = with_config(
        fitted, tmp_path / "run", lambda config: config["given"].update(kinds), classes=["0", "1"]
    )
    assert numbered.classes_.tolist() == [0, 1]
    frame = tickets(40, seed=5)
    truth = (frame["category"] == "login").sample(frac=1, random_state=0).to_numpy()
    expected = accuracy_score(truth, numbered.predict(frame["body"]))
    assert 0 < expected < 1
    for kind in (int, float, bool, "Int64"):
        assert numbered.score(frame["body"], pd.Series(truth).astype(kind)) == expected
    assert numbered.evaluate(frame["body"], truth)["accuracy"] == expected
    with pytest.raises(DataError, match="y: expected a label for each text, got a missing one"):
        numbered.score(frame["body"], [None, *truth[1:]])


@pytest.mark.long
def test_rows_given_for_validation_and_test_are_those_used(tmp_path):
    classifier = TextClassifier(**TINY, runs_dir=tmp_path)
    held = tickets(20, seed=8)
    classifier.fit(
        tickets(),
        text="body",
        label="category",
        validation=tickets(24, seed=7),
        test=(held["body"].tolist(), held["category"]),
    )
    assert classifier.run_.metrics["data"]["rows"]["validation"] == 24
    assert [row.text for row in classifier.run_.test_predictions()] == held["body"].tolist()
    shares = TextClassifier(**TINY, runs_dir=tmp_path, name="shares")
    shares.fit(tickets(), text="body", label="category", validation=0.25, test=0.3)
    assert shares.run_.config.data.validation_fraction == 0.25
    assert shares.run_.metrics["data"]["rows"]["test"] == 48


@pytest.mark.long
def test_labels_come_back_as_they_were(tmp_path):
    frame = tickets()
    numbers = frame["category"].map({"billing": 10, "login": 2})
    classifier = TextClassifier(**TINY, runs_dir=tmp_path, name="numbers")
    classifier.fit(frame["body"], numbers)
    assert classifier.classes_.tolist() == [2, 10]
    answered = classifier.predict(frame)
    assert set(answered) <= {2, 10}
    assert answered.dtype == classifier.classes_.dtype == np.int64
    assert classifier.predict_frame(frame)["label"].tolist() == answered.tolist()
    again = TextClassifier.load(tmp_path / "numbers")
    assert again.classes_.tolist() == [2, 10]
    assert again.score(frame["body"], numbers) == classifier.score(frame["body"], numbers)


@pytest.mark.slow
def test_scikit_learns_habits(fitted, tmp_path):
    classifier = TextClassifier(**TINY, runs_dir=tmp_path, learning_rate=0.01)
    copy = clone(classifier)
    assert copy.get_params() == classifier.get_params()
    assert copy.get_params()["patience"] == 4
    assert "learning_rate=0.01" in repr(copy)
    assert "patience" not in repr(copy)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        copy.predict(["a text"])
    preset = TextClassifier(preset="imdb", epochs=9)
    assert (preset.epochs, preset.units, preset.pooling) == (9, 64, "attention")
    assert (
        clone(preset).set_params(epochs=4).get_params() == preset.set_params(epochs=4).get_params()
    )
    kept = pickle.loads(pickle.dumps(fitted))
    pd.testing.assert_frame_equal(kept.predict_frame(tickets(5)), fitted.predict_frame(tickets(5)))


@pytest.mark.long
def test_cross_val_score(tmp_path):
    frame = tickets(90)
    classifier = TextClassifier(
        **{**TINY, "epochs": 12}, learning_rate=0.05, dropout=0.0, runs_dir=tmp_path
    )
    scores = cross_val_score(classifier, frame["body"].tolist(), frame["category"], cv=2)
    assert scores.min() > 0.8
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rat": 1}, "no setting 'learning_rat'; did you mean 'learning_rate'"),
        ({"data": "a.csv"}, "no setting 'data': give the data to fit"),
        ({"preset": "sst"}, "preset must be one of demo, mr"),
    ],
)
def test_wrong_settings_are_named_at_once(settings, message):
    with pytest.raises(ConfigError, match=message):
        TextClassifier(**settings)


FRAME = tickets(40)


@pytest.mark.parametrize(
    ("settings", "arguments", "error", "message"),
    [
        ({"learning_rate": -1.0}, {}, ConfigError, "^learning_rate must be a finite number above"),
        ({"units": "many"}, {}, ConfigError, "^units must be int, got 'many'"),
        ({}, {"text": "subject"}, DataError, "^data has no column 'subject'; its columns are"),
        ({}, {"data": FRAME.rename(columns={"body": "b"})}, DataError, "name one with text=$"),
        (
            {},
            {"data": FRAME.assign(body=None)},
            DataError,
            "row 0: the text is empty .and 39 more",
        ),
        ({}, {"data": FRAME.assign(body=1)}, DataError, "row 0: expected a text, got int 1"),
        ({}, {"data": FRAME.assign(body=" ")}, DataError, "row 0: the text is empty .and 39 more"),
        ({}, {"data": FRAME.assign(category=pd.NA)}, DataError, "row 0: the label is missing"),
        ({}, {"data": FRAME.assign(category=[{"a": "b"}] * 40)}, DataError, "expected labels"),
        (
            {},
            {"data": FRAME.assign(category=b"a")},
            DataError,
            r"got bytes b'a'; numpy.char.decode",
        ),
        ({}, {"data": ["a", "b"]}, ConfigError, "got list alone"),
        ({}, {"data": FRAME["body"], "y": ["a"]}, DataError, "label for each of 40 texts, got 1"),
        ({}, {"data": 3, "y": [1]}, DataError, "expected a table, or a list or column, got int"),
        ({}, {"data": 3}, ConfigError, "texts and their labels; got int alone"),
        ({}, {"validation": FRAME.assign(category="x")}, DataError, "got 'x'"),
        ({}, {"validation": 1.5}, ConfigError, "^validation_fraction must lie between"),
        ({}, {"data": "none.csv"}, DataError, "^data: there is no file or folder none.csv"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, settings, arguments, error, message):
    given = {"data": FRAME, "text": None, **arguments}
    if given["text"] is None and given["data"] is FRAME:
        given["text"] = "body"
    elif isinstance(given["data"], pd.DataFrame) and "body" in given["data"]:
        given["text"] = given["text"] or "body"
    with pytest.raises(error, match=message):
        TextClassifier(**TINY, runs_dir=tmp_path / "runs").set_params(**settings).fit(**given)
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


@pytest.mark.long
def test_a_killed_training_goes_on_to_the_same_weights(tmp_path):
    settings = {**TINY, "epochs": 3, "runs_dir": tmp_path}
    whole = TextClassifier(**settings, name="whole").fit(tickets(), text="body", label="category")
    with killed():
        TextClassifier(**settings, name="cut").fit(tickets(), text="body", label="category")
    with pytest.raises(DataError, match="begun with data given in memory; give them again"):
        TextClassifier.resume(tmp_path / "cut")
    with pytest.raises(CheckpointError, match="expected the data that the training started with"):
        TextClassifier.resume(tmp_path / "cut", tickets(seed=1))
    assert main(["resume", str(tmp_path / "cut")]) == 2
    resumed = TextClassifier.resume(tmp_path / "cut", tickets())
    assert resumed.epochs == 3
    for one, two in zip(weights(tmp_path / "cut"), weights(whole.run_.path), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_epoch(tmp_path, monkeypatch, capsys):
    from gru_training.loop.checkpoint import Checkpoint

    def interrupted(self, state, best_weights):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Checkpoint, "save", interrupted)
    classifier = TextClassifier(**{**TINY, "epochs": 50, "patience": 50}, runs_dir=tmp_path)
    classifier.fit(tickets(), text="body", label="category", progress=True)
    assert classifier.run_.metrics["interrupted"]
    assert classifier.run_.metrics["epochs"] == 1
    assert "interrupted; epoch" in capsys.readouterr().out
    assert len(classifier.predict(tickets(3))) == 3


@pytest.mark.slow
def test_rows_that_cannot_be_used_can_be_dropped(fitted, tmp_path):
    frame = tickets()
    frame.loc[len(frame)] = (5000, " ", "billing")
    frame.loc[len(frame)] = (5001, "a text without a label", None)
    with pytest.raises(DataError, match=r"2 problems(.|\n)*drop_bad"):
        TextClassifier(**TINY, runs_dir=tmp_path).fit(frame, text="body", label="category")
    dropping = TextClassifier(**TINY, runs_dir=tmp_path, name="dropped", drop_bad=True)
    dropping.fit(frame, text="body", label="category")
    assert "1 row dropped" in " ".join(dropping.run_.metrics["data"]["notes"])
    for one, two in zip(weights(tmp_path / "dropped"), weights(fitted.run_.path), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([1, None, 0], "integer"),
        (pd.Series([1, None, 0], dtype="Int64"), "integer"),
        (pd.Series([1, None, 0]), "number"),
        ([True, None, False], "boolean"),
        (["1", None, 0], "text"),
    ],
)
def test_missing_labels_leave_the_others_their_type(labels, kind):
    assert text_source(["a", "b", "c"], labels).table.given["labels"] == kind


def test_saved_and_loaded(fitted, tmp_path):
    path = fitted.save(tmp_path / "mine" / "tickets")
    again = TextClassifier.load(path)
    pd.testing.assert_frame_equal(again.predict_frame(tickets(5)), fitted.predict_frame(tickets(5)))
    elsewhere = {"runs_dir": None, "name": None}
    assert again.get_params() == {**fitted.get_params(), **elsewhere}
    with pytest.raises(RunDirectoryError, match="tickets exists already"):
        fitted.save(path)
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["tickets"]


@pytest.mark.slow
def test_a_report_is_written_when_it_is_asked_for(fitted, tmp_path):
    classifier = TextClassifier(**TINY, runs_dir=tmp_path)
    classifier.fit(tickets(), text="body", label="category")
    run = classifier.run_.path
    reported = {each.name for each in fitted.run_.path.iterdir()}
    pages = {"report.md", "report.html", "marked_texts.json"}
    missing = reported - {each.name for each in run.iterdir()}
    assert missing == pages | {name for name in reported if name.endswith(".png")}
    assert len(missing) > len(pages)
    with pytest.raises(RunDirectoryError, match=r"has no report: call report\(\) of the estimator"):
        TextClassifier.load(run).report()
    before = classifier.run_.metrics
    assert "deciding_words" not in before
    whole = str(classifier.report())
    speed = re.compile(r"\d[\d.,]*\s+(s|min|training\s+tokens)\b")
    assert speed.sub("", whole) == speed.sub("", str(fitted.report()))
    assert {each.name for each in run.iterdir()} == reported
    assert set(classifier.run_.metrics) - set(before) == {"deciding_words", "doubtful_labels"}
    assert str(TextClassifier.load(run).report()) == whole
    saved = TextClassifier.load(classifier.save(tmp_path / "mine"))
    assert saved.run_.metrics["deciding_words"] == fitted.run_.metrics["deciding_words"]


def test_the_report_in_a_notebook_has_its_pictures(fitted):
    report = fitted.report()
    assert str(report) == (fitted.run_.path / "report.md").read_text()
    shown = report._repr_markdown_()
    assert "](data:image/png;base64,iVBOR" in shown
    assert ".png)" not in shown


@pytest.mark.long
def test_export_writes_a_version_that_answers_the_same(fitted, tmp_path):
    import tensorflow as tf

    version = fitted.export(tmp_path / "models" / "tickets")
    assert version == tmp_path / "models" / "tickets" / "1"
    texts = tickets(8)["body"].tolist()
    answer = tf.saved_model.load(version).signatures["serving_default"](text=tf.constant(texts))
    np.testing.assert_allclose(
        answer["scores"].numpy(), fitted.predict_proba(texts), rtol=1e-4, atol=1e-6
    )
    (tmp_path / "file").touch()
    with pytest.raises(Exception, match="expected a directory that can be written"):
        fitted.export(tmp_path / "file")


@pytest.mark.long
def test_a_model_that_takes_text(fitted, tmp_path):
    import tensorflow as tf

    texts = [*tickets(6)["body"], "", "unheard of"]
    model = fitted.text_model()
    np.testing.assert_allclose(
        model.predict(tf.constant(texts), verbose=0), fitted.predict_proba(texts), rtol=1e-4
    )
    model.save(tmp_path / "text.keras")
    program = (
        "import keras, keras_gru, sys, tensorflow as tf, json; "
        "model = keras.models.load_model(sys.argv[1]); "
        "print(json.dumps(model(tf.constant(json.loads(sys.argv[2]))).numpy().tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "text.keras"), json.dumps(texts)],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    np.testing.assert_allclose(json.loads(done.stdout), fitted.predict_proba(texts), rtol=1e-4)
    assert isinstance(model, keras.Model)


@pytest.mark.slow
def test_training_is_light_to_import():
    program = (
        "import sys, gru_training; assert 'TextClassifier' in dir(gru_training); "
        "print({'numpy', 'pandas', 'sklearn', 'keras', 'tensorflow'} & set(sys.modules)); "
        "from gru_training import TextClassifier; TextClassifier(epochs=3); "
        "print({'keras', 'tensorflow', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["set()", "set()"]


def test_what_is_missing_is_named():
    program = "import sys; sys.modules['sklearn'] = None; from gru_training import Forecaster"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    expected = "Forecaster needs sklearn, which is not installed; install it with pip install"
    assert expected in done.stderr
