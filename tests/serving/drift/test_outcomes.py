"""Outcomes beside logged answers: classes, several labels, and logs of several models."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from statsmodels.stats.proportion import proportion_confint

from gru_serving.commands.files.outcome_table import read_outcomes
from gru_serving.drift.outcomes import Outcomes
from gru_serving.drift.prediction_logs import Logged
from gru_serving.drift.quantities import Quantities
from gru_serving.drift.reference import Reference
from gru_serving.drift.text_reader import TextReader
from gru_serving.drift.watch import Watch
from gru_serving.errors import InvalidArgument
from gru_training.sentiment.evaluation.pictures import wilson_interval

TEXTS = ["late parcel", "app is broken", "broken and late", "all is well"]
LABELS = [["delivery", ""], ["bug", ""], ["bug", "delivery"], ["", ""]]


def objects(values):
    return np.array(values, object)


def encoded(rows):
    return objects([[name.encode() for name in row] for row in rows])


def logged(labels=LABELS, model="tickets"):
    inputs = {"text": objects([text.encode() for text in TEXTS])}
    return Logged(model, 1, 1_700_000_000, inputs, {"labels": encoded(labels)})


@pytest.fixture
def version(tmp_path):
    made = tmp_path / "1"
    (made / "assets.extra").mkdir(parents=True)
    request = logged()
    known = Quantities(TextReader())(request.inputs, request.outputs)
    Reference.of(known, {}).write(made)
    return made


def test_several_labels_are_right_where_all_are(version, tmp_path):
    """The second of two labels counts, their order does not, and an answer of none can be right."""
    rows = [["delivery"], ["bug", "delivery"], ["delivery", "bug"], []]
    table = tmp_path / "true.jsonl"
    table.write_text(
        "".join(
            json.dumps({"text": text, "label": names}) + "\n"
            for text, names in zip(TEXTS, rows, strict=True)
        )
    )
    watch = Watch(version, read_outcomes(table))
    watch.add([logged()])
    found = watch.report().accuracy
    assert (found.right, found.rows) == (3, 4)


@pytest.mark.parametrize("form", ["jsonl", "parquet", "csv", "separated"])
def test_labels_in_files(tmp_path, form):
    path, separator = tmp_path / f"true.{form}", None
    if form == "jsonl":
        path.write_text('{"text": "a", "label": ["x", "y"]}\n{"text": "b", "label": ["z"]}\n')
    elif form == "parquet":
        pq.write_table(pa.table({"text": ["a", "b"], "label": [["x", "y"], ["z"]]}), path)
    else:
        path, separator = tmp_path / "true.csv", None if form == "csv" else "|"
        cell = '"[""x"", ""y""]"' if form == "csv" else "x| y"
        path.write_text(f"text,label\na,{cell}\nb,z\n")
    assert read_outcomes(path, separator) == {"a": frozenset("xy"), "b": frozenset("z")}


def test_logs_of_several_models_are_told_apart(version):
    watch = Watch(version)
    watch.add([logged(), logged(model="reviews")])
    with pytest.raises(InvalidArgument, match=r"got those of reviews, tickets; .* --model"):
        watch.report()
    one = Watch(version, model="tickets")
    one.add([logged(), logged(model="reviews"), logged()])
    assert one.report().requests == 2


@pytest.mark.parametrize(("right", "rows"), [(0, 5), (5, 5), (3, 7), (812, 1000)])
def test_the_interval_is_wilsons(right, rows):
    outcomes = Outcomes({str(row): frozenset({"yes"}) for row in range(rows)})
    outcomes.add(
        [str(row) for row in range(rows)],
        [("yes",) if row < right else ("no",) for row in range(rows)],
    )
    expected = proportion_confint(right, rows, method="wilson")
    found = outcomes.accuracy()
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)
    assert wilson_interval(right / rows, rows) == pytest.approx(expected, abs=1e-9)
