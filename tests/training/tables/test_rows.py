"""Every format, encoding and separator gives the same rows through every door."""

import csv
import io
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from gru_training.command_line import CheckConfig, run_check
from gru_training.data.problems import Problems
from gru_training.data.series_file import read_series
from gru_training.errors import ConfigError, DataError
from gru_training.estimators.text import SETTINGS
from gru_training.estimators.text_source import text_source
from gru_training.language.config import LanguageDataConfig
from gru_training.language.data import read_documents
from gru_training.scoring.file_job import FileJob
from gru_training.sentiment.config import SentimentDataConfig
from gru_training.sentiment.labelled_files import read_labelled_files
from gru_training.tables.file_form import TextFormat, find_form
from gru_training.tables.numbers import Numbers
from gru_training.tables.rows import cell_text, read_rows, read_stream
from gru_training.tables.table_file import open_table
from tests.training.scoring.doubling import Doubling
from tests.training.tables.formats import NAMES, delimited, workbook, write

HEADER = ["text", "label", "note"]
ROWS = [
    ["Grün, ja; nein | doch", "gut", ""],
    ['sagte "ja"', "gut", "a"],
    ["zwei\nZeilen\tund mehr", "schlecht", "é"],
    ["007", "gut", "x"],
    ["läuft nicht", "schlecht", "-"],
    ["noch etwas", "gut", "1"],
    ["[in Klammern]", "schlecht", "2"],
]
SAID = {
    "semicolon.csv": "columns are separated by semicolons (--separator says otherwise)",
    "bar.csv": "columns are separated by vertical bars (--separator says otherwise)",
    "tab.csv": "columns are separated by tabs (--separator says otherwise)",
    "comma.tsv": "columns are separated by commas (--separator says otherwise)",
    "table.txt": "columns are separated by tabs (--separator says otherwise)",
    "utf16.csv": "columns are separated by tabs (--separator says otherwise)",
    "utf16le.csv": "read as UTF-16-LE (--encoding says otherwise)",
    "windows.csv": "read as Windows-1252 (cp1252), as line 2 is not UTF-8; columns are separated "
    "by semicolons (--encoding and --separator say otherwise)",
}  # fmt: skip
"""What is said of files that are neither plain nor marked."""


def said_of(path):
    return [SAID[path.name]] if path.name in SAID else []


def texts(path, **how):
    """Cells as texts, where empty ones and missing ones are one."""
    columns, rows = read_rows(path, **how).with_columns()
    found = [[cell_text(cells.get(name)) or "" for name in columns] for _, cells in rows]
    return [list(columns), *found]


@pytest.fixture(params=NAMES)
def path(request, tmp_path):
    return write(tmp_path, request.param, HEADER, ROWS)


def test_each_format_gives_the_same_rows(path):
    assert texts(path) == [HEADER, *ROWS]
    assert list(find_form(path).notes) == said_of(path)


def test_training_learns_from_the_same_rows(path):
    problems = Problems(str(path))
    config = SentimentDataConfig(path)
    rows = read_labelled_files(config, problems)
    problems.raise_errors()
    read = [[row.text, rows.classes[row.label]] for row in rows.train]
    assert read == [row[:2] for row in ROWS]
    assert problems.notes[: len(said_of(path))] == said_of(path)
    assert all("otherwise" not in note for note in problems.notes[len(said_of(path)) :])


def test_check_counts_the_same_rows(path):
    said = io.StringIO()
    config = CheckConfig(path, "sentiment", training_flags=("--group-column", "note"))
    run_check(config, Console(file=said, width=300))
    assert f"{path}: 7 texts in 2 classes" in said.getvalue()
    assert said.getvalue().count(SAID.get(path.name, "otherwise")) == (path.name in SAID)


def test_an_estimator_reads_the_same_rows(path):
    source = text_source(str(path))
    config = SETTINGS.config(SETTINGS.with_defaults({}, "T"), data=source.settings)
    rows = read_labelled_files(config.data, Problems(str(path)))
    assert [row.text for row in rows.train] == [text for text, *_ in ROWS]


def test_scoring_answers_the_same_rows(path, tmp_path):
    said = io.StringIO()
    console = Console(file=said, width=300)
    job = FileJob(path, tmp_path / "out.parquet", {"word": ("text",)}, console=console)
    assert job.run(Doubling()).rows == len(ROWS)
    answered = pq.read_table(tmp_path / "out.parquet")
    assert answered["text"].to_pylist() == [text for text, *_ in ROWS]
    assert answered["twice"].to_pylist() == [2 * text for text, *_ in ROWS]
    assert said.getvalue().count(SAID.get(path.name, "otherwise")) == (path.name in SAID)


def test_a_language_model_reads_the_same_rows(path):
    notes = []
    if path.suffix == ".txt":
        return  # prose
    assert read_documents(path, LanguageDataConfig(path), notes) == [text for text, *_ in ROWS]
    assert notes == [f"{path}: {note}" for note in said_of(path)]


SERIES = [[f"2024-01-{day:02}", 1.5 * day, None if day == 3 else -day] for day in range(1, 9)]


@pytest.mark.parametrize("form", ["comma", "semicolon", "points", "parquet", "lines", "xlsx"])
def test_each_format_gives_the_same_series(tmp_path, form):
    rows = [["" if cell is None else str(cell) for cell in row] for row in SERIES]
    commas = [[cell.replace(".", ",") for cell in row] for row in rows]
    names = ["date", "a", "b"]
    objects = [dict(zip(names, row, strict=True)) for row in SERIES]
    path = tmp_path / "s.data"
    if form == "xlsx":
        workbook(path, [names, *SERIES])
    elif form == "parquet":
        table = pa.Table.from_pylist(objects)
        days = table["date"].cast(pa.timestamp("ns"))
        pq.write_table(table.set_column(0, "date", days), path)
    else:
        path.write_text(
            {
                "comma": delimited(names, rows, ","),
                "semicolon": delimited(names, commas, ";"),
                "points": delimited(names, rows, ";"),
                "lines": "\n".join(map(json.dumps, objects)),
            }[form]
        )
    series = read_series(path)
    assert series.frequency == "D"
    assert series.columns == ("a", "b")
    expected = [[a, np.nan if b is None else b] for _, a, b in SERIES]
    np.testing.assert_array_equal(series.values, expected)
    said = "numbers are read with decimal commas: '1,5' is 1.5"
    assert (said in series.notes) == (form == "semicolon")


CELL = st.text(
    st.one_of(
        st.sampled_from("\"',;|\t\n\r =[{\\"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    ),
    max_size=12,
)
TABLE = st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(
    TABLE,
    st.sampled_from(",;|\t"),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_any_cells_of_csv_are_read(tmp_path_factory, table, separator, encoding, quoting):
    lines = io.StringIO(newline="")
    writer = csv.writer(lines, delimiter=separator, quoting=quoting)
    writer.writerows([("text", "label"), *table])
    path = tmp_path_factory.mktemp("any") / "t.csv"
    path.write_bytes(lines.getvalue().encode(encoding))
    assert texts(path) == [["text", "label"], *map(list, table)]
    found = open_table(path)
    whole = pa.Table.from_batches(found.pieces(), found.schema)
    for name, cells in zip(HEADER, zip(*table, strict=True), strict=False):
        read = whole[name].to_pylist()
        assert ["" if cell is None else str(cell) for cell in read] == list(cells)


@settings(max_examples=100, deadline=None)
@given(TABLE, st.sampled_from([None, 1]), st.booleans(), st.booleans())
def test_any_cells_of_json_are_read(tmp_path_factory, table, indent, ascii_only, as_list):
    objects = [{"text": text, "label": label} for text, label in table]
    if as_list:
        content = json.dumps(objects, indent=indent, ensure_ascii=ascii_only)
    else:
        content = "\n".join(json.dumps(each, ensure_ascii=ascii_only) for each in objects)
    path = tmp_path_factory.mktemp("any") / "t.json"
    path.write_text(content, "utf-8", newline="")
    assert texts(path) == [["text", "label"], *map(list, table)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(codec="cp1252", exclude_characters="\0")), min_size=1))
def test_another_encoding_is_read_where_it_is_named(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("any") / "t.csv"
    written = delimited(["text", "n"], [[cell, "1"] for cell in cells], ",")
    path.write_bytes(written.encode("cp1252"))
    read = texts(path, given=TextFormat(encoding="windows-1252"))
    assert [text for text, _ in read[1:]] == cells


REFUSALS = [
    ("two.csv", "a;b,c\n1;2,3\n4;5,6\n", "got commas (2 columns) or semicolons (2 columns)"),
    ("cp1251.csv", "text,label\nпривет,да\n".encode("cp1251"), None),
    ("broken.csv", b"text,label\n\xc3\xa4,1\n\xe4,2\n", "line 3: expected UTF-8 text, got byte 0x"),
    ("ninety.csv", b"text,label\n\x81,1\n", "line 2: expected Windows-1252 (cp1252) text,"),
    ("nul.csv", b"text,label\na,1\nb\0,2\n", "line 3: a NUL character; is this a text file?"),
    ("return.csv", "text,label\na,1\nb\rc,2\n", "line 3: expected a cell with a carriage return"),
    ("short.csv", "text,label\na,1\nb\n", "line 3: expected 2 cells as in the header, got 1"),
    ("sep.csv", "sep=;\ntext;label\na;1\nb;2;3\n", "line 4: expected 2 cells as in the header"),
    ("quote.csv", 'text,label\n"a" b,1\n', "line 2: not well-formed"),
    ("list.json", '[\n{"text": "a"},\n3\n]', "line 3: expected a JSON object, got '3'"),
    ("cut.json", '[\n{"text": "a"},\n{"text": "b"}\n', "line 4: not a complete JSON list"),
    ("cut.json", '[{"text": "a"}, {"text": "b"}', "row 2: not a complete JSON list"),
    ("odd.json", '[{"text": "a"}, 3, {"text": "b"}]\n', "row 2: expected a JSON object, got '3'"),
    ("bad.json", '[\n{"text": "a"},\n{"text": b}]', "line 3: not JSON"),
    ("object.json", '{\n"text": "a"\n}', "line 1: not JSON"),
    ("cut.csv.zst", b"\x28\xb5\x2f\xfd\x00", "cut.csv.zst is not a complete zstd file"),
    ("t.zip", None, "got a zip archive (a.csv); unpack it with unzip first"),
    ("cut.xlsx", b"PK\x03\x04 no more", "cut.xlsx is not a complete zip archive"),
    ("old.feather", b"FEA1....", "got Feather of the first version; write it as Arrow"),
    ("data.db", b"SQLite format 3\0", "got an SQLite database; write the table as CSV"),
    ("cut.arrow", b"ARROW1\0\0no", "cut.arrow is not a complete Arrow file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), REFUSALS)
def test_what_is_refused_is_named_with_its_place(tmp_path, name, content, message):
    import zipfile

    path = tmp_path / name
    if content is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.csv", "text,label\n")
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if message is None:  # letters of another code page are no error, but said
        assert "cp1252" in find_form(path).notes[0]
        assert texts(path, given=TextFormat(encoding="cp1251"))[1] == ["привет", "да"]
        return
    with pytest.raises(DataError) as caught:
        texts(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_remedies_work(tmp_path):
    """What the errors above advise to do."""
    two = tmp_path / "two.csv"
    two.write_text("a;b,c\n1;2,3\n4;5,6\n")
    with pytest.raises(DataError) as caught:
        texts(two)
    (separator,) = re.findall(r"--separator '(.)'", str(caught.value))
    assert texts(two, given=TextFormat(separator))[1] == ["1;2", "3"]
    assert texts(two, given=TextFormat(";"))[1] == ["1", "2,3"]
    broken = tmp_path / "broken.csv"
    broken.write_bytes(b"text,label\n\xc3\xa4,1\n\xe4,2\n")
    with pytest.raises(DataError, match=r"with --encoding, such as cp1252, or .*`iconv -f latin1"):
        texts(broken)
    assert texts(broken, given=TextFormat(encoding="cp1252"))[2] == ["ä", "2"]
    done = subprocess.run(
        ["iconv", "-f", "latin1", "-t", "utf-8", broken], capture_output=True, check=True
    )
    broken.write_bytes(done.stdout)
    assert texts(broken)[1:] == [["Ã¤", "1"], ["ä", "2"]]
    japanese = tmp_path / "japanese.csv"
    japanese.write_bytes("text,label\n素晴らしい,1\nあ,2\n".encode("shift_jis"))
    with pytest.raises(DataError, match="with --encoding, such as shift_jis, ") as caught:
        texts(japanese)
    assert "cp1252, or" not in str(caught.value)
    assert texts(japanese, given=TextFormat(encoding="shift_jis"))[1] == ["素晴らしい", "1"]
    returned = tmp_path / "return.csv"
    returned.write_bytes(b"text,label\na,1\nb\rc,2\n")
    with pytest.raises(DataError, match=r"`tr '\\r' ' '`"):
        texts(returned)
    done = subprocess.run(
        ["sh", "-c", f"tr '\\r' ' ' < {returned}"], capture_output=True, check=True
    )
    returned.write_bytes(done.stdout)
    assert texts(returned)[2] == ["b c", "2"]
    returned.write_bytes(b'text,label\na,1\n"b\rc",2\n')
    assert texts(returned)[2] == ["b\rc", "2"]


def test_rows_that_do_not_fit_are_collected_and_dropped(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"text,label\na,1\nb\rc,2\nd\ne,2\n")
    found = []
    rows = list(read_rows(path, misfit=lambda *told: found.append(told[:2])))
    assert [cells["text"] for _, cells in rows] == ["a", "e"]
    assert found == [("return", 3), ("cells", 4)]


def test_files_of_old_macs_end_lines_with_a_carriage_return(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"text,label\ra,1\rb,2\r")
    assert texts(path) == [["text", "label"], ["a", "1"], ["b", "2"]]
    assert [place for place, _ in read_rows(path)] == [2, 3]


def test_a_workbook_is_read_by_its_first_sheet_that_is_shown(tmp_path):
    path = workbook(
        tmp_path / "t.xlsx",
        [["text", "n"], ["of last year", 3]],
        [[None, None], ["text", "n"], ["a", 1], [None, None], ["b", 2.5]],
        [["text"]],
        hidden=[1],
    )
    table = read_rows(path)
    assert list(table) == [(3, {"text": "a", "n": 1}), (5, {"text": "b", "n": 2.5})]
    assert table.form.notes == (
        "the sheet 'S2' is read, the first that is not hidden, not 'S3', 'S1'",
    )
    assert open_table(path).form.notes == table.form.notes
    beside = workbook(tmp_path / "b.xlsx", [["text"], ["a", "over"]])
    with pytest.raises(DataError, match=r"row 2: expected cells below the header .* got 'over'"):
        texts(beside)
    empty = workbook(tmp_path / "e.xlsx", [[]])
    with pytest.raises(DataError, match=r"expected a header row in the sheet 'S1'"):
        texts(empty)


def test_each_row_of_merged_cells_has_their_value(tmp_path):
    rows = [["text", "label"], ["a", "x"], ["b", None], ["c", None], ["d", "y"], ["e", None]]
    table = read_rows(workbook(tmp_path / "t.xlsx", rows, merged="B2:B4"))
    assert [cells["label"] for _, cells in table] == ["x", "x", "x", "y", None]
    assert table.form.notes == ("each row of merged cells reads their value, from row 2 on",)
    for elsewhere in ("A2:B2", "A2:B4", "D2:D4", "B6:B9", "B8:B9"):
        table = read_rows(workbook(tmp_path / "u.xlsx", rows, merged=elsewhere))
        assert [cells["label"] for _, cells in table] == ["x", None, None, "y", None]
        assert not table.form.notes


def test_without_its_package_a_workbook_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    path = workbook(tmp_path / "tickets.csv", [["text", "label"], ["a", "b"]])
    with pytest.raises(DataError, match=r"pip install 'keras-gru\[excel\]', or save the sheet"):
        texts(path)


def test_the_first_rows_of_a_text_need_no_package(tmp_path):
    """So that an error in them is said at once."""
    path = write(tmp_path, "semicolon.csv", HEADER, ROWS)
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from gru_training.tables.rows import read_rows\n"
        "print(len(list(read_rows(Path(sys.argv[1])))))\n"
        "heavy = {'pyarrow', 'pandas', 'numpy', 'tensorflow', 'keras'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{len(ROWS)}\n"


def test_rows_arrive_one_by_one_in_a_stream():
    import os

    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as source, os.fdopen(reading, "rb") as stream:
        source.write("time;load\n1;2,5\n")
        source.flush()
        table = read_stream("standard input", stream)
        assert table.columns == ["time", "load"]
        assert next(table.rows) == (2, {"time": "1", "load": "2,5"})
        later = threading.Timer(0.05, lambda: (source.write("2;3\n"), source.flush()))
        later.start()
        assert next(table.rows) == (3, {"time": "2", "load": "3"})
        later.join()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"separator": ";;"}, "--separator must be one character, such as ';', or tab, got ';;'"),
        ({"separator": '"'}, "--separator must be one character"),
        ({"encoding": "klingon"}, "--encoding must be an encoding that Python knows"),
        ({"encoding": "base64"}, "--encoding must be an encoding that Python knows"),
    ],
)
def test_what_no_text_is_written_in_is_refused(given, message):
    with pytest.raises(ConfigError) as caught:
        SentimentDataConfig(Path("a.csv"), **given)
    assert message in str(caught.value)


def test_a_tab_has_names():
    assert {TextFormat(name).separator for name in ("\t", "tab", "\\t")} == {"\t"}


@pytest.mark.parametrize(
    ("separator", "cell", "number"),
    [
        (",", "1.5", 1.5),
        (",", " -2e3 ", -2000),
        (",", 7, 7),
        (",", None, None),
        (",", float("nan"), None),
        (";", "1,5", 1.5),
        (";", "-1.234.567,25", -1234567.25),
        ("\t", "1 234,5", 1234.5),
        ("|", ",5", 0.5),
        (";", "1,5e3", 1500),
        (",", True, 1),
        (",", "False", 0),
    ],
)
def test_numbers_are_read(separator, cell, number):
    read = Numbers(separator).read(cell)
    assert np.isnan(read) if number is None else read == number


@pytest.mark.parametrize(
    ("separator", "cells", "message"),
    [
        (
            ",",
            ["1,5"],
            "expected a number with a decimal point, got '1,5'; decimal commas",
        ),
        (";", ["1,234,567"], "expected a number or an empty cell, got '1,234,567'"),
        (";", ["1,234.5"], "expected a number or an empty cell, got '1,234.5'"),
        (";", ["1.5", "2,5"], "expected a decimal point as in '1.5' before, got '2,5'"),
        (";", ["2,5", "1.500"], "expected a decimal comma as in '2,5' before, got '1.500'"),
        (",", ["1,234,567"], "'1,234,567'; write numbers without separators between thousands"),
        (";", ["1.234.567"], "'1.234.567'; write numbers without separators between thousands"),
        (",", ["1 234"], "'1 234'; write numbers without separators between thousands"),
        (",", ["yes"], "expected a number or an empty cell, got 'yes'; write 1 for yes and 0"),
        (",", [float("inf")], "expected a number or an empty cell, got inf"),
        (",", ["1_0"], "expected a number or an empty cell, got '1_0'"),
    ],
)
def test_numbers_that_are_not_clear_are_refused(separator, cells, message):
    numbers = Numbers(separator)
    *before, last = cells
    for cell in before:
        numbers.read(cell)
    with pytest.raises(ValueError, match=re.escape(message)):
        numbers.read(last)


@pytest.mark.parametrize(
    ("separator", "cells", "doubtful"),
    [
        (";", "987 1.050 1.100 999 1.200 1.310 1.001", True),
        (";", "1.050 1.100 1.200 1.310", False),  # so few may end by chance in three digits
        (";", "1.050 1.100 1.200 1.310 1.001 0.987", False),
        (";", "1.050 1.100 1.200 1.310 1.001 1.5", False),
        (";", "2.5 1.050 1.100 1.200 1.310 1.001", False),
        (",", "1.050 1.100 1.200 1.310 1.001", False),
    ],
)
def test_points_that_may_separate_thousands_are_noted(separator, cells, doubtful):
    numbers = Numbers(separator)
    assert [numbers.read(cell) for cell in cells.split()] == list(map(float, cells.split()))
    note = numbers.note() or ""
    assert ("'1.050' is 1.05; all have three digits behind them" in note) == doubtful


def test_several_columns_without_a_name_are_left_out(tmp_path):
    content = b"v1,v2,, ,\nham,hello there,,,\nspam,win,a,b,c\n"
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    for rows in (read_rows(path), read_stream("t", io.BufferedReader(io.BytesIO(content)))):
        assert rows.columns == ["v1", "v2"]
        assert [cells for _, cells in rows.rows] == [
            {"v1": "ham", "v2": "hello there"},
            {"v1": "spam", "v2": "win"},
        ]
        assert "columns without a name are not read: 3 of 5" in rows.form.notes
    path.write_bytes(b",text,label\n0,a,b\n")  # one alone, as pandas writes an index, is kept
    assert read_rows(path).columns == ["", "text", "label"]
