"""Several labels, numbers, and files in which the kind is found."""

import json

import pytest

from gru_training.data.label_cells import LabelCells, names_in, several
from gru_training.errors import DataError
from gru_training.sentiment.config import SentimentDataConfig
from gru_training.sentiment.data import load_sentiment_data


def read(label, labels, nested=()):
    return labels.read({"label": label}, frozenset(nested), "label")


def test_several_labels_in_one_cell():
    by_comma = LabelCells("labels", separator=",")
    assert names_in(read(" billing, bug ,billing", by_comma)) == ("billing", "bug")
    assert names_in(read("", by_comma)) == ()
    assert names_in(read("['a', 'b; c']", LabelCells("labels"))) == ("a", "b; c")
    assert names_in(read('["x", 3]', LabelCells("labels"), ["label"])) == ("x", "3")
    with pytest.raises(ValueError, match="expected a list of labels in column 'label', got"):
        read('[["a"]]', LabelCells("labels"), ["label"])
    with pytest.raises(ValueError, match="the label is missing"):
        read(None, LabelCells("labels"))
    assert names_in(several(["b", "a", "b"])) == ("b", "a")


def test_numbers():
    assert read(" 4.5 ", LabelCells("number")) == "4.5"
    for bad in ("five", "nan", "inf"):
        with pytest.raises(ValueError, match=f"expected a number in column 'label', got {bad}"):
            read(bad, LabelCells("number"))


def columns_file(path, rows):
    path.write_text("text,urgent,billing\n" + "".join(f"{row}\n" for row in rows))
    return SentimentDataConfig(data=path, label_columns=("urgent", "billing"))


def test_columns_of_zero_and_one_are_labels_by_their_names(tmp_path):
    rows = [f"text {i},{i % 2},{'yes' if i % 3 == 0 else ''}" for i in range(40)]
    data = load_sentiment_data(columns_file(tmp_path / "a.csv", rows), 0)
    assert (data.kind, data.classes) == ("labels", ("billing", "urgent"))
    for part in data.parts().values():
        numbers = [int(text.split()[1]) for text in part.texts]
        assert part.labels.tolist() == [[float(i % 3 == 0), float(i % 2)] for i in numbers]
    assert any("rows without any label" in note for note in data.notes)


def test_columns_of_names_are_labels(tmp_path):
    rows = [f"text {i},{'ab'[i % 2]},{'c' if i % 3 else ''}" for i in range(30)]
    data = load_sentiment_data(columns_file(tmp_path / "a.csv", rows), 0)
    assert data.classes == ("a", "b", "c")


def test_lists_in_json_lines_are_found(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [
        {"text": f"t {i}", "label": ["bug"] if i % 2 else ["bug", "billing"]} for i in range(30)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = load_sentiment_data(SentimentDataConfig(data=path), 0)
    assert (data.kind, data.classes) == ("labels", ("billing", "bug"))
    with pytest.raises(DataError, match="expected one label in column 'label'"):
        load_sentiment_data(SentimentDataConfig(data=path, target_type="class"), 0)


def test_numbers_to_estimate_are_spread_over_the_parts(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,stars\n" + "".join(f"text {i},{i / 10}\n" for i in range(200)))
    config = SentimentDataConfig(data=path, label_column="stars", target_type="number")
    data = load_sentiment_data(config, 0)
    assert (data.kind, data.classes) == ("number", ("stars",))
    for part in data.parts().values():
        assert part.labels.dtype == "float32"
        assert [float(t.split()[1]) / 10 for t in part.texts] == pytest.approx(part.labels)
    # A tenth of every tenth of the numbers.
    assert sorted(int(value // 2) for value in data.test.labels) == sorted([*range(10)] * 2)
    path.write_text("text,stars\n" + "".join(f"text {i},3\n" for i in range(20)))
    with pytest.raises(DataError, match="expected different numbers, got 20 rows of one"):
        load_sentiment_data(config, 0)
