"""`gru-train predict`: from a file to a file, with the answers of the run's model."""

import csv
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gru_training.__main__ import main
from gru_training.predict import RunScorer
from gru_training.scoring.engine import score_table
from gru_training.sentiment.task import TASK
from gru_training.task import TASKS
from tests.ctrl_c import WITH_CTRL_C
from tests.training.fresh_process import REPOSITORY, in_fresh_process
from tests.waiting import wait_until


def predict(run, data, output, *more):
    return main(["predict", str(run), "--data", str(data), "--output", str(output), *more])


def write(path, texts, column="body"):
    with path.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines).writerows([["id", column], *enumerate(texts)])
    return path


@pytest.fixture
def texts(tiny_run):
    return [*(row.text for row in tiny_run.test_predictions()), "", 'a, b\n"c"', "long " * 500]


def test_a_file_gets_the_answers_of_the_model(tiny_run, tmp_path, texts, capsys):
    data = write(tmp_path / "in.csv", texts)
    output = tmp_path / "out.parquet"
    assert predict(tiny_run.path, data, output, "--text-column", "body") == 0
    table = pq.read_table(output)
    assert table.column_names == ["id", "body", "label", "probability", *tiny_run.classes]
    assert table["id"].to_pylist() == list(range(len(texts)))
    assert table["body"].to_pylist() == texts
    expected = score_table(TASK.scorer(tiny_run), pa.table({"text": texts}))
    assert table.select(expected.column_names).equals(expected)
    said = capsys.readouterr().out
    assert f"{len(texts)} rows; " in said
    assert f"output  {output}" in said
    assert [path.name for path in tmp_path.iterdir() if path.name[0] == "."] == []


@pytest.mark.parametrize(
    "trained",
    [
        {"data": {"data": "in.csv", "text_column": "Title"}},
        {"given": {"text": "Title"}},
        {"columns": {"text": "Title"}},
    ],
)
def test_the_column_of_the_training_is_read_though_another_has_a_usual_name(
    tiny_run, tmp_path, trained
):
    run = Path(shutil.copytree(tiny_run.path, tmp_path / "run"))
    config = json.loads((run / "config.json").read_text())
    config = {**config, **trained, "data": {**config["data"], **trained.get("data", {})}}
    (run / "config.json").write_text(json.dumps(config))
    sizes = json.loads((run / "manifest.json").read_text())
    sizes["config.json"] = (run / "config.json").stat().st_size
    (run / "manifest.json").write_text(json.dumps(sizes))
    frame = pd.DataFrame({"text": ["a bad film"], "Title": ["a good film"]})
    frame.to_csv(tmp_path / "in.csv", index=False)
    assert predict(run, tmp_path / "in.csv", tmp_path / "out.csv") == 0
    probability = pd.read_csv(tmp_path / "out.csv")["probability"].item()
    expected = score_table(TASK.scorer(tiny_run), pa.table({"text": ["a good film"]}))
    assert probability == pytest.approx(expected["probability"][0].as_py(), abs=1e-5)
    assert RunScorer(run)(frame)["probability"].item() == pytest.approx(probability, abs=1e-5)
    given = RunScorer(run, text="text")(frame)["probability"].item()
    assert given != pytest.approx(probability, abs=1e-5)


def test_a_column_called_as_an_answer_is_kept_under_another_name(tiny_run, tmp_path):
    data = tmp_path / "in.jsonl"
    data.write_text(json.dumps({"text": "good", "label": "known", "nr": 1}) + "\n")
    assert predict(tiny_run.path, data, tmp_path / "out.jsonl", "--keep", "nr,label") == 0
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert list(row) == ["nr", "input_label", "label", "probability", *tiny_run.classes]
    assert row["input_label"] == "known"


def test_what_cannot_work_is_said_before_tensorflow_is_loaded(tiny_run, tmp_path):
    data, bad = write(tmp_path / "in.csv", ["good"]), tmp_path / "bad.csv"
    bad.write_text("id,body\n1,good\n2\n")
    cases = [
        ({"run": "none"}, "there is no run directory none"),
        ({"--text-column": "text"}, "in.csv has no column 'text'; its columns are id, body"),
        ({"--data": bad}, "bad.csv, line 3: expected 2 cells as in the header, got 1"),
        ({"--output": "out.doc"}, "--output out.doc: expected a file name ending in .csv"),
        ({"--keep": "nr"}, f"--keep: {data} has no column 'nr'"),
    ]
    usual = {"--data": data, "--output": tmp_path / "out.csv", "--text-column": "body"}
    commands = []
    for change, _ in cases:
        options = {**usual, **change}
        words = [options.pop("run", tiny_run.path), *(w for pair in options.items() for w in pair)]
        commands.append(["predict", *map(str, words)])
    heavy = {"tensorflow", "keras", "pandas", "matplotlib", "sklearn", "scipy"}
    ended, imported = in_fresh_process(*commands, heavy=heavy)
    assert not imported
    for (status, _, errors), (_, message) in zip(ended, cases, strict=True):
        assert status == 2
        assert message in errors
        assert errors.count("\n") == 1
        assert errors.startswith("gru-train: error: ")


def test_numbers_are_read_as_texts_and_other_values_refused(tiny_run, tmp_path, capsys):
    data = tmp_path / "in.jsonl"
    data.write_text('{"text": 5}\n{"text": 7}\n')
    assert predict(tiny_run.path, data, tmp_path / "out.csv") == 0
    data.write_text('{"text": true}\n')
    assert predict(tiny_run.path, data, tmp_path / "other.csv") == 2
    assert "column 'text': expected texts, got bool" in capsys.readouterr().err


def test_a_forecaster_answers_no_rows(forecasting_run, tmp_path, capsys):
    data = write(tmp_path / "in.csv", ["good"])
    assert predict(forecasting_run.path, data, tmp_path / "out.csv") == 2
    assert "this one reads a series" in capsys.readouterr().err


@pytest.mark.long
def test_killed_and_run_again_it_gives_the_same_file(tiny_run, tmp_path, texts):
    data = write(tmp_path / "in.csv", [f"{text} {i}" for i in range(1500) for text in texts])
    whole, killed = tmp_path / "whole.csv", tmp_path / "killed.csv"
    assert predict(tiny_run.path, data, whole, "--text-column", "body", "--keep", "id") == 0
    command = [*WITH_CTRL_C, "-m", "gru_training", "predict", str(tiny_run.path),
               "--data", str(data), "--output", str(killed), "--text-column", "body",
               "--keep", "id"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    for ending, status in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
        begun = len(list(tmp_path.glob(".killed.csv.partial-*/*.parquet")))
        with subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as process:
            wait_until(lambda: len(list(tmp_path.glob(".killed.csv.partial-*/*.parquet"))) > begun)  # noqa: B023
            process.send_signal(ending)
            said = process.stderr.read()
        assert process.returncode == status, said
        assert not killed.exists()
    assert "Run the same command again to continue" in said
    assert predict(tiny_run.path, data, killed, "--text-column", "body", "--keep", "id") == 0
    assert killed.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_a_new_task_gets_it_the_same_way(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(TASKS, "tagging", "tests.training.toy_task.answering")
    assert main(["tagging", "--runs-dir", str(tmp_path), "--name", "toy", "--epochs", "1"]) == 0
    data = tmp_path / "in.parquet"
    rows = [[5, 3, 4], [1], [9, 9, 9, 9, 2]]
    pq.write_table(pa.table({"digits": rows, "tags": ["a", "b", "c"]}), data)
    assert predict(tmp_path / "toy", data, tmp_path / "out.parquet") == 0
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["digits", "input_tags", "tags", "sure"]
    assert [len(tags) for tags in table["tags"].to_pylist()] == [3, 1, 5]
    assert predict(tmp_path / "toy", data, tmp_path / "no.csv", "--text-column", "digits") == 2
    assert "--text-column: expected a model that reads a text;" in capsys.readouterr().err
    pq.write_table(pa.table({"digits": [[1], []]}), data)
    assert predict(tmp_path / "toy", data, tmp_path / "no.csv") == 2
    assert f"{data}, row 1, column 'digits': expected digits, got []" in capsys.readouterr().err


def test_help_tells_of_columns_and_gives_examples(capsys):
    assert main(["predict", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for part in ("--text-column", "input_", "class_", "gru-train predict runs/tickets --data"):
        assert part in said
