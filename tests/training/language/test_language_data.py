"""Documents from files, folders and tables, and their split."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gru_training.__main__ import main
from gru_training.errors import DataError, ForeignDataError
from gru_training.language.config import LanguageDataConfig
from gru_training.language.data import built_in_documents, load_language_data

LINES = [f"number {n} of the lines" for n in range(40)]


def load(**settings):
    return load_language_data(LanguageDataConfig(**settings), seed=0)


def everything(data):
    return [text for part in data.parts().values() for text in part]


def test_each_document_is_in_one_part(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(LINES + LINES[:3]) + "\n\n")
    data = load(data=path, document="line")
    assert sorted(everything(data)) == sorted(LINES)
    assert [len(part) for part in data.parts().values()] == [32, 4, 4]
    assert any("3 documents left out" in note for note in data.notes)
    assert any("1 empty document left out" in note for note in data.notes)
    assert load(data=path, document="line", split_seed=0) == data
    assert load(data=path, document="line", split_seed=1).test != data.test


def test_few_documents_are_cut_at_blanks(tmp_path):
    (tmp_path / "a").mkdir()
    texts = [" ".join(f"{name}{n}" for n in range(200)) for name in ("x", "y")]
    (tmp_path / "a" / "one.txt").write_text(texts[0])
    with gzip.open(tmp_path / "a" / "two.txt.gz", "wt") as file:
        file.write(texts[1])
    data = load(data=tmp_path / "a", validation_fraction=0.2, test_fraction=0.1)
    for number, text in enumerate(texts):
        parts = [part[number] for part in data.parts().values()]
        assert "".join(parts) == text
        assert all(part.endswith(" ") for part in parts[:2])
        assert len(parts[1]) / len(text) == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_rows_of_tables_are_documents(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"body": LINES, "n": list(range(40))}), path)
    elif kind == "jsonl":
        path.write_text("".join(f'{{"body": "{line}"}}\n' for line in LINES))
    else:
        between = "," if kind == "csv" else "\t"
        path.write_text(f"n{between}body\n" + "".join(f"1{between}{line}\n" for line in LINES))
    assert sorted(everything(load(data=path))) == sorted(LINES)
    with pytest.raises(ForeignDataError, match="has no column 'words'"):
        load(data=path, text_column="words")


def test_given_parts_are_kept_and_copies_are_told(tmp_path):
    for name, lines in (("a", LINES), ("b", LINES[:2]), ("c", ["quite another line"])):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    data = load(data=tmp_path / "a.txt", validation=tmp_path / "b.txt", test=tmp_path / "c.txt",
                document="line")  # fmt: skip
    assert data.train == tuple(LINES)
    assert data.validation == tuple(LINES[:2])
    assert data.notes == ("2 documents of validation found in train, too",)
    drawn = load(data=tmp_path / "a.txt", validation=tmp_path / "b.txt", document="line")
    assert drawn.notes == data.notes
    whole = load(data=tmp_path / "a.txt", validation=tmp_path / "a.txt")
    assert whole.notes == ("1 document of validation found in train, too",)


def test_the_column_of_the_first_table_is_read_in_the_others(tmp_path):
    (tmp_path / "a.csv").write_text("sentence\n" + "\n".join(LINES) + "\n")
    (tmp_path / "b.csv").write_text("text,Sentence\nticket 1,a line\nticket 2,another one\n")
    (tmp_path / "c.csv").write_text("text\nthe last line\n")
    data = load(data=tmp_path / "a.csv", validation=tmp_path / "b.csv", test=tmp_path / "c.csv")
    assert data.validation == ("a line", "another one")
    assert data.test == ("the last line",)


def test_what_comes_with_python_needs_no_download():
    documents = built_in_documents()
    assert len(documents) > 60
    assert sum(map(len, documents)) > 300_000
    assert any("The with statement" in text or '"with" statement' in text for text in documents)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.docx", "x", r"a\.docx: expected a folder, or a file name ending in \.txt"),
        ("a.txt", " \n", "expected texts, got none"),
        ("a.txt", "word", "for validation, got none, as each of fewer than 20 is cut"),
        ("a.csv", "n,m\n1,2\n", "no column looks like the text"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        load(data=tmp_path / name)


def test_copies_that_were_left_out_are_told_where_too_little_is_left(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("text\n" + "".join(f"word{n % 17}\n" for n in range(10_000)))
    with pytest.raises(DataError, match=r"for validation, got none.*9,983 documents left out that"):
        load(data=path)


def test_imdb_is_known_and_its_test_reviews_are_not_trained_on(tmp_path):
    def write(name, header, rows):
        with gzip.open(tmp_path / f"imdb_{name}.tsv.gz", "wt") as file:
            file.writelines("\t".join(row) + "\n" for row in (header, *rows))

    labelled = ["id", "label", "rating", "movie", "text"]
    write("unsup", ["id", "movie", "text"], [["1", "m", text] for text in LINES[:25]])
    for name, texts in (("train", LINES[25:35]), ("test", LINES[33:])):
        write(name, labelled, [["1", "1", "9", "m", text] for text in texts])
    data = load(data=tmp_path)
    assert data.test == tuple(LINES[33:])
    assert sorted(data.train + data.validation) == sorted(LINES[:33])


def test_texts_without_labels_are_for_a_language_model(tmp_path, capsys):
    path = tmp_path / "texts.csv"
    path.write_text("text\n" + "".join(f"{line}\n" for line in LINES))
    assert main(["check", str(path)]) == 0
    out = capsys.readouterr().out
    assert "documents: 32 train, 4 validation, 4 test" in out
    assert f"next    gru-train language --data {path}" in out
