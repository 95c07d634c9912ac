"""Table files of every kind are read and written without loss, and errors name the line."""

import csv
import datetime
import gzip
import hashlib
import io
import json
import subprocess
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gru_training.errors import DataError
from gru_training.tables import table_file
from gru_training.tables.rows import read_rows
from gru_training.tables.table_file import is_json, open_table
from gru_training.tables.table_writer import file_kind, table_writer

AWKWARD = [
    "plain",
    'with "quotes"',
    "two\nlines",
    "comma, here",
    "tab\there",
    "",
    "ÄÖ 中文 🙂",
    "\r",
]


def read(path, **how):
    table = open_table(path)
    names = how.get("columns") or table.schema.names
    schema = pa.schema([table.schema.field(name) for name in names])
    return pa.Table.from_batches(table.pieces(**how), schema)


def write(path, table):
    with table_writer(path, file_kind(path), table.schema) as write:
        for piece in table.to_batches(max_chunksize=3):
            write(piece)
    return path


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "jsonl", "jsonl.gz", "parquet"])
def test_what_was_written_is_read(tmp_path, suffix):
    table = pa.table({"id": range(len(AWKWARD)), "text": AWKWARD})
    path = write(tmp_path / f"table.{suffix}", table)
    assert read(path).equals(table)
    assert open_table(path).rows == len(AWKWARD)
    assert open_table(path).digest == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_others_read_what_was_written(tmp_path, suffix):
    score = np.array([0.1, 2 / 3, 1e-9], np.float32)
    table = pa.table({"a": ["x,\ty", 'q"', "ü"], "n": [1, None, 3], "score": score})
    path = write(tmp_path / f"table.{suffix}", table)
    frame = {
        "csv": pd.read_csv,
        "tsv": lambda path: pd.read_csv(path, sep="\t"),
        "jsonl": lambda path: pd.read_json(path, lines=True, precise_float=True),
        "parquet": pd.read_parquet,
    }[suffix](path)
    assert frame["a"].tolist() == ["x,\ty", 'q"', "ü"]
    assert frame["n"].fillna(-1).tolist() == [1, -1, 3]
    assert np.array_equal(frame["score"].to_numpy().astype(np.float32), score)
    if suffix != "parquet":
        assert "0.6666667" in path.read_text()  # as many digits as the number needs, no more


def test_what_others_wrote_is_read(tmp_path):
    texts = AWKWARD[:-1]  # pandas does not quote a carriage return
    frame = pd.DataFrame({"id": range(7), "text": texts})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_json(tmp_path / "t.jsonl", lines=True, orient="records")
    frame.to_parquet(tmp_path / "t.parquet")
    for path in tmp_path.iterdir():
        assert read(path).to_pydict() == {"id": list(range(7)), "text": texts}, path


def test_a_column_is_of_whole_numbers_only_as_programs_write_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "number,zeros,plus,half,big,empty,gap\n1,007,+1,1.5,12345678901234567890,,\n-20,1,2,2,3,,4\n"
    )
    table = read(path)
    whole = {name for name in table.column_names if table[name].type == pa.int64()}
    assert whole == {"number", "gap"}
    assert table["zeros"].to_pylist() == ["007", "1"]
    assert table["gap"].to_pylist() == [None, 4]
    assert write(tmp_path / "again.csv", table).read_text() == path.read_text()


def test_json_lines_keep_what_they_hold(tmp_path):
    rows = [
        {
            "id": 1,
            "tags": ["a", {"b": None}],
            "price": 2,
            "ok": True,
            "mixed": "text",
            "big": 2**70,
        },
        {"mixed": 5, "price": 2.5, "late": "ü"},
        {"mixed": None, "tags": None, "id": 9},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n\n".join(map(json.dumps, rows)))
    table = open_table(path)
    assert {field.name for field in table.schema if is_json(field)} == {"tags", "mixed", "big"}
    again = write(tmp_path / "again.jsonl", read(path))
    for written, row in zip(again.read_text().splitlines(), rows, strict=True):
        found = json.loads(written)
        assert {name: value for name, value in found.items() if value is not None} == {
            name: value for name, value in row.items() if value is not None
        }
        assert list(found) == table.schema.names
    assert table.place(1) == "line 3"


def test_numbers_that_json_has_not_are_missing(tmp_path):
    table = pa.table({"x": pa.array([1.5, float("nan"), float("inf")], pa.float32())})
    lines = write(tmp_path / "t.jsonl", table).read_text().splitlines()
    assert lines == ['{"x": 1.5}', '{"x": null}', '{"x": null}']


def test_times_lists_and_dictionaries_of_parquet_go_into_texts(tmp_path):
    at = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "at": pa.array([at, None], pa.timestamp("us", "UTC")),
            "tags": [["a", "b"], None],
            "kind": pa.array(["x", "y"]).dictionary_encode(),
        }
    )
    source = tmp_path / "t.parquet"
    pq.write_table(table, source)
    written = write(tmp_path / "t.csv", read(source)).read_text()
    cells = list(csv.reader(io.StringIO(written, newline="")))
    assert cells[1:] == [["2026-01-02T03:04:00+00:00", '["a", "b"]', "x"], ["", "", "y"]]
    rows = write(tmp_path / "t.jsonl", read(source)).read_text().splitlines()
    first = {"at": "2026-01-02T03:04:00+00:00", "tags": ["a", "b"], "kind": "x"}
    assert json.loads(rows[0]) == first


def test_bytes_go_into_parquet_alone(tmp_path):
    table = pa.table({"raw": [b"\xff"]})
    with pytest.raises(
        DataError, match=r"column 'raw': expected what a \.csv file can hold, got byt"
    ):
        write(tmp_path / "t.csv", table)
    assert read(write(tmp_path / "t.parquet", table)).equals(table)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("skip", [0, 1, 7, 8, 19, 20, 21])
def test_reading_goes_on_behind_any_row(tmp_path, monkeypatch, suffix, skip):
    monkeypatch.setattr(table_file, "PIECE_ROWS", 8)
    table = pa.table({"id": range(20), "other": ["x"] * 20})
    path = tmp_path / f"t.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, path, row_group_size=6)
    else:
        write(path, table)
    rest = read(path, columns=["id"], skip=skip)
    assert rest.column_names == ["id"]
    assert rest["id"].to_pylist() == list(range(20))[skip:]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "parquet"])
def test_a_large_file_does_not_fill_the_memory(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    long = pa.array(["word " * 8000])  # 40 kB
    piece = pa.record_batch({"id": pa.array(range(400)), "text": pa.concat_arrays([long] * 400)})
    with table_writer(path, file_kind(path), piece.schema) as write:
        for _ in range(15):
            write(piece)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    rows = largest = 0
    for read_piece in open_table(path).pieces():
        rows += read_piece.num_rows
        largest = max(largest, pa.total_allocated_bytes() - before)
    python = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == 6000  # 240 MB
    assert largest < 180e6
    assert python < 120e6


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "t.csv is empty; expected a header line"),
        ("t.csv", b"a,b\n1,2\n3\n", "t.csv, line 3: expected 2 cells as in the header, got 1"),
        ("t.csv", b'a,b\n1,"2\n3\n', "t.csv, line 3: not well-formed"),
        ("t.csv", b"a,a\n1,2\n", "t.csv: two columns have the same name: ['a', 'a']"),
        ("t.csv", b"0,0,so much to say here\n1,2,more\n", "here']. Is that a row? The first line"),
        ("t.csv", b"Sales\n\nday,v\n1,2\n2,3\n3,4\n", "'Sales' alone; leave out the lines above"),
        ("t.csv", b"Sales;;\n;;\nday;v;w\n1;2;3\n2;3;4\n3;4;5\n", "t.csv > OTHER`, if they are on"),
        ("t.csv", b"a,b\n\xc3\xa4,x\n2,\xe4\n", "t.csv, line 3: expected UTF-8 text, got byte"),
        ("t.csv", b"a\n1\n\x00\n", "t.csv, line 3: a NUL character; is this a text file?"),
        ("t.csv.gz", gzip.compress(b"a\n1\n", mtime=0)[:-4], "is not a complete gzip file"),
        ("t.jsonl", b'{"a": 1}\n{"a"\n', "t.jsonl, line 2: not JSON"),
        ("t.jsonl", b'{"a": 1}\n\n[1]\n', "t.jsonl, line 3: expected a JSON object, got '[1]"),
        ("t.jsonl", b'{"a": "\\ud800"}\n', "t.jsonl, line 1, column 'a': expected Unicode text"),
        ("t.parquet", b"PAR1 no", "t.parquet is not a complete Parquet file"),
        ("t.parquet.gz", gzip.compress(b"PAR1 no", mtime=0), "expected compressed text, got a"),
    ],
)  # fmt: skip
def test_errors_name_file_and_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as raised:
        for _ in open_table(path).pieces():
            pass
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_lines_above_the_names_are_left_out_as_the_error_advises(tmp_path):
    path, other = tmp_path / "a report.csv", tmp_path / "other.csv"
    path.write_text('Sales,,\nof "2024",,\n\nday,of a,"of, b"\n1,2,3\n2,3,"4,5"\n3,4,5\n')
    with pytest.raises(DataError, match="got 'Sales' alone") as raised:
        read_rows(path)
    command = str(raised.value).split("`")[1].replace("OTHER", str(other))
    subprocess.run(command, shell=True, check=True)
    assert read_rows(other).columns == ["day", "of a", "of, b"]


@pytest.mark.parametrize(
    "content",
    [
        "text\ngood\nbad, really\nfine, too\nwell, yes\n",  # texts with commas
        "day,\n2020-01-01,5\n2020-01-02,6\n2020-01-03,7\n2020-01-04,8\n",  # without a name
        "text,,\ngood,,\nbad,,\nfine,,\n",  # empty columns
        ",value\n1,2\n2,3\n3,4\n",
        "text\none; two\nthree; four\nfive; six\nseven; eight\n",  # a sign in each text
        'text,label\n"yes; no",a\n"now; then",b\n"here; there",a\n"so; so",b\n',
    ],
)
def test_names_are_no_title(tmp_path, content):
    (tmp_path / "t.csv").write_text(content)
    first = content.partition("\n")[0].split(",")
    columns = read_rows(tmp_path / "t.csv", misfit=lambda *_: None).columns
    assert columns is not None
    assert columns[0] == first[0]


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(DataError, match=r"t\.csv: there is no such file"):
        open_table(tmp_path / "t.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"folder\.csv: is not a file"):
        open_table(tmp_path / "folder.csv")


def test_a_damaged_page_of_parquet_is_an_error_of_the_file(tmp_path):
    path = tmp_path / "t.parquet"
    numbers = np.random.default_rng(0).random(5000)
    pq.write_table(pa.table({"x": numbers}), path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[200:2200] = bytes(2000)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"cannot read .*t\.parquet"):
        list(open_table(path).pieces())
