import gzip
import json
import subprocess
import sys

import pytest

from gru_training.data.label_cells import LabelCells
from gru_training.data.problems import Problems
from gru_training.data.series_file import read_series
from gru_training.data.text_files import read_text_file
from gru_training.errors import DataError
from gru_training.tables.content import read_bytes
from tests.training.tables.formats import workbook

ROWS = [("Good, really.", "pos"), ('He said "no".', "neg"), ("Line one\nline two", "pos")]


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


CSV = (
    'Review,Sentiment\r\n"Good, really.",pos\r\n'
    '"He said ""no"".",neg\r\n"Line one\nline two",pos\r\n'
)
TSV = 'label\tsentence\npos\tGood, really.\nneg\t"He said ""no""."\npos\t"Line one\nline two"\n'
JSONL = "".join(json.dumps({"id": 1, "text": t, "class": c}) + "\n" for t, c in ROWS)


def read(path, *columns):
    return read_text_file(path, *columns)[0]


def pairs(rows):
    return [(row.text, *row.labels) for row in rows]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV),
        ("a.csv.gz", CSV),
        ("a.csv", "\ufeff" + CSV),
        ("a.tsv", TSV),
        ("a.jsonl", JSONL),
        ("a.jsonl.gz", JSONL + "\n"),
    ],
)
def test_reads_each_format(tmp_path, name, content):
    assert pairs(read(write(tmp_path / name, content))) == ROWS


@pytest.mark.parametrize("name", ["train.txt", "train.txt.gz", "data.ft"])
@pytest.mark.parametrize("several", [False, True])
def test_reads_lines_of_fasttext(tmp_path, name, several):
    """The texts of https://fasttext.cc/docs/en/supervised-tutorial.html, whose labels go before."""
    lines = (
        "__label__sauce __label__cheese How much does potato starch affect a cheese sauce recipe?\n"
        "\n__label__food-safety __label__acidity Dangerous pathogens capable of growing\n"
    )
    if not several:
        lines = lines.replace("__label__cheese ", "").replace("__label__acidity ", "")
    cells = LabelCells(kind=None)
    (first, second), _ = read_text_file(write(tmp_path / name, lines), labels=cells)
    assert first.text == "How much does potato starch affect a cheese sauce recipe?"
    assert sorted(first.labels) == (["cheese", "sauce"] if several else ["sauce"])
    assert sorted(second.labels) == (["acidity", "food-safety"] if several else ["food-safety"])
    assert second.line == 3
    with pytest.raises(DataError, match="line 4: expected a text after its __label__NAME, got 'no"):
        read(write(tmp_path / name, lines + "no label\n"))


def test_many_labels_of_fasttext_are_read_at_once(tmp_path):
    """A line of 3 MB took minutes where each label cost a copy of the rest; a tab ends one, too."""
    path = write(tmp_path / "train.txt", "__label__a\t" * 300_000 + "text\n")
    (row,), _ = read_text_file(path, labels=LabelCells(kind="labels"))
    assert row.text == "text"
    assert set(row.labels) == {"a"}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_texts_of_a_hundred_thousand_words(tmp_path, suffix):
    text = "word, " * 100_000
    content = {
        "csv": f'text,label\n"{text}",long\nx,short\n',
        "tsv": f"text\tlabel\n{text}\tlong\nx\tshort\n",
        "jsonl": "".join(json.dumps({"text": t, "label": k}) + "\n"
                         for t, k in ((text, "long"), ("x", "short"))),
    }[suffix]  # fmt: skip
    expected = [(text, "long"), ("x", "short")]
    rows = read(write(tmp_path / f"a.{suffix}", content))
    assert pairs(rows) == expected


def test_named_columns_win_over_known_names(tmp_path):
    path = write(tmp_path / "a.csv", "text,label,body,kind\nx,1,hello,greeting\n")
    assert read(path, "body", "kind") == [("hello", ("greeting",), 2, {})]


def test_labels_that_are_no_strings_keep_their_json_form(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": true}\n')
    assert [row.labels for row in read(path)] == [("1",), ("true",)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", r"a\.csv is empty"),
        ("a.csv", "text,label\n", "has no rows"),
        (
            "a.csv",
            "words,label\na,b\n",
            r"looks like the text.*\['words', 'label'\].*--text-column",
        ),
        ("a.csv", "text,verdict\na,b\n", r"looks like the label.*--label-column"),
        ("a.csv", "text,text\na,b\n", "two columns have the same name"),
        ("a.csv", "text,label\na,1\n  ,0\n", "line 3: the text is empty"),
        ("a.csv", 'text,label\n"a\nb",1\n  ,0\n', "line 4: the text is empty"),
        ("a.csv", "text,label\na,1\nb,\n", r"line 3: the label is missing \(column 'label'\)"),
        ("a.csv", "text,label\na,1\nb,0,c\n", "line 3: expected 2 cells.*got 3"),
        ("a.csv", 'text,label\n"a,1\nb,0\n', "is a quote unbalanced"),
        ("a.csv", b"text,label\n\xc3\xa9,1\ncaf\xe9,0\n", "line 3: expected UTF-8 .* byte 0xe9"),
        ("a.csv", b"text,label\na\x00b,1\n", "line 2: a NUL character"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{oops\n', "line 2: not JSON"),
        ("a.jsonl", "[1]\n", "line 1: expected a JSON object"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "b"}\n', "line 2: the label is missing"),
        ("a.jsonl", '{"text": null, "label": "x"}\n', "line 1: the text is empty"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{}\n', "line 2: the text is empty"),
        (
            "a.jsonl",
            '{"text": {"body": "a"}, "label": "x"}\n',
            r"got \{\"body\": \"a\"\}; write the text itself there, as in \{\"text\": \"...\"\}",
        ),
        ("a.csv", "text,label\na,1\ntext,label\n", "line 3: .* names of the columns once more"),
    ],
)
def test_says_what_is_wrong_and_where(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message) as caught:
        read(write(tmp_path / name, content))
    assert "\n" not in str(caught.value)


def test_a_named_label_that_stands_below_a_text_is_no_name(tmp_path):
    rows = "The soup was not warm.,bad\nIt was hot.,good\nIt was cold.,bad\n"
    named = "The soup was not warm.", "bad"
    with pytest.raises(DataError, match=r"Is that a row\? .*text,label: 'bad' stands below, too"):
        read(write(tmp_path / "bare.csv", rows), *named)
    assert len(read(write(tmp_path / "a.csv", "mail,bad\n" + rows), "mail", "bad")) == 3


def test_a_second_column_of_texts_is_noted(tmp_path):
    problems = Problems("a.csv")
    rows = "Cold soup,It was not warm.,bad\nA fine roast,It was hot at last.,good\n"
    path = write(tmp_path / "a.csv", "Title,body,label\n" + rows)
    rows, _ = read_text_file(path, problems=problems)
    assert rows[0].text == "It was not warm."
    (note,) = problems.notes
    assert "the column 'Title' is not read" in note
    path = write(tmp_path / "b.csv", "title,text,label\nDr,It was not warm.,bad\n")
    read_text_file(path, problems=problems)
    assert problems.notes == [note]


def test_names_the_columns_when_a_wanted_one_is_absent(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\na,b\n")
    with pytest.raises(DataError, match=r"no column 'body'; its columns are \['text', 'label'\]"):
        read(path, "body")


def zeros_that_unpack_to(path, size):
    """A gzip file with a header and empty rows, of which a million are compressed once."""
    path.write_bytes(
        gzip.compress(b"text,label\n") + gzip.compress(b"\n" * 2**20) * (size // 2**20)
    )
    return path


READ = """
import sys
from pathlib import Path
from gru_training.errors import DataError
from gru_training.tables.content import read_bytes
from tests.training.tables.formats import workbook

try:
    print(len(read_bytes(Path(sys.argv[1]))))
except DataError as error:
    print(error)
lines = Path("/proc/self/status").read_text().split("\\n")
print(*(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


@pytest.mark.slow
def test_a_gzip_file_that_grows_beyond_measure_is_refused_while_it_is_unpacked(tmp_path):
    path = zeros_that_unpack_to(tmp_path / "bomb.csv.gz", 2**30)
    assert path.stat().st_size < 1.1 * 2**20
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True
    )
    said, peak = done.stdout.splitlines()
    assert said.startswith(f"{path}: expected at most 64 MiB when unpacked (50 times its size, or ")
    assert "MiB for a small file), got more; if this is intended, unpack it with gunzip" in said
    assert int(peak) < 400 * 1024  # KiB; the content alone has 1 GiB


def test_a_gzip_file_may_unpack_to_many_times_its_size(tmp_path):
    path = zeros_that_unpack_to(tmp_path / "a.csv.gz", 60 * 2**20)
    assert len(read_bytes(path)) == 60 * 2**20 + len(b"text,label\n")


def test_a_cover_sheet_is_named_where_the_columns_are_missing(tmp_path):
    path = workbook(tmp_path / "t.xlsx", [["Tickets"], ["by K."]], [["text", "label"], ["a", "b"]])
    with pytest.raises(DataError, match=r"'S1' is read, .* not 'S2'\): no column looks like the"):
        read(path)
    with pytest.raises(
        DataError, match=r"not 'S2'\): expected columns of numbers beside the times"
    ):
        read_series(path)


def test_formulas_that_were_never_calculated_are_told(tmp_path):
    path = workbook(tmp_path / "t.xlsx", [["text", "label"], ["a", None], ["b", None]])
    with pytest.raises(DataError, match=r"in the column 'label', got none; formulas have none"):
        read(path)
    with pytest.raises(DataError, match="has no rows"):
        read(workbook(tmp_path / "u.xlsx", [["text", "label"]]))


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*none\.csv: there is no such file"):
        read(tmp_path / "none.csv")


def test_damaged_gzip(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(CSV.encode() * 99, mtime=0)[:-30])
    with pytest.raises(DataError, match="not a complete gzip file"):
        read(path)


def test_blank_lines_before_the_header_and_between_rows_are_skipped(tmp_path):
    path = write(tmp_path / "a.csv", "\n\ntext,label\n\nhello,1\n")
    assert [row[:3] for row in read(path)] == [("hello", ("1",), 5)]
