"""A classifier's scorer gives the answers of its exported model."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from gru_training.scoring.class_columns import class_columns
from gru_training.scoring.engine import score_table
from gru_training.sentiment.served.servable import SentimentServable
from gru_training.sentiment.task import TASK


@pytest.mark.slow
def test_answers_are_those_of_the_exported_model(tiny_run):
    texts = [row.text for row in tiny_run.test_predictions()]
    texts += ["", "  ", "word", "never heard of", "good " * 900, "\x00bytes", "ÄÖ 中文 n't"]
    answers = score_table(TASK.scorer(tiny_run), pa.table({"body": texts}), {"text": "body"})
    served = SentimentServable(tiny_run).signatures["serving_default"](tf.constant(texts))
    assert answers["label"].to_pylist() == [label.decode() for label in served["label"].numpy()]
    for number, name in enumerate(tiny_run.classes):
        np.testing.assert_allclose(answers[name], served["scores"][:, number], atol=1e-6)
    np.testing.assert_allclose(answers["probability"], served["probability"], atol=1e-6)
    assert answers.schema.names == ["label", "probability", *tiny_run.classes]


def test_a_missing_text_is_an_empty_one(tiny_run):
    table = pa.table({"text": pa.array(["", None], pa.large_string())})
    first, second = score_table(TASK.scorer(tiny_run), table).to_pylist()
    assert first == second


def test_an_answer_does_not_depend_on_the_other_rows(tiny_run):
    scorer = TASK.scorer(tiny_run)
    texts = [row.text for row in tiny_run.test_predictions()][:20]
    together = score_table(scorer, pa.table({"text": [*texts, "long " * 300]}))
    alone = [score_table(scorer, pa.table({"text": [text]})) for text in texts]
    for name in tiny_run.classes:
        expected = [table[name][0].as_py() for table in alone]
        np.testing.assert_allclose(together[name].to_numpy()[:20], expected, atol=1e-6)


def test_the_identity_follows_from_the_model(tiny_run):
    scorer = TASK.scorer(tiny_run)
    assert scorer.identity == TASK.scorer(tiny_run).identity
    assert len(scorer.identity["run"]) == 64


def test_class_columns():
    assert class_columns(("no", "yes")) == ["no", "yes"]
    assert class_columns(("label", "class_label", "x")) == ["class_class_label", "class_label", "x"]
    assert class_columns(("probability",)) == ["class_probability"]
