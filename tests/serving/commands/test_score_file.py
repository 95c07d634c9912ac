"""`gru-serve predict --data`: a file scored by a real server, over both transports."""

import csv
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gru_serving.__main__ import main
from tests.ctrl_c import WITH_CTRL_C
from tests.serving.servers import REPOSITORY, running
from tests.training.tables.formats import NAMES
from tests.training.tables.formats import write as write_table
from tests.waiting import wait_until

WORDS = ("good", "bad", "great", "awful", "film", "")


def predict(url, data, output, *more, model="text"):
    return main(["predict", "--url", url, "--model", model, "--data", str(data),
                 "--output", str(output), *more])  # fmt: skip


def write(path, count=3000, column="text"):
    """Texts of one to many words, with the test model's answers."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(count):
        words = rng.choice(WORDS, rng.integers(1, 40) if number % 50 else 2000)
        good, bad = (sum(word in pair for word in words) for pair in (WORDS[:3:2], WORDS[1:4:2]))
        rows.append((number, " ".join(words), good, bad))
    with path.open("w", newline="") as lines:
        csv.writer(lines).writerows([["id", column], *(row[:2] for row in rows)])
    return [row[2:] for row in rows]


def rows_of(path):
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.slow_cases
def test_rows_keep_their_order_and_get_the_columns_of_a_classifier(url, tmp_path, capsys):
    counted = write(tmp_path / "in.csv")
    output = tmp_path / "out.parquet"
    assert predict(url, tmp_path / "in.csv", output, "--keep", "id") == 0
    table = pq.read_table(output)
    assert table.column_names == ["id", "label", "probability", "negative", "positive"]
    assert table["id"].to_pylist() == list(range(3000))
    good, bad = np.array(counted, np.float64).T
    positive = 1 / (1 + np.exp(np.clip(bad - good, -700, 700)))
    np.testing.assert_allclose(table["positive"], positive, atol=1e-6)
    labels = np.where(good > bad, "positive", "negative")
    assert table["label"].to_pylist() == labels.tolist()
    said = capsys.readouterr().out
    assert "model   text version" in said
    assert "3,000 rows; " in said


def test_every_format_of_one_table_gets_the_same_answers(server, tmp_path, capsys):
    rows = [["great film", "é"], ["awful; bad, film", "x"], ['good "bad"', "-"], ["", "y"]]
    answers = {}
    for name in NAMES:
        path = write_table(tmp_path, name, ["text", "note"], rows)
        assert predict(server.rest, path, tmp_path / "out.csv", "--overwrite") == 0, name
        answers[name] = (tmp_path / "out.csv").read_text("utf-8")
    assert answers["comma.csv"].splitlines()[1].startswith("great film,é,positive,")
    assert [name for name in NAMES if answers[name] != answers["comma.csv"]] == []
    assert capsys.readouterr().out.count("read as Windows-1252 (cp1252)") == 1
    windows = tmp_path / "windows.csv"
    spoken = ["--separator", ";", "--encoding", "cp1252", "--overwrite"]
    assert predict(server.rest, windows, tmp_path / "out.csv", *spoken) == 0
    assert "otherwise" not in capsys.readouterr().out
    assert (tmp_path / "out.csv").read_text("utf-8") == answers["comma.csv"]


def test_texts_that_are_empty_or_missing_are_answered(url, tmp_path):
    data = tmp_path / "in.jsonl"
    data.write_text('{"review": "great", "label": 1}\n{"review": null}\n{"review": ""}\n')
    assert predict(url, data, tmp_path / "out.jsonl") == 0
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["positive"] for row in rows[1:]] == [0.5, 0.5]
    assert rows[0]["input_label"] == 1
    assert rows[0]["label"] == "positive"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data", "in.csv"], "--data: expected --output FILE with it"),
        (["--output", "out.csv", "a text"], "--output: expected table or json, or --data FILE"),
        (["--data", "in.csv", "--output", "out.csv", "a text"], "got several"),
        (["--data", "none.csv", "--output", "out.csv"], "none.csv: there is no such file"),
        (["--data", "in.csv", "--output", "out.xls"], "--output out.xls: expected a file name"),
        (["--data", "in.csv", "--output", "out.csv", "--text-column", "body"],
         "--text-column: in.csv has no column 'body'; its columns are id, text"),
        (["--data", "in.csv", "--output", "out.csv", "--in-flight", "0"], "--in-flight: expected"),
        (["--data", "in.csv", "--output", "out.csv", "--model", "affine"],
         "--data: expected a model that takes texts alone; this one takes ['b', 'x']"),
        (["--data", "in.csv", "--output", "out.csv", "--model", "none"], "none"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_in_one_line(
    server, tmp_path, monkeypatch, capsys, arguments, said
):
    write(tmp_path / "in.csv", 20)
    monkeypatch.chdir(tmp_path)
    assert main(["predict", "--url", server.rest, "--model", "text", *arguments]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]


def command(url, folder, **how):
    return subprocess.Popen(
        [*WITH_CTRL_C, "-m", "gru_serving", "predict", "--url", url, "--model", "text",
         "--data", "in.csv", "--output", "out.csv", "--keep", "id"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how,
    )  # fmt: skip


def parts(folder):
    return list(folder.glob(".out.csv.partial-*/*.parquet"))


@pytest.mark.slow
def test_killed_and_interrupted_it_goes_on(url, tmp_path):
    write(tmp_path / "in.csv", 60_000)
    for ending, status in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
        begun = len(parts(tmp_path))
        process = command(url, tmp_path)
        wait_until(lambda: len(parts(tmp_path)) > begun)  # noqa: B023
        process.send_signal(ending)
        said = process.communicate()[1]
        assert process.returncode == status, said
        assert not (tmp_path / "out.csv").exists()
    assert "of 60,000 rows are done. Run the same command again to continue" in said
    done = len(parts(tmp_path))
    process = command(url, tmp_path)
    out, said = process.communicate()
    assert process.returncode == 0, said
    assert f"continuing after row {done * 8192:,} of 60,000" in out
    assert [row["id"] for row in rows_of(tmp_path / "out.csv")] == [str(i) for i in range(60_000)]


@pytest.mark.slow
def test_a_server_that_ends_meanwhile_is_named_and_its_answers_are_kept(models, tmp_path):
    write(tmp_path / "in.csv", 60_000)
    flags = ("--model_name=text", f"--model_base_path={models}/text")
    with running(tmp_path / "log", *flags) as own:
        process = command(own.rest, tmp_path)
        wait_until(lambda: parts(tmp_path))
        own.process.kill()
        said = process.communicate()[1]
    assert process.returncode == 1
    assert said.startswith("gru-serve predict: no server answers at") or "closed" in said
    assert said.count("\n") == 1
    assert parts(tmp_path)


def test_more_rows_than_a_server_takes_at_once(models, tmp_path):
    counted = write(tmp_path / "in.csv", 1000)
    batching = tmp_path / "batching"
    batching.write_text("max_batch_size { value: 32 }\n")
    flags = ("--model_name=text", f"--model_base_path={models}/text", "--enable_batching",
             f"--batching_parameters_file={batching}")  # fmt: skip
    with running(tmp_path / "log", *flags) as own:
        for url in (own.rest, own.grpc):
            output = tmp_path / "out.parquet"
            assert predict(url, tmp_path / "in.csv", output, "--overwrite") == 0
            labels = pq.read_table(output)["label"].to_pylist()
            assert labels == ["positive" if good > bad else "negative" for good, bad in counted]


@pytest.mark.long
def test_it_writes_what_gru_train_predict_writes(exports, tmp_path):
    from gru_training.__main__ import main as gru_train

    run = exports.runs["one"]
    texts = [row.text for row in run.test_predictions()] + ["", "never heard of"]
    data = tmp_path / "in.parquet"
    pq.write_table(pa.table({"label": range(len(texts)), "text": texts}), data)
    expected = tmp_path / "trained.parquet"
    assert (
        gru_train(["predict", str(run.path), "--data", str(data), "--output", str(expected)]) == 0
    )
    flags = ("--model_name=one", f"--model_base_path={exports.root / 'one'}")
    with running(tmp_path / "log", *flags) as own:
        for url in (own.rest, own.grpc):
            output = tmp_path / f"served-{url == own.rest}.parquet"
            assert predict(url, data, output, model="one") == 0
            served, trained = pq.read_table(output), pq.read_table(expected)
            assert served.schema == trained.schema
            for name in trained.column_names:
                if pa.types.is_floating(trained[name].type):
                    np.testing.assert_allclose(served[name], trained[name], atol=1e-6)
                else:
                    assert served[name].equals(trained[name])


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyarrow", "tensorflow", "keras", "tyro", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from gru_serving.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_without_pyarrow_the_extra_is_named(server, tmp_path):
    write(tmp_path / "in.csv", 3)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "predict", "--url", server.rest, "--model", "text",
         "--data", str(tmp_path / "in.csv"), "--output", str(tmp_path / "out.csv")],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("gru-serve predict: needs pyarrow, which is not installed;")
    assert "tables" in done.stderr
    assert done.stderr.count("\n") == 1


def test_it_loads_neither_tensorflow_nor_a_task(server, tmp_path):
    write(tmp_path / "in.csv", 3)
    program = WITHOUT.replace('"pyarrow", ', '"gru_training.sentiment", ').replace(
        "sys.exit(main(sys.argv[1:]))",
        "assert main(sys.argv[1:]) == 0\n"
        "rooms = {name.split('.')[1] for name in sys.modules if name.startswith('gru_training.')}\n"
        "assert rooms <= {'errors', 'runs', 'scoring', 'tables', 'termination'}, rooms",
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "predict", "--url", server.rest, "--model", "text",
         "--data", str(tmp_path / "in.csv"), "--output", str(tmp_path / "out.csv")],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
