"""A file is scored completely or not at all, and scoring continues where it stopped."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from gru_training.errors import DataError, InterruptedWork, ScoringError
from gru_training.scoring.file_job import FileJob, output_schema
from gru_training.tables import table_file
from tests.training.scoring.doubling import Doubling
from tests.waiting import wait_until

REPOSITORY = Path(__file__).parents[3]
INPUTS = {"word": ("word", "text")}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(table_file, "PIECE_ROWS", 10)


def rows_file(path, rows=95, column="text"):
    path.write_text(f"id,{column}\n" + "".join(f"{i},{'ab' * (i % 7)}\n" for i in range(rows)))
    return path


def expected(rows=95):
    return [
        {"id": i, "text": "ab" * (i % 7), "twice": "ab" * (i % 7) * 2, "size": 2 * (i % 7)}
        for i in range(rows)
    ]


def score(data, output, scorer=None, **how):
    return FileJob(data, output, INPUTS, **how).run(scorer or Doubling())


def csv_rows(path):
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def left(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_rows_keep_their_order_and_their_columns(tmp_path, suffix):
    output = tmp_path / f"out.{suffix}"
    scored = score(rows_file(tmp_path / "in.csv"), output)
    assert (scored.rows, scored.resumed) == (95, 0)
    if suffix == "parquet":
        assert pq.read_table(output).to_pylist() == expected()
    elif suffix == "jsonl":
        assert list(map(json.loads, output.read_text().splitlines())) == expected()
    else:
        rows = [{name: str(value) for name, value in row.items()} for row in expected()]
        assert csv_rows(output) == rows
    assert left(tmp_path) == []


def test_columns_are_kept_by_name_and_renamed_where_they_clash(tmp_path):
    data = tmp_path / "in.jsonl"
    rows = [{"size": i, "text": "a", "input_size": "x", "other": 1} for i in range(3)]
    data.write_text("\n".join(map(json.dumps, rows)))
    score(data, tmp_path / "out.jsonl", keep=["size", "input_size"])
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first == {"input_input_size": 0, "input_size": "x", "twice": "aa", "size": 1}
    assert list(first) == ["input_input_size", "input_size", "twice", "size"]
    score(data, tmp_path / "bare.jsonl", keep=[])
    assert json.loads((tmp_path / "bare.jsonl").read_text().splitlines()[0]) == {
        "twice": "aa", "size": 1
    }  # fmt: skip


def test_an_empty_file_gives_an_empty_one(tmp_path):
    assert score(rows_file(tmp_path / "in.csv", 0), tmp_path / "out.csv").rows == 0
    assert (tmp_path / "out.csv").read_text() == "id,text,twice,size\n"


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"columns": {"word": "body"}}, DataError,
         "--word-column: {data} has no column 'body'; its columns are id, text"),
        ({"keep": ["id", "nr"]}, DataError, "--keep: {data} has no column 'nr'"),
        ({"output": "none/out.csv"}, ScoringError, "there is no folder"),
        ({"output": "out.xls"}, DataError, "--output {folder}/out.xls: expected a file name"),
        ({"output": "in.csv"}, ScoringError, "expected another file than --data"),
        ({"output": "there.csv"}, ScoringError, "there.csv exists already; remove it"),
        ({"output": "folder.csv"}, ScoringError, "expected the name of a file, got a folder"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_before_a_model_is_needed(tmp_path, change, kind, message):
    data = rows_file(tmp_path / "in.csv")
    (tmp_path / "there.csv").touch()
    (tmp_path / "folder.csv").mkdir()
    change = {**change}
    output = tmp_path / change.pop("output", "out.csv")
    with pytest.raises(kind) as raised:
        FileJob(data, output, INPUTS, **change)
    assert message.format(data=data, folder=tmp_path) in str(raised.value)
    assert left(tmp_path) == []


def test_no_column_is_guessed(tmp_path):
    with pytest.raises(
        DataError, match=r"no column looks like the word; its columns are id, w; na"
    ):
        FileJob(rows_file(tmp_path / "in.csv", column="w"), tmp_path / "out.csv", INPUTS)


def test_a_column_of_several_kinds_is_refused_with_their_lines(tmp_path):
    data = tmp_path / "in.jsonl"
    data.write_text('{"text": "a"}\n{"text": null}\n{"text": ["b"]}\n')
    with pytest.raises(
        DataError, match=r"'text': expected values of one kind, got texts \(line 1\)"
    ):
        FileJob(data, tmp_path / "out.csv", INPUTS)


def test_an_existing_output_is_replaced_only_if_asked(tmp_path):
    data, output = rows_file(tmp_path / "in.csv"), tmp_path / "out.csv"
    output.write_text("precious")
    score(data, output, overwrite=True)
    assert len(output.read_text().splitlines()) == 96
    job = FileJob(data, tmp_path / "late.csv", INPUTS)
    (tmp_path / "late.csv").write_text("came meanwhile")
    with pytest.raises(ScoringError, match="exists already"):
        job.run(Doubling())
    assert (tmp_path / "late.csv").read_text() == "came meanwhile"


class Stopping(Doubling):
    """Is interrupted, or fails, at the row with this id or later."""

    def __init__(self, after, error):
        super().__init__()
        self._left, self._error = after, error

    def read(self, rows):
        if self._left <= 0:
            raise self._error
        self._left -= rows.num_rows
        return super().read(rows)


def test_interrupted_it_goes_on_where_it_stopped(tmp_path):
    data, output = rows_file(tmp_path / "in.csv"), tmp_path / "out.parquet"
    with pytest.raises(InterruptedWork) as raised:
        score(data, output, Stopping(50, KeyboardInterrupt()))
    assert raised.value.message.startswith("interrupted; 40 of 95 rows are done")
    assert not output.exists()
    scorer = Doubling()
    scored = score(data, output, scorer)
    assert (scored.rows, scored.resumed) == (95, 40)
    assert sum(rows for rows, _ in scorer.asked) == 55
    assert pq.read_table(output).to_pylist() == expected()
    assert left(tmp_path) == []


def test_what_failed_goes_on_too_and_names_the_row(tmp_path):
    data = tmp_path / "in.jsonl"
    lines = [json.dumps({"text": "a"})] * 30 + ["", json.dumps({"text": None})]
    data.write_text("\n".join(lines))
    for _ in range(2):
        with pytest.raises(DataError) as raised:
            score(data, tmp_path / "out.csv")
        assert str(raised.value) == (
            f"{data}, line 32, column 'text': expected a word, got none"
        )  # fmt: skip
    (folder,) = tmp_path.glob(".out.csv.partial-*")
    assert len(list(folder.iterdir())) == 2  # the third piece was being read ahead


@pytest.mark.parametrize("change", ["data", "model", "keep"])
def test_with_other_data_or_settings_it_begins_anew(tmp_path, change):
    data, output = rows_file(tmp_path / "in.csv"), tmp_path / "out.jsonl"
    with pytest.raises(InterruptedWork):
        score(data, output, Stopping(50, KeyboardInterrupt()))
    scorer, keep = Doubling(), None
    if change == "data":
        data.write_text(data.read_text().replace("\n3,", "\n33333,"))
    elif change == "model":
        scorer = Doubling(identity="another")
    else:
        keep = ["id"]
    said = io.StringIO()
    scored = score(data, output, scorer, keep=keep, console=Console(file=said, width=200))
    assert scored.resumed == 0
    assert "was begun earlier with other data or settings" in said.getvalue()
    assert len(output.read_text().splitlines()) == 95
    assert left(tmp_path) == []


def test_a_part_that_is_not_whole_is_done_again(tmp_path):
    data, output = rows_file(tmp_path / "in.csv"), tmp_path / "out.parquet"
    with pytest.raises(InterruptedWork):
        score(data, output, Stopping(60, KeyboardInterrupt()))
    (folder,) = tmp_path.glob(".out.parquet.partial-*")
    *_, cut, last = sorted(folder.iterdir())
    cut.write_bytes(cut.read_bytes()[:100])
    scored = score(data, output)
    assert scored.resumed == 30
    assert last.name.startswith("0")
    assert pq.read_table(output).to_pylist() == expected()


PROGRAM = """
import sys, time
from pathlib import Path
from tests.training.scoring.doubling import Doubling
from gru_training.scoring.file_job import FileJob
from gru_training.tables import table_file
table_file.PIECE_ROWS = 10
job = FileJob(Path(sys.argv[1]), Path(sys.argv[2]), {"word": ("text",)})
job.run(Doubling(delay=float(sys.argv[3])))
"""


def begin(data, output, delay):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(data), str(output), str(delay)],
        cwd=REPOSITORY, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def parts(folder):
    return list(folder.glob(".out.csv.partial-*/*.parquet"))


def test_killed_it_goes_on_and_no_two_work_on_one_output(tmp_path):
    data, output = rows_file(tmp_path / "in.csv"), tmp_path / "out.csv"
    process = begin(data, output, 0.1)
    try:
        wait_until(lambda: len(parts(tmp_path)) >= 3)
        with pytest.raises(ScoringError, match=r"out\.csv is being written by another process"):
            score(data, output)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not output.exists()
    done = 10 * len(parts(tmp_path))
    scorer = Doubling()
    assert score(data, output, scorer).resumed == done
    assert sum(rows for rows, _ in scorer.asked) == 95 - done
    assert [row["id"] for row in csv_rows(output)] == [str(i) for i in range(95)]
    assert left(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX")
def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(ScoringError) as raised:
        score(rows_file(tmp_path / "in.csv"), tmp_path / "out.csv")
    assert str(raised.value) == f"cannot write {tmp_path / 'out.csv'}: No space left on device"
    assert left(tmp_path) == []


def test_a_file_that_shrinks_meanwhile_is_named(tmp_path):
    data = rows_file(tmp_path / "in.csv")
    job = FileJob(data, tmp_path / "out.csv", INPUTS)
    rows_file(data, 50)
    with pytest.raises(DataError, match=r"in\.csv has changed: expected 95 rows, got 50"):
        job.run(Doubling())
    assert not (tmp_path / "out.csv").exists()


def test_output_schema():
    rows = pa.schema([("a", pa.int64()), ("b", pa.string())])
    answers = pa.schema([("b", pa.float32())])
    assert output_schema(rows, ["a", "b"], answers).names == ["a", "input_b", "b"]
    assert output_schema(rows, ["b"], answers).types == [pa.string(), pa.float32()]
