"""Runs that answer several labels, numbers, and unequal classes: trained, scored, exported."""

import csv
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf
from sklearn.metrics import f1_score

from gru_training import TextClassifier, TextRegressor
from gru_training.errors import ConfigError, DataError
from gru_training.runs.report_page import page_data
from gru_training.scoring.engine import score_table
from gru_training.sentiment.config import DecisionConfig, SentimentDataConfig
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.served.keras_model import KerasScorer, build_text_model
from gru_training.sentiment.served.servable import SentimentServable
from tests.training.sentiment.target_runs import (
    WORDS,
    config,
    labelled,
    rated,
    target_run,
    text,
)

TINY = {"epochs": 3, "units": 6, "embedding_size": 6, "batch_size": 16, "learning_rate": 0.02}


@pytest.fixture(scope="module")
def labels_run():
    return target_run("labels")


@pytest.fixture(scope="module")
def number_run():
    return target_run("number")


@pytest.fixture(scope="module")
def servables(labels_run, number_run):
    return {run.kind: SentimentServable(run) for run in (labels_run, number_run)}


@pytest.mark.slow
def test_several_labels_are_learned_and_measured(labels_run):
    metrics, rows = labels_run.metrics, list(labels_run.test_predictions())
    assert labels_run.kind == "labels"
    names = labels_run.classes
    truth = np.array([[name in row.label for name in names] for row in rows])
    said = np.array([[name in row.predicted for name in names] for row in rows])
    test = metrics["model"]["test"]
    assert test["micro_f1"] == pytest.approx(f1_score(truth, said, average="micro"))
    assert test["macro_f1"] == pytest.approx(f1_score(truth, said, average="macro"))
    assert test["exact_match"] == np.mean((truth == said).all(axis=1))
    assert test["cardinality"] == said.sum(axis=1).mean()
    assert test["micro_f1"] > 0.9  # every label has words of its own
    report = (labels_run.path / "report.md").read_text()
    assert f"| **model** | {test['micro_f1']:.2%} | {test['macro_f1']:.2%} |" in report
    of_100 = (
        f"**Of 100 new texts about {100 * test['exact_match']:.0f} get all their labels and no "
    )
    assert report.split("\n")[2].startswith(of_100)
    thresholds = np.array(labels_run.decision.thresholds, np.float32)
    scores = np.array([row.scores for row in rows], np.float32)
    np.testing.assert_array_equal(scores >= thresholds, said)


def test_numbers_are_estimated_with_intervals(number_run):
    report = (number_run.path / "report.md").read_text()
    floors = number_run.metrics["baselines"]
    best = min(floors, key=lambda name: floors[name]["validation_mae"])
    said = f"{best}, the best simple model by the validation rows, gets "
    said += f"{floors[best]['test_mae']:.3g}"
    assert said in report.split("\n")[2]
    rows = list(number_run.test_predictions())
    values, said = (np.array([getattr(row, key) for row in rows]) for key in ("label", "predicted"))
    test = number_run.metrics["model"]["test"]
    assert test["mae"] == pytest.approx(np.mean(np.abs(values - said)), rel=1e-5)
    assert test["r2"] == pytest.approx(
        1 - np.sum((values - said) ** 2) / np.sum((values - values.mean()) ** 2), rel=1e-4
    )
    assert test["r2"] > 0.8
    median = number_run.metrics["baselines"]["always the median"]
    assert test["mae"] < 0.5 * median["test_mae"]
    bounds = np.array([row.scores for row in rows])
    assert (np.diff(bounds, axis=1) >= 0).all()
    inside = (values >= bounds[:, 0]) & (values <= bounds[:, 3])
    assert number_run.metrics["coverage"]["95 %"] == np.mean(inside)
    assert inside.mean() > 0.8


@pytest.mark.slow
def test_files_are_scored_as_the_run_says(labels_run, number_run):
    rows = list(labels_run.test_predictions())
    table = pa.table({"text": [row.text for row in rows]})
    answers = score_table(KerasScorer(labels_run), table)
    assert answers.column_names == ["labels", *labels_run.classes]
    assert [sorted(names) for names in answers["labels"].to_pylist()] == [
        row.predicted for row in rows
    ]
    rows = list(number_run.test_predictions())
    answers = score_table(KerasScorer(number_run), pa.table({"text": [r.text for r in rows]}))
    assert answers.column_names == ["value", "lower_95", "lower_80", "upper_80", "upper_95"]
    np.testing.assert_allclose(answers["value"], [row.predicted for row in rows], rtol=1e-4)
    np.testing.assert_allclose(answers["lower_80"], [row.scores[1] for row in rows], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["labels", "number"])
def test_exports_answer_as_the_keras_model_of_texts(kind, labels_run, number_run, servables):
    run = {"labels": labels_run, "number": number_run}[kind]
    servable = servables[kind]
    texts = [*[row.text for row in run.test_predictions()][:5], ""]
    answer = servable.signatures["serving_default"](text=np.array(texts, object).astype("S"))
    expected = np.asarray(build_text_model(run)(np.array(texts)))
    if kind == "labels":
        assert sorted(servable.signatures) == [
            "attribution",
            "classify",
            "gates",
            "serving_default",
        ]
        np.testing.assert_allclose(answer["scores"], expected, atol=1e-5)
        for row, scores, least in zip(
            answer["labels"].numpy(), expected, answer["thresholds"].numpy(), strict=True
        ):
            applying = [k for k in np.argsort(-scores) if scores[k] >= least[k]]
            names = [run.classes[k].encode() for k in applying]
            assert row.tolist() == names + [b""] * (len(run.classes) - len(names))
    else:
        assert sorted(servable.signatures) == ["attribution", "gates", "regress", "serving_default"]
        np.testing.assert_allclose(answer["value"], expected[:, 0], rtol=1e-4)
        np.testing.assert_allclose(
            answer["quantiles"] - answer["value"][:, np.newaxis],
            np.tile(run.scale.offsets, (len(texts), 1)),
            rtol=1e-3, atol=1e-3,
        )  # fmt: skip
    methods = {request.method for request in servable.golden()}
    assert methods == {"predict", "classify" if kind == "labels" else "regress"}


@pytest.mark.slow
def test_attributions_explain_labels_and_numbers(labels_run, number_run, servables):
    rows = [row for row in labels_run.test_predictions() if "bug" in row.predicted][:4]
    texts = tf.constant([row.text for row in rows])
    attribution = servables["labels"].signatures["attribution"]
    answer = attribution(text=texts, label=tf.constant(["bug"] * len(rows)))
    score = np.array([row.scores[labels_run.classes.index("bug")] for row in rows])
    np.testing.assert_allclose(answer["value"], np.log(score / (1 - score)), rtol=1e-3)
    adds_up(answer)
    for tokens, scores in zip(answer["tokens"].numpy(), answer["attribution"].numpy(), strict=True):
        assert tokens[scores.argmax()].decode() in WORDS["bug"].split()
    likeliest = attribution(text=texts, label=tf.constant([""] * len(rows)))["label"].numpy()
    assert [name.decode() for name in likeliest] == [
        max(row.predicted, key=lambda name, row=row: row.scores[labels_run.classes.index(name)])
        for row in rows
    ]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"one of billing, .*got bugs"):
        attribution(text=texts[:1], label=tf.constant(["bugs"]))
    rows = list(number_run.test_predictions())[:4]
    attribution = servables["number"].signatures["attribution"]
    answer = attribution(text=tf.constant([row.text for row in rows]))
    np.testing.assert_allclose(answer["value"], [row.predicted for row in rows], rtol=1e-4)
    adds_up(answer)


def adds_up(answer):
    explained = (answer["value"] - answer["baseline"]).numpy()
    gap = np.abs(answer["attribution"].numpy().sum(axis=1) - explained)
    assert (gap <= 0.02 * np.abs(explained) + 0.02).all()


def test_the_report_of_labels_says_why(labels_run):
    words = labels_run.metrics["deciding_words"]
    for name, known in WORDS.items():
        assert words[name][0] in known.split()
    page = page_data(labels_run.path)["report.html"]
    rows = {row.text: row for row in labels_run.test_predictions()}
    wrong = [
        (text, name) for text, row in rows.items() for name in set(row.label) ^ set(row.predicted)
    ]
    assert len(page) == min(12, len(wrong))
    assert {each["answer"].split()[0] for each in page} <= {name for _, name in wrong}
    html = (labels_run.path / "report.html").read_text("utf-8")
    assert 'data-picture="report.html"' in html


def test_what_is_not_a_number_is_not_compared(number_run):
    regressor = TextRegressor.load(number_run.path)
    for compare in (regressor.evaluate, regressor.score):
        with pytest.raises(DataError, match=r"row 1: expected a number .*, got a missing one"):
            compare(["good", "bad"], [1, np.nan])
        with pytest.raises(DataError, match="expected a number for each text, got '1,5'"):
            compare(["good", "bad"], ["1,5", "2"])


@pytest.mark.long
def test_estimators_take_and_give_lists_and_numbers(tmp_path):
    rows = labelled(200, seed=4)
    frame = pd.DataFrame(rows)
    classifier = TextClassifier(**TINY, runs_dir=tmp_path, name="labels").fit(frame)
    answers = classifier.predict_frame(frame["text"].head(20))
    assert list(answers.columns) == ["labels", *sorted(WORDS)]
    measured = classifier.evaluate(frame)
    assert measured["micro_f1"] > 0.8
    exact = [
        set(said) == set(label)
        for said, label in zip(
            classifier.predict_frame(frame)["labels"], frame["label"], strict=True
        )
    ]
    assert classifier.score(frame) == pytest.approx(np.mean(exact))
    flags = pd.DataFrame({"text": frame["text"]})
    for name in WORDS:
        flags[name] = [int(name in label) for label in frame["label"]]
    other = TextClassifier(**TINY, runs_dir=tmp_path, name="columns")
    other.fit(flags, label=list(WORDS))
    for one, two in zip(
        classifier.run_.load_model().get_weights(), other.run_.load_model().get_weights(),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(one, two)
    assert other.evaluate(flags) == measured
    regressor = TextRegressor(**TINY, runs_dir=tmp_path, name="stars").fit(rated(), label="stars")
    assert next(iter(regressor.predict_frame(["good good"]).columns)) == "value"
    assert regressor.score(rated(60, seed=7)) > 0.7
    assert TextRegressor.load(tmp_path / "stars").get_params()["target_type"] == "number"
    with pytest.raises(ConfigError, match="numbers are estimated by TextRegressor"):
        TextClassifier(target_type="number")


@pytest.mark.slow
def test_unequal_classes_are_chosen_and_answered_as_asked(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(300):
            name = list(WORDS)[0 if number % 12 else 1 + number % 24 // 12]
            writer.writerow([text(rng, rng.choice(WORDS[name].split(), 2), number), name])
    costs = tmp_path / "costs.json"
    costs.write_text(json.dumps({"bug": {"billing": 50, "delivery": 50}}))
    run = train_sentiment(
        config(
            tmp_path,
            "unequal",
            SentimentDataConfig(data=path),
            training={"metric": "macro_f1", "class_weight": "balanced"},
            decision=DecisionConfig(costs=costs, target_precision=("billing=0.9",)),
        )
    )
    assert run.metrics["metric"] == "macro_f1"
    best = run.metrics["best_epoch"] - 1
    found = [record["validation"]["macro_f1"] for record in run.history]
    assert found[best] == max(found)
    rows = list(run.test_predictions())
    scores = np.array([row.scores for row in rows], np.float32)
    answered = [run.classes[k] for k in run.decision.classes(scores)]
    assert answered == [row.predicted for row in rows]
    labels = [row.label for row in rows]
    test = run.metrics["model"]["test"]
    assert test["macro_f1"] == pytest.approx(f1_score(labels, answered, average="macro"))
    # The signature decides as the run does.
    servable = SentimentServable(run)
    texts = np.array([row.text for row in rows], object).astype("S")
    answer = servable.signatures["serving_default"](text=texts)
    assert [label.decode() for label in answer["label"].numpy()] == answered
    picked = scores[np.arange(len(rows)), [run.classes.index(name) for name in answered]]
    np.testing.assert_allclose(answer["probability"], picked, atol=1e-5)
    report = (run.path / "report.md").read_text()
    assert "the least expected cost (`costs=costs.json`)" in report
    assert "*macro average*" in report
    with pytest.raises(ConfigError, match="--costs"):
        train_sentiment(
            config(
                tmp_path,
                "wrong",
                SentimentDataConfig(data=path, target_type="labels"),
                decision=DecisionConfig(costs=costs),
            )
        )
