"""`gru-serve watch` beside a real server whose log it reads."""

import csv
import json

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gru_serving.__main__ import main
from gru_serving.client import connect
from gru_serving.drift.prediction_logs import Logged
from gru_serving.drift.quantities import Quantities
from gru_serving.drift.reference import Reference
from gru_serving.drift.stability import share_verdict
from gru_serving.drift.text_reader import TextReader
from gru_serving.drift.watch import Watch
from tests.serving.servers import running
from tests.waiting import wait_until

FOREIGN = "Der Film war ganz wunderbar und ich habe viel gelacht"


@pytest.fixture(scope="module")
def held_out(exports):
    return list(exports.runs["one"].test_predictions())


@pytest.fixture(scope="module")
def logged(exports, held_out, tmp_path_factory):
    """Logs of usual requests, and of the same with as many in another language."""
    root = tmp_path_factory.mktemp("watched")
    usual = [row.text for row in held_out]
    for name, strange in (("usual", []), ("strange", [FOREIGN] * len(usual))):
        ask(exports, root / name, [*usual, *strange])
    return root


def ask(exports, logs, texts):
    flags = (
        "--model_name=one",
        f"--model_base_path={exports.root / 'one'}",
        f"--prediction_log_directory={logs}",
        "--prediction_log_sampling_rate=1",
    )
    with running(logs.with_suffix(".log"), *flags) as server:
        with connect(server.rest) as rest, connect(server.grpc) as grpc:
            rest.predict({"text": texts[::2]}, "one")
            grpc.classify([{"text": text} for text in texts[1::2]], "one", signature="classify")
        wait_until(lambda: list(logs.glob("*.tfrecord")))
    return logs


def watch(capsys, *arguments):
    status = main(["watch", *map(str, arguments)])
    return status, capsys.readouterr()


def test_usual_requests_are_stable(exports, logged, held_out, tmp_path, capsys):
    """All held-out rows are asked, so what is counted is what the export counted."""
    metrics = tmp_path / "gru.prom"
    status, said = watch(
        capsys, logged / "usual", "--version", exports.root / "one", "--json", "--metrics", metrics
    )
    assert status == 0, said.err
    found = json.loads(said.out)
    assert found["rows"] == len(held_out)
    assert found["requests"] == 2
    names = {one["name"] for one in found["quantities"]}
    assert names == {"label", "scores: highest", "text: words", "text: unknown words"}
    for one in found["quantities"]:
        assert one["stability_index"] < 1e-3, one
        assert one["verdict"] == "stable"
    samples = {
        (sample.name, sample.labels.get("quantity")): sample.value
        for family in text_string_to_metric_families(metrics.read_text())
        for sample in family.samples
    }
    assert samples["gru_watch:rows", None] == len(held_out)
    assert samples["gru_watch:stability_index", "label"] < 1e-3


def test_another_language_is_noticed_and_offered_for_labelling(exports, logged, tmp_path, capsys):
    table = tmp_path / "next.csv"
    status, said = watch(
        capsys, logged / "strange", "--version", exports.version("one"), "--label-next", table
    )
    assert status == 1
    (line,) = [line for line in said.out.splitlines() if line.endswith("shifted")
               and "unknown" in line]  # fmt: skip
    assert "text: unknown" in line
    rows = list(csv.DictReader(table.read_text().splitlines()))
    reasons = {row["text"]: row["reason"] for row in rows}
    assert f"texts worth labelling: {len(rows)}, in {table}" in said.out
    assert FOREIGN in reasons
    assert all(row["label"] == "" for row in rows)
    assert len(rows) == len(reasons)  # each text once, however often it was asked


def test_no_request_in_the_hours_asked_for(exports, logged, capsys):
    version = exports.version("one")
    status, said = watch(capsys, logged / "usual", "--version", version, "--hours", "1e-6")
    assert status == 0
    assert "no logged request of the last 1e-06 hours has" in said.out


def test_few_windows_far_from_all_that_were_known(tmp_path):
    """Two of 66 do not move the index; they are counted."""
    version = tmp_path / "1"
    (version / "assets.extra").mkdir(parents=True)
    columns = {"history": ["load"], "forecast": ["load"]}
    rng = np.random.default_rng(0)
    windows = rng.normal(100, 5, (64, 24, 1))
    known = Quantities(TextReader(), columns)({"history": windows}, {"forecast": windows})
    Reference.of(known, columns).write(version)
    logged = [
        Logged("m", 1, 1_700_000_000, {"history": one}, {"forecast": one})
        for one in (windows, windows[:2] + 300)
    ]
    watch = Watch(version)
    watch.add(logged)
    report = watch.report()
    found = {one.name: one for one in report.findings}
    assert report.rows == 66
    assert report.verdict == "stable"
    assert found["history of load: level"].far_outside == 2
    assert found["forecast of load"].far_outside == 2
    assert found["history of load: spread"].far_outside == 0


@pytest.mark.parametrize(
    ("strange", "verdict"), [(0, "stable"), (40, "stable"), (100, "moved"), (300, "shifted")]
)
def test_a_group_that_moves_no_index_counts_by_its_share(tmp_path, strange, verdict):
    """A ninth of the rows beyond what 99 % of the held-out ones were: the index is below 0.1."""
    version = tmp_path / "1"
    (version / "assets.extra").mkdir(parents=True)
    rng = np.random.default_rng(1)
    known, usual, others = (rng.normal(100, 5, (rows, 24, 1)) for rows in (2000, 2386, 300))
    quantities = Quantities(TextReader(), {"history": ["load"]})
    Reference.of(quantities({"history": known}, {}), {"history": ["load"]}).write(version)
    watch = Watch(version)
    for rows in (usual, others[:strange] + 6):  # the levels' deviation is about 1
        watch.add([Logged("m", 1, 1_700_000_000, {"history": rows}, {})])
    report = watch.report()
    (level,) = (one for one in report.findings if one.name.endswith("level"))
    assert level.stability.verdict == "stable"
    assert (level.verdict, report.verdict) == (verdict, verdict)
    assert level.outside == pytest.approx(strange / (2386 + strange) + 0.02, abs=0.01)


def test_few_rows_outside_may_be_chance():
    assert share_verdict(1, 5, 2000) == "stable"
    assert share_verdict(60, 300, 2000) == "shifted"


@pytest.mark.slow
def test_golden_requests_are_no_traffic(exports, tmp_path, capsys):
    """What `verify --url` asks is logged, and is the hardest rows of the held-out ones."""
    logs = tmp_path / "logs"
    flags = (
        "--model_name=one",
        f"--model_base_path={exports.root / 'one'}",
        f"--prediction_log_directory={logs}",
        "--prediction_log_sampling_rate=1",
    )
    version = exports.version("one")
    with running(tmp_path / "log", *flags) as server:
        for url in (server.rest, server.grpc):
            assert main(["verify", str(version), "--url", url, "--model", "one"]) == 0
        with connect(server.rest) as client:
            client.predict({"text": ["a fine film", "dull"]}, "one")
        wait_until(lambda: list(logs.glob("*.tfrecord")))
    capsys.readouterr()
    found = json.loads(watch(capsys, logs, "--version", version, "--json")[1].out)
    assert (found["rows"], found["requests"]) == (2, 1)
    assert found["golden_requests"] > 1
    _, said = watch(capsys, logs, "--version", version)
    assert "golden requests, as gru-serve verify" in said.out


def test_outcomes_give_the_accuracy(exports, logged, held_out, tmp_path, capsys):
    """Of the first 40 rows the labels are known; the run's own predictions say who was right."""
    known = held_out[:40]
    table = tmp_path / "outcomes.jsonl"
    table.write_text(
        "".join(json.dumps({"text": row.text, "label": row.label}) + "\n" for row in known)
    )
    unique = {row.text: row.label == row.predicted for row in known}
    _, said = watch(
        capsys, logged / "usual", "--version", exports.version("one"), "--json",
        "--outcomes", table,
    )  # fmt: skip
    accuracy = json.loads(said.out)["accuracy"]
    assert accuracy["rows"] == len(unique)
    assert accuracy["right"] == sum(unique.values())
    assert accuracy["low"] < accuracy["share"] < accuracy["high"] or accuracy["share"] == 1


def test_wrong_arguments(exports, logged, tmp_path, capsys):
    version = exports.version("one")
    table = tmp_path / "no.csv"
    table.write_text("words,kind\na,b\n")
    cases = [
        ([tmp_path / "no", "--version", version], "expected a prediction log"),
        ([logged / "usual", "--version", tmp_path], "expected a version"),
        ([logged / "usual", "--version", version, "--rows", "0"], "--rows: expected at least 1"),
        ([logged / "usual", "--version", version, "--outcomes", table], "expected a column called"),
        (
            [logged / "usual", "--version", version, "--outcomes", tmp_path / "x.csv"],
            "no such file",
        ),
    ]
    for arguments, message in cases:
        status, said = watch(capsys, *arguments)
        assert status == 2
        assert message in said.err, said.err


def test_other_models_and_old_requests_are_left_out(exports, logged, capsys):
    asked = [logged / "usual", "--version", exports.version("one"), "--json"]
    status, said = watch(capsys, *asked, "--hours", "0.0000001")
    assert (status, json.loads(said.out)["rows"]) == (0, 0)
    status, said = watch(capsys, *asked, "--model", "another")
    assert status == 2
    assert "--model: expected one of ['one']" in said.err
