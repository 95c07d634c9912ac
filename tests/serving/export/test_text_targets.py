"""Models that answer several labels, or a number: exported, and served over both transports."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from gru_serving.__main__ import main
from gru_serving.client import connect
from gru_serving.client.results import Estimate, TextLabels
from gru_serving.export.run import export_run
from tests.made_once import made_once
from tests.serving.servers import models_flag, running
from tests.training.sentiment.target_runs import target_run


@pytest.fixture(scope="module")
def runs():
    return {name: target_run(name) for name in ("labels", "number")}


@pytest.fixture(scope="module")
def models(runs):
    def make(folder):
        for name, run in runs.items():
            export_run(run.path, folder / name)  # verified in a process of its own

    return made_once("exported_targets", make)


@pytest.fixture(scope="module")
def served(models, runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    bases = {name: models / name for name in runs}
    with running(folder / "log", models_flag(folder, bases)) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["rest", "grpc"])
def test_answers_are_those_of_the_runs(served, runs, transport, tmp_path, capsys):
    with connect(getattr(served, transport)) as client:
        rows = list(runs["labels"].test_predictions())
        texts = np.array([row.text.encode() for row in rows], object)
        found = TextLabels.from_outputs(client.predict({"text": texts}, "labels"))
        assert [sorted(each.labels) for each in found] == [row.predicted for row in rows]
        classified = client.classify([{"text": rows[0].text}], "labels", signature="classify")
        assert dict(classified[0]) == pytest.approx(
            dict(zip(runs["labels"].classes, rows[0].scores, strict=True)), abs=1e-5
        )
        rows = list(runs["number"].test_predictions())
        texts = np.array([row.text.encode() for row in rows], object)
        numbers = Estimate.from_outputs(client.predict({"text": texts}, "number"))
        assert [each.value for each in numbers] == pytest.approx(
            [row.predicted for row in rows], rel=1e-4
        )
        np.testing.assert_allclose(
            [each.quantiles for each in numbers], [row.scores for row in rows], rtol=1e-4, atol=1e-3
        )
        (value,) = client.regress([{"text": rows[0].text}], "number", signature="regress")
        assert value == pytest.approx(rows[0].predicted, rel=1e-4)
    _score_a_file(getattr(served, transport), runs, tmp_path)


@pytest.mark.slow
def test_explain_shows_labels_and_numbers(served, runs, capsys):
    for name, run in runs.items():
        row = next(row for row in run.test_predictions() if row.predicted)
        common = ["explain", "--url", served.grpc, "--model", name, row.text]
        assert main([*common, "--output", "json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        expected = row.scores if name == "labels" else [row.predicted]
        np.testing.assert_allclose(shown["scores"][-1], expected, rtol=1e-3, atol=1e-4)
        assert main(common) == 0
        last = capsys.readouterr().out.splitlines()[-1]
        for said in row.predicted if name == "labels" else [f"{row.predicted:.3f}"[:4]]:
            assert said in last
        assert main([*common, "--attribution", "--output", "json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["label"] in (row.predicted if name == "labels" else [""])


def _score_a_file(url, runs, tmp_path):
    for name, run in runs.items():
        rows = list(run.test_predictions())
        data, output = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.parquet"
        data.write_text("".join(json.dumps({"text": row.text}) + "\n" for row in rows))
        arguments = ["--url", url, "--model", name, "--data", str(data), "--output", str(output)]
        assert main(["predict", *arguments, "--keep", ""]) == 0
        table = pq.read_table(output)
        if name == "labels":
            assert table.column_names == ["labels", *run.classes]
            answered = [sorted(each) for each in table["labels"].to_pylist()]
            assert answered == [row.predicted for row in rows]
        else:
            assert table.column_names[:2] == ["value", "lower_95"]
            np.testing.assert_allclose(table["value"], [row.predicted for row in rows], rtol=1e-4)


@pytest.mark.slow
def test_a_diff_of_other_classes_says_so(models, exports, capsys):
    assert main(["diff", str(exports.root / "one"), str(models / "labels")]) == 1
    said = capsys.readouterr().out
    assert "the classes: negative, positive gone, billing, bug, delivery new" in said
    assert "attribution: one version refuses a request of the other: " in said
    assert "positive -> " in said  # the others are compared
