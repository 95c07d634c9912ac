"""`gru-train ensemble`, on small trainings of texts."""

import shutil

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from gru_serving.client import connect
from gru_serving.export.run import export_run
from gru_training.__main__ import main
from gru_training.compare.command import compare_runs
from gru_training.sentiment.data import load_sentiment_data
from gru_training.sentiment.network.logits import predict_logits
from gru_training.sentiment.run import SentimentRun
from gru_training.words.vocabulary import token_ids
from tests.made_once import made_once, own_copy
from tests.serving.conftest import running
from tests.training.sentiment.targets.runs import rated, train_labels, train_number

pytestmark = pytest.mark.long

SMALL = ["--epochs", "2", "--embedding-size", "5", "--units", "4"]
# One direction takes half the time to trace; by default it would answer without n-grams.
SMALL += ["--no-bidirectional", "--ngrams"]


def gru_train(*arguments):
    return main(list(map(str, arguments)))


def write_stars(path):
    frame = rated()
    frame["stars"] = np.where(frame["stars"] >= 30, "good", "bad")
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    def make(folder):
        data = write_stars(folder / "reviews.csv")
        common = ["--data", data, "--label-column", "stars", "--runs-dir", folder]
        assert gru_train("sentiment", *SMALL, *common, "--name", "one") == 0
        assert gru_train("ensemble", folder / "one", "--seeds", "3", "--distil") == 0

    return own_copy(made_once("ensemble_runs", make), tmp_path_factory)


@pytest.fixture(scope="module")
def runs(folder):
    names = ("one", "one-seed1", "one-seed2", "one-ensemble", "one-ensemble-distilled")
    return [SentimentRun.open(folder / name) for name in names]


def logits_of(run, texts):
    return predict_logits(run.load_model(), token_ids(run.preprocessor(), texts))


def test_the_average_is_that_of_the_runs(runs):
    *members, whole, _ = runs
    first = members[0]
    data = load_sentiment_data(first.config.data, first.config.training.seed)
    logits = {
        part: np.mean(
            [logits_of(run, rows.texts).astype(np.float64) / run.temperature.value
             for run in members], axis=0,
        )
        for part, rows in (("validation", data.validation), ("test", data.test))
    }  # fmt: skip
    np.testing.assert_allclose(logits_of(whole, data.test.texts), logits["test"], atol=1e-5)

    def loss(log_t):
        chances = log_softmax(logits["validation"] / np.exp(log_t), axis=1)
        return -np.mean(chances[np.arange(len(data.validation)), data.validation.labels])

    best = float(np.exp(minimize_scalar(loss, bounds=(-2.3, 2.3), method="bounded").x))
    if whole.temperature.remark is None:
        assert whole.temperature.value == pytest.approx(best, rel=1e-3)
    scores = np.exp(log_softmax(logits["test"] / whole.temperature.value, axis=1))
    rows = list(whole.test_predictions())
    np.testing.assert_allclose([row.scores for row in rows], scores, atol=1e-5)
    assert tuple(row.text for row in rows) == data.test.texts
    right = np.mean(scores.argmax(axis=1) == data.test.labels)
    assert whole.metrics["model"]["test"]["accuracy"] == pytest.approx(right)


def test_seeds_are_trained_on_one_split_and_differ(runs):
    members = runs[:3]
    assert [run.config.training.seed for run in members] == [0, 1, 2]
    assert [run.config.data.split_seed for run in members] == [None, 0, 0]
    texts = [[row.text for row in run.test_predictions()] for run in members]
    assert texts[0] == texts[1] == texts[2]
    weights = [run.load_model().get_weights() for run in members]
    assert not np.allclose(weights[0][0], weights[1][0])
    # The same seed and split lead to the same run, whoever asks for it.
    assert members[1].config.model == members[0].config.model


def test_the_report_shows_the_runs_beside_their_average(runs):
    *members, whole, distilled = runs
    figures = whole.metrics["ensemble"]
    accuracies = [run.metrics["model"]["test"]["accuracy"] for run in members]
    assert [run["test"]["accuracy"] for run in figures["runs"]] == accuracies
    assert figures["mean"]["test"]["accuracy"] == pytest.approx(np.mean(accuracies))
    assert figures["deviation"]["test"]["accuracy"] == pytest.approx(np.std(accuracies, ddof=1))
    gain = whole.metrics["model"]["test"]["accuracy"] - np.mean(accuracies)
    assert figures["gain"]["test"]["accuracy"] == pytest.approx(gain)
    report = (whole.path / "report.md").read_text()
    for run in members:
        assert f"| `{run.path.name}` |" in report
    assert f"| **average** | {whole.metrics['model']['validation']['accuracy']:.2%}" in report
    assert "curves.png" not in report
    assert (whole.path / "report.html").is_file()

    figures = distilled.metrics["distilled"]
    assert figures["average"]["test"]["log_loss"] == pytest.approx(
        whole.metrics["calibration"]["test"]["after"]["negative_log_likelihood"]
    )
    whole_gain = figures["gain_of_average"]["validation"]["log_loss"]
    kept = figures["kept"]["validation"]["log_loss"]
    if whole_gain > 0.1 * figures["deviation"]["validation"]["log_loss"]:
        assert kept == pytest.approx(figures["gain"]["validation"]["log_loss"] / whole_gain)
    else:
        assert kept is None
    assert "| their average |" in (distilled.path / "report.md").read_text()


def test_the_distilled_run_is_an_ordinary_run(runs, capsys):
    first, *_, distilled = runs
    assert distilled.config.model == first.config.model
    layers = [type(layer).__name__ for layer in distilled.load_model().layers]
    assert layers == [type(layer).__name__ for layer in first.load_model().layers]
    assert distilled.history
    assert not distilled.path.with_name(f".{distilled.path.name}.checkpoint").exists()
    comparison = compare_runs([run.path for run in runs])
    assert len([each for each in comparison.contenders if each.is_run]) == len(runs)


@pytest.mark.parametrize("name", ["one-ensemble", "one-ensemble-distilled"])
def test_an_export_answers_as_the_run_with_both_engines(runs, folder, tmp_path, name):
    run = SentimentRun.open(folder / name)
    export_run(run.path, tmp_path / "models")  # verified in a process of its own
    rows = list(run.test_predictions())
    texts = np.array([row.text.encode() for row in rows], object)
    for runtime in ("tensorflow", "onnx"):
        with (
            running(
                tmp_path / f"{runtime}.log",
                f"--model_base_path={tmp_path / 'models'}",
                "--model_name=reviews",
                f"--runtime={runtime}",
            ) as server,
            connect(server.rest) as client,
        ):
            answers = client.predict({"text": texts}, "reviews")
            np.testing.assert_allclose(
                answers["scores"], [row.scores for row in rows], atol=1e-4
            )  # fmt: skip
            gates = client.predict({"text": texts[:2]}, "reviews", signature="gates")
            np.testing.assert_allclose(
                [scores[len(row.text.split()) - 1] for scores, row in
                 zip(gates["scores"], rows, strict=False)],
                [row.scores for row in rows[:2]], atol=1e-4,
            )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "train"),
    [("labels", train_labels), ("number", train_number)],
)
def test_labels_and_numbers_are_averaged_and_distilled(tmp_path, name, train):
    train(tmp_path)
    assert gru_train("ensemble", tmp_path / name, "--seeds", "2", "--distil") == 0
    one, two, whole, distilled = (
        SentimentRun.open(tmp_path / each)
        for each in (name, f"{name}-seed1", f"{name}-ensemble", f"{name}-ensemble-distilled")
    )
    texts = [row.text for row in whole.test_predictions()]
    parts = [logits_of(run, texts).astype(np.float64) for run in (one, two)]
    if name == "labels":
        parts = [part / run.temperature.value for part, run in zip(parts, (one, two), strict=True)]
    mean = np.mean(parts, axis=0)
    np.testing.assert_allclose(logits_of(whole, texts), mean, atol=1e-5)
    if name == "number":
        estimates = [row.predicted for row in whole.test_predictions()]
        wanted = mean[:, 0] * one.scale.deviation + one.scale.mean
        np.testing.assert_allclose(estimates, wanted, rtol=1e-4)
        assert whole.scale.offsets != one.scale.offsets
    else:
        assert whole.decision.thresholds != one.decision.thresholds
    for run in (whole, distilled):
        assert (run.path / "report.md").is_file()
    measure = "mae" if name == "number" else "micro_f1"
    assert set(distilled.metrics["distilled"]["kept"]["test"]) >= {measure}


def test_further_seeds_that_are_there_are_taken(runs, folder, capsys):
    assert gru_train("ensemble", folder / "one", "--seeds", "2", "--name", "two") == 0
    shown = capsys.readouterr().out
    assert "training one-seed" not in shown
    assert f"run     {folder / 'two'}" in shown
    two = SentimentRun.open(folder / "two")
    assert [run["name"] for run in two.metrics["ensemble"]["runs"]] == ["one", "one-seed1"]
    assert gru_train("ensemble", folder / "one", "--seeds", "2", "--name", "two") == 2
    assert "two exists already" in capsys.readouterr().err
    assert gru_train("ensemble", folder / "two", folder / "one-seed2", "--name", "three") == 2
    assert "got an average; name the runs in it" in capsys.readouterr().err
    shutil.rmtree(two.path)


def test_runs_that_cannot_be_averaged(runs, folder, tmp_path, capsys, tiny_run, forecasting_run):
    one = folder / "one"

    def refused(*paths, flags=()):
        assert gru_train("ensemble", *paths, "--runs-dir", tmp_path, *flags) == 2
        return capsys.readouterr().err

    data = ["--data", folder / "reviews.csv", "--label-column", "stars", "--runs-dir", tmp_path]
    assert gru_train("sentiment", *SMALL, *data, "--seed", "5", "--name", "other-split") == 0
    assert gru_train("sentiment", *SMALL, *data, "--min-count", "3", "--name", "few-words") == 0
    frame = pd.read_csv(folder / "reviews.csv")
    frame["stars"] = frame["stars"].replace("good", "fine")
    frame.to_csv(tmp_path / "fine.csv", index=False)
    data = ["--data", tmp_path / "fine.csv", *data[2:]]
    assert gru_train("sentiment", *SMALL, *data, "--name", "other-classes") == 0
    capsys.readouterr()

    said = refused(one, tmp_path / "other-split")
    assert f"{tmp_path / 'other-split'}: expected the " in said
    assert f" test rows of {one}, got " in said
    assert "--split-seed 0" in said
    # Where a file gives the test rows, the seed still draws those for validation.
    frame.head(200).to_csv(tmp_path / "learn.csv", index=False)
    frame.tail(40).to_csv(tmp_path / "test.csv", index=False)
    given = ["--data", tmp_path / "learn.csv", "--test", tmp_path / "test.csv", *data[2:]]
    for seed in (0, 1):
        named = ["--seed", seed, "--name", f"given-{seed}"]
        assert gru_train("sentiment", *SMALL, *given, *named) == 0
    capsys.readouterr()
    said = refused(tmp_path / "given-0", tmp_path / "given-1")
    assert f"expected the validation rows of {tmp_path / 'given-0'}, got others" in said
    assert "expected the words of" in refused(one, tmp_path / "few-words")
    assert "expected the classes bad, good of" in refused(one, tmp_path / "other-classes")
    assert "expected a sentiment run" in refused(one, forecasting_run.path)
    assert "ensemble needs two or more run directories" in refused(one)
    assert "--seeds needs one run directory" in refused(one, one, flags=["--seeds", "2"])
    assert "--seeds must be at least 2, got 1" in refused(one, flags=["--seeds", "1"])
    assert "twice" in refused(one, one)
    assert "there is no run directory" in refused(one, tmp_path / "none")
    assert "plain name" in refused(one, folder / "one-seed1", flags=["--name", "a/b"])
    frame.iloc[::-1].to_csv(tmp_path / "fine.csv", index=False)
    shutil.copytree(tmp_path / "other-classes", tmp_path / "copy")
    said = refused(tmp_path / "other-classes", tmp_path / "copy")
    assert "are not those of its data" in said
    said = refused(forecasting_run.path, flags=["--seeds", "2"])
    assert "expected a run that combines" in said
