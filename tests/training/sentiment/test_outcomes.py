import csv
import json
import shutil

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss

from gru_training.errors import DataError, RunDirectoryError
from gru_training.sentiment.data import load_data
from gru_training.sentiment.outcomes import held_out_outcomes
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.task import TASK
from tests.training.conftest import tiny_config


def values(answers):
    return {each.name: each.value for each in answers.measures}


def write_rows(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


def test_held_out_rows_are_scored_as_in_the_report(tiny_run):
    outcomes = held_out_outcomes(tiny_run, tiny_run)
    rows = list(tiny_run.test_predictions())
    labels, predicted = ([getattr(row, name) for row in rows] for name in ("label", "predicted"))
    found = values(outcomes.model)
    assert found["accuracy"] == tiny_run.metrics["model"]["test"]["accuracy"]
    assert found["macro F1"] == pytest.approx(f1_score(labels, predicted, average="macro"))
    scores = np.array([row.scores for row in rows], np.float32)
    expected = log_loss(labels, scores, labels=list(tiny_run.classes))
    assert found["log loss"] == pytest.approx(expected, rel=1e-6)
    floors = {name: values(each)["accuracy"] for name, each in outcomes.baselines.items()}
    assert floors == {
        name: floor["test_accuracy"] for name, floor in tiny_run.metrics["baselines"].items()
    }
    assert len(set(outcomes.keys)) == len(rows)


def test_a_file_with_the_held_out_rows_gives_the_same(tiny_run, tmp_path):
    rows = [(row.text, row.label) for row in tiny_run.test_predictions()]
    path = write_rows(tmp_path / "rows.csv", rows)
    of_file = TASK.outcomes(tiny_run, path, tiny_run)
    held_out = held_out_outcomes(tiny_run, tiny_run)
    assert of_file.keys.tolist() == held_out.keys.tolist()
    assert values(of_file.model) == pytest.approx(values(held_out.model), rel=1e-5)
    np.testing.assert_array_equal(of_file.model.right, held_out.model.right)
    (always,) = of_file.baselines.values()
    shares = np.unique([label for _, label in rows], return_counts=True)[1] / len(rows)
    assert values(always)["accuracy"] == pytest.approx(shares.max())
    assert of_file.notes == ()


def test_classes_in_another_order_are_the_same_classes(tiny_run, tmp_path):
    turned = SentimentRun.open(shutil.copytree(tiny_run.path, tmp_path / "turned"))
    (turned.path / "classes.json").write_text(json.dumps(list(tiny_run.classes[::-1])))
    found = held_out_outcomes(tiny_run, turned)
    assert values(found.model) == pytest.approx(values(held_out_outcomes(tiny_run, tiny_run).model))
    assert {name: values(each)["accuracy"] for name, each in found.baselines.items()} == {
        name: floor["test_accuracy"] for name, floor in tiny_run.metrics["baselines"].items()
    }


def test_other_classes_are_refused(tiny_run, tmp_path):
    other = SentimentRun.open(shutil.copytree(tiny_run.path, tmp_path / "other"))
    (other.path / "classes.json").write_text('["bad", "good"]')
    with pytest.raises(RunDirectoryError, match="expected the classes negative, positive of"):
        held_out_outcomes(other, tiny_run)


def test_labels_of_a_file_may_be_spelled_otherwise(tiny_run, tmp_path):
    rows = [(row.text, row.label) for row in tiny_run.test_predictions()]
    shouted = [(text, f"{label.upper()} ") for text, label in rows]
    one, other = (
        TASK.outcomes(tiny_run, write_rows(tmp_path / f"{name}.csv", of), tiny_run).model
        for name, of in (("rows", rows), ("shouted", shouted))
    )
    assert values(one) == values(other)


def test_unknown_labels_are_named(tiny_run, tmp_path):
    path = write_rows(tmp_path / "rows.csv", [("fine", "positive"), ("so so", "neutral")])
    with pytest.raises(DataError, match=r"expected the labels negative, positive of .*'neutral'"):
        TASK.outcomes(tiny_run, path, tiny_run)


def test_rows_without_a_label_are_named_without_a_flag_that_compare_lacks(tiny_run, tmp_path):
    path = write_rows(tmp_path / "rows.csv", [("fine", "positive"), ("so so", "")])
    with pytest.raises(DataError, match=r"line 3: the label is missing \(column 'label'\)$"):
        TASK.outcomes(tiny_run, path, tiny_run)


def test_the_columns_of_the_training_are_read_though_others_have_usual_names(tiny_run, tmp_path):
    run = SentimentRun.open(shutil.copytree(tiny_run.path, tmp_path / "run"))
    config = json.loads((run.path / "config.json").read_text())
    config["columns"] = {"text": "sentence", "label": "score"}
    (run.path / "config.json").write_text(json.dumps(config))
    sizes = json.loads((run.path / "manifest.json").read_text())
    sizes["config.json"] = (run.path / "config.json").stat().st_size
    (run.path / "manifest.json").write_text(json.dumps(sizes))
    rows = [(row.text, row.label) for row in run.test_predictions()]
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [
                ("text", "label", "sentence", "score"),
                *((f"ticket {n}", rows[0][1], *row) for n, row in enumerate(rows)),
            ]
        )
    found = TASK.outcomes(SentimentRun.open(run.path), path, tiny_run)
    assert values(found.model) == pytest.approx(
        values(held_out_outcomes(tiny_run, tiny_run).model), rel=1e-5
    )


def test_rows_that_stand_there_twice_have_keys_of_their_own(tiny_run, tmp_path):
    path = write_rows(tmp_path / "rows.csv", [("fine", "positive")] * 3 + [("fine", "negative")])
    keys = TASK.outcomes(tiny_run, path, tiny_run).keys
    assert len(set(keys)) == 4


def test_texts_that_a_run_has_learned_from_are_counted_whatever_their_file(tiny_run, tmp_path):
    learned = load_data(tiny_run.config).train.texts[:3]
    rows = [(text, "positive") for text in (*learned, "never read before")]
    (note,) = TASK.outcomes(tiny_run, write_rows(tmp_path / "a.csv", rows), tiny_run).notes
    assert note == "has learned from 3 of these 4 texts, so that it knows some of the answers"
    new = write_rows(tmp_path / "b.csv", rows[3:])
    assert TASK.outcomes(tiny_run, new, tiny_run).notes == ()


@pytest.mark.slow
def test_another_seed_holds_out_other_rows(tiny_run, tmp_path):
    from gru_training.sentiment.pipeline import train_sentiment

    other = train_sentiment(tiny_config(tmp_path, seed=1))
    first, second = (held_out_outcomes(run, tiny_run) for run in (tiny_run, other))
    assert not np.isin(first.keys, second.keys).all()
