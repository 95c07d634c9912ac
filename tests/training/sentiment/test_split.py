"""Parts of one's own: files, a column, groups and times in place of chance."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gru_training.errors import ConfigError, DataError
from gru_training.sentiment.config import SentimentDataConfig
from gru_training.sentiment.rows import Row, newest
from tests.training.sentiment.reading import load_sentiment_data


def write(path: Path, rows, columns=("text", "label")):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def texts(first, last):
    return [(f"text number {i}", "ab"[i % 2]) for i in range(first, last)]


def test_parts_come_from_files_and_only_the_rest_is_drawn(tmp_path):
    config = SentimentDataConfig(
        data=write(tmp_path / "a.csv", texts(0, 20)),
        more_data=(write(tmp_path / "b.csv", texts(20, 40)),),
        test=write(tmp_path / "test.csv", texts(40, 50)),
    )
    data = load_sentiment_data(config, 0)
    assert data.test.texts == tuple(text for text, _ in texts(40, 50))
    assert len(data.validation) == 4  # a tenth of the 40, stratified
    both = replace(config, validation=write(tmp_path / "v.csv", texts(50, 55)))
    data = load_sentiment_data(both, 0)
    assert data.train.texts == tuple(text for text, _ in texts(0, 40))
    assert data.validation.texts == tuple(text for text, _ in texts(50, 55))
    assert data.validation.labels.tolist() == [0, 1, 0, 1, 0]


def test_texts_that_are_in_two_parts_are_named_with_file_and_line(tmp_path):
    again = [("Text NUMBER  3", "b"), ("text number 21", "b")]
    config = SentimentDataConfig(
        data=write(tmp_path / "a.csv", texts(0, 20)),
        more_data=(write(tmp_path / "b.csv", texts(20, 40)),),
        test=write(tmp_path / "t.csv", [*again, *texts(90, 95)]),
        validation=write(tmp_path / "v.csv", texts(60, 70)),
    )
    data = load_sentiment_data(config, 0)
    assert data.notes == (
        "2 training rows dropped (line 5, b.csv line 3): their text is also held out elsewhere",
    )
    assert len(data.train) == 38


def test_a_small_class_may_be_trained_on_where_the_parts_are_given(tmp_path):
    config = SentimentDataConfig(
        data=write(tmp_path / "a.csv", [*texts(0, 20), ("the only one", "c")]),
        validation=write(tmp_path / "v.csv", texts(20, 30)),
        test=write(tmp_path / "t.csv", texts(30, 40)),
    )
    assert load_sentiment_data(config, 0).classes == ("a", "b", "c")


def test_problems_of_every_file_are_told_at_once(tmp_path):
    config = SentimentDataConfig(
        data=write(tmp_path / "a.csv", [("", "a"), *texts(0, 20)]),
        test=write(tmp_path / "t.csv", [("x", ""), *texts(30, 40)]),
    )
    with pytest.raises(DataError) as caught:
        load_sentiment_data(config, 0)
    assert "line 2: the text is empty" in str(caught.value)
    assert f"{tmp_path / 't.csv'}, line 2: the label is missing" in str(caught.value)
    unknown = write(tmp_path / "u.csv", [("x", "never seen")])
    config = replace(config, drop_bad=True, test=unknown)
    with pytest.raises(
        DataError, match=r"u.csv, line 2: expected a class of the training rows, .* got 'never"
    ):
        load_sentiment_data(config, 0)


def test_a_column_names_the_part(tmp_path):
    names = ["train", "Training", "dev", "test"]
    rows = [(*row, names[i % 4]) for i, row in enumerate(texts(0, 40))]
    path = write(tmp_path / "a.csv", rows, ("text", "label", "part"))
    config = SentimentDataConfig(data=path, part_column="part")
    data = load_sentiment_data(config, 0)
    assert data.validation.texts == tuple(rows[i][0] for i in range(2, 40, 4))
    assert data.test.texts == tuple(rows[i][0] for i in range(3, 40, 4))
    assert len(data.train) == 20
    write(path, [*rows, ("one more", "a", "holdout")], ("text", "label", "part"))
    with pytest.raises(DataError, match="line 42: expected train, validation or test in column"):
        load_sentiment_data(config, 0)
    assert len(load_sentiment_data(replace(config, drop_bad=True), 0).train) == 20
    with pytest.raises(DataError, match="has no column 'where'"):
        load_sentiment_data(replace(config, part_column="where"), 0)


def test_groups_are_not_split(tmp_path):
    rows = [(f"text {i}", "ab"[i % 2], f"customer {i // 5}") for i in range(200)]
    path = write(tmp_path / "a.csv", rows, ("text", "label", "customer"))
    group = {text: customer for text, _, customer in rows}
    config = SentimentDataConfig(data=path, group_column="customer")
    data = load_sentiment_data(config, 3)
    customers = [{group[text] for text in part.texts} for part in data.parts().values()]
    assert all(customers)
    assert not customers[0] & customers[1]
    assert not customers[0] & customers[2]
    assert not customers[1] & customers[2]
    # Groups of a test file are kept out of training.
    held = [("something new", "a", "customer 7"), *((f"n {i}", "b", "other") for i in range(4))]
    config = replace(config, test=write(tmp_path / "t.csv", held, ("text", "label", "customer")))
    data = load_sentiment_data(config, 3)
    assert "customer 7" not in {group[text] for text in data.train.texts}
    assert any("their group is also held out elsewhere" in note for note in data.notes)


def test_the_newest_rows_are_tested_on(tmp_path):
    rng = np.random.default_rng(0)
    days = rng.permutation(np.arange("2024-01-01", "2024-04-10", dtype="datetime64[D]"))
    rows = [(f"text {i}", "ab"[i % 2], str(day)) for i, day in enumerate(days)]
    path = write(tmp_path / "a.csv", rows, ("text", "label", "created"))
    data = load_sentiment_data(SentimentDataConfig(data=path, time_column="created"), 0)
    when = {text: day for text, _, day in rows}
    sizes = [len(part) for part in data.parts().values()]
    assert sizes == [80, 10, 10]
    train, validation, test = ([when[t] for t in part.texts] for part in data.parts().values())
    assert max(train) < min(validation) <= max(validation) < min(test)
    assert data.notes[0].startswith("split in the order of 'created': training 2024-01-01")
    rows[4] = (*rows[4][:2], "yesterday")
    write(path, rows, ("text", "label", "created"))
    with pytest.raises(DataError, match="expected a time, such as 2024-05-31 13:00, got") as caught:
        load_sentiment_data(SentimentDataConfig(data=path, time_column="created"), 0)
    assert "line 6, column 'created'" in str(caught.value)


@pytest.mark.parametrize("missing", ["nan", "", "inf"])
def test_a_row_without_a_number_for_its_time_is_told(tmp_path, missing):
    rows = [(f"text {i}", "ab"[i % 2], missing if i == 7 else 1.5 + i) for i in range(30)]
    path = write(tmp_path / "a.csv", rows, ("text", "label", "created"))
    config = SentimentDataConfig(data=path, time_column="created")
    message = (
        f"line 9, column 'created': expected a time, such as 2024-05-31 13:00, got '{missing}'"
    )
    with pytest.raises(DataError, match=message):
        load_sentiment_data(config, 0)
    data = load_sentiment_data(replace(config, drop_bad=True), 0)
    assert data.notes[0].startswith("1 row dropped (--drop-bad), line 9")
    assert data.test.texts == ("text 27", "text 28", "text 29")


def test_numbers_that_order_rows_are_told_as_numbers(tmp_path):
    rows = [(f"text {i}", "ab"[i % 2], 2000 + i) for i in range(30)]
    path = write(tmp_path / "a.csv", rows, ("text", "label", "year"))
    data = load_sentiment_data(SentimentDataConfig(data=path, time_column="year"), 0)
    expected = "training 2000 to 2023, validation 2024 to 2026, test 2027 to 2029"
    assert data.notes == (f"split in the order of 'year': {expected}",)


def test_rows_of_one_time_stay_together():
    rows = [Row(f"t{i}", 0, time=float(time)) for i, time in enumerate([1, 2, 2, 2, 3])]
    older, newer = newest(rows, 0.4)
    assert [row.time for row in older] == [1]
    assert [row.time for row in newer] == [2, 2, 2, 3]
    older, newer = newest(rows[:0:-1], 0.5)  # of most, the time is the first
    assert ([row.time for row in older], [row.time for row in newer]) == ([2, 2, 2], [3])
    with pytest.raises(DataError, match="one time for all"):
        newest([Row("a", 0), Row("b", 1)], 0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"part_column": "p", "group_column": "g"}, "--part-column and --group-column say"),
        ({"fold": 0, "time_column": "t"}, "--fold and --time-column say differently"),
        ({"test": Path("t.csv"), "fold": 1}, "--validation or --test and --fold say"),
        ({"label_separator": ";", "target_type": "class"}, "is for --target-type labels, got cl"),
        ({"label_columns": ("a", "b"), "target_type": "number"}, "labels or class, got number"),
        ({"label_columns": ("a", "b"), "label_column": "c"}, "--label-columns excludes"),
    ],
)
def test_ways_that_exclude_each_other(settings, message):
    with pytest.raises(ConfigError, match=message):
        SentimentDataConfig(data=Path("a.csv"), **settings)


def test_settings_for_files_are_refused_with_a_folder(tmp_path):
    (tmp_path / "rt-polarity.pos").write_text("good\n")
    with pytest.raises(DataError, match="--time-column is for a file of your own"):
        load_sentiment_data(SentimentDataConfig(data=tmp_path, time_column="t"), 0)


def test_training_rows_that_almost_are_held_out_are_told_and_dropped(tmp_path, monkeypatch):
    body = "the app on my phone has crashed {} since the update of last week, please help"
    near = [(body.format("twice"), "a"), (body.format("twite"), "b")]
    config = SentimentDataConfig(
        data=write(tmp_path / "a.csv", [*texts(0, 20), *near]),
        test=write(tmp_path / "t.csv", [*texts(90, 95), (body.format("twixe"), "a")]),
        validation=write(tmp_path / "v.csv", texts(60, 70)),
    )
    data = load_sentiment_data(config, 0)
    assert data.notes == (
        "2 training rows with almost the text of a row that is held out (line 22 like t.csv line "
        "7, line 23 like t.csv line 7), 1 with another label; they stay, and "
        "--drop-near-duplicates removes them",
    )
    assert len(data.train) == 22
    dropped = load_sentiment_data(replace(config, drop_near_duplicates=True), 0)
    assert dropped.train.texts == tuple(text for text, _ in texts(0, 20))
    assert dropped.notes[0].startswith("2 training rows dropped, almost the text of a row")
    monkeypatch.setattr("gru_training.sentiment.rows._MOST_LETTERS", 100)
    assert not load_sentiment_data(config, 0).notes
    with pytest.raises(DataError, match="--drop-near-duplicates is for texts of at most 100 char"):
        load_sentiment_data(replace(config, drop_near_duplicates=True), 0)


@pytest.mark.parametrize("part", ["test", "validation"])
def test_a_part_that_holds_all_texts_is_told(tmp_path, part):
    config = SentimentDataConfig(data=write(tmp_path / "a.csv", texts(0, 20)))
    all_of_them = write(tmp_path / "b.csv", texts(0, 30))
    with pytest.raises(DataError, match=f"expected texts that --{part} does not have, got none"):
        load_sentiment_data(replace(config, **{part: all_of_them}), 0)
    assert len(load_sentiment_data(config, 0).train)  # as the error advises
