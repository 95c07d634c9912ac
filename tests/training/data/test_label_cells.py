"""Several labels, numbers, and files in which the kind is found."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gru_training.data.label_cells import LabelCells
from gru_training.data.problems import Problems
from gru_training.data.text_files import read_text_file
from gru_training.errors import DataError, ForeignDataError
from gru_training.estimators.text_source import text_source
from gru_training.sentiment.config import SentimentConfig, SentimentDataConfig
from gru_training.sentiment.data import check_sentiment
from tests.training.sentiment.reading import load_sentiment_data


def read(label, labels, nested=()):
    return labels.read({"label": label}, frozenset(nested), "label")


def test_several_labels_in_one_cell():
    by_comma = LabelCells("labels", separator=",")
    assert read(" billing, bug ,billing", by_comma) == ("billing", "bug")
    assert read("", by_comma) == ()
    assert read("['a', 'b; c']", LabelCells("labels")) == ("a", "b; c")
    assert read('["x", 3]', LabelCells("labels"), ["label"]) == ("x", "3")
    with pytest.raises(ValueError, match="expected a list of labels in column 'label', got"):
        read('[["a"]]', LabelCells("labels"), ["label"])
    with pytest.raises(ValueError, match="the label is missing"):
        read(None, LabelCells("labels"))
    assert read("b,a,b", by_comma) == ("b", "a")


def test_numbers():
    assert read(" 4.5 ", LabelCells("number")) == ("4.5",)
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


YES = (
    *("1", "1.0", "1.00", "1,0", "True", "TRUE", "true", "yes", "Yes", "Y", "y", "T", "t"),
    *("x", "X", "✓", "on", " 1 ", "+", "WAHR", "VRAI", "verdadero", "Ja", "oui", "Sí", "✅"),
)
NO = (
    *("0", "0.0", "0.00", "0,0", "-0.0", "False", "FALSE", "false", "no", "No", "N", "n", "F"),
    *("FALSCH", "FAUX", "falso", "Nein", "non", "✗", "❌"),
    *("f", "off", "-", "", "NaN", "nan", "NA", "<NA>", "null", "None", "#N/A", "  "),
)
MEANT = st.lists(st.tuples(*[st.booleans()] * 3), min_size=2, max_size=12)
NAMES = ("ok", "bad", "other")


def read_columns(path):
    labels = LabelCells("labels", NAMES)
    problems = Problems(str(path))
    rows, _ = read_text_file(path, "text", None, problems, labels, {})
    problems.close_rows()
    problems.raise_errors()
    return [set(row.labels) for row in rows], problems.notes


def named(meant):
    return [{name for name, yes in zip(NAMES, row, strict=True) if yes} for row in meant]


@given(meant=MEANT, mixed=st.booleans(), data=st.data())
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_yes_and_no_in_every_way_of_writing_them(tmp_path, meant, mixed, data):
    """Each column in a way of its own, or each cell: what is read is what was meant."""
    ways = {yes: st.sampled_from(YES if yes else NO) for yes in (True, False)}
    by_column = [{yes: data.draw(way) for yes, way in ways.items()} for _ in NAMES]
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", *NAMES])
        for number, row in enumerate(meant):
            cells = [
                data.draw(ways[yes]) if mixed else column[yes]
                for yes, column in zip(row, by_column, strict=True)
            ]
            writer.writerow([f"text {number}", *cells])
    found, notes = read_columns(path)
    assert found == named(meant)
    for place, name in enumerate(NAMES):
        said = any(note.startswith(f"no row has the label {name!r}") for note in notes)
        assert said == (not any(row[place] for row in meant))


@pytest.mark.slow
@given(meant=MEANT, data=st.data())
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_yes_and_no_as_frames_and_json_hold_them(tmp_path, meant, data):
    """As pandas types a column by what stands in it: whole numbers with a gap are floats."""
    gap = data.draw(st.booleans())
    truth = pd.DataFrame(meant, columns=list(NAMES))
    ways = [
        truth,
        truth.astype(int),
        truth.astype(float).where(truth | (not gap)),
        truth.astype("Int64").where(truth | (not gap)),
        truth.astype("boolean").where(truth | (not gap)),
        truth.astype(str),
        truth.astype(np.float32),
    ]
    for way in ways:
        frame = way.assign(text=[f"text {number}" for number in range(len(meant))])
        path = tmp_path / "a.csv"
        frame.to_csv(path, index=False)
        assert read_columns(path)[0] == named(meant)
        frame.to_json(path := tmp_path / "a.jsonl", orient="records", lines=True)
        assert read_columns(path)[0] == named(meant)
        for table in (frame, pl.from_pandas(frame)):
            source = text_source(table, text="text", label=list(NAMES))
            assert [set(row.labels) for row in source.table.rows] == named(meant)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        # A cell that says neither, among others that do.
        (
            [*["1.0,0.0", "0.0,1.0"] * 5, "maybe,0.0", "1.0,2"],
            r"line 12: expected yes or no in column 'urgent', got 'maybe'; write yes and no as 1",
        ),
        ([*["1,0", "0,1"] * 5, "0,2"], "line 12: expected yes or no in column 'billing', got '2'"),
        (["-1,1", "1,-1", *["1,1"] * 8], "line 2: expected yes or no in column 'urgent', got '-1'"),
        # Probabilities, marks, and words of another language.
        (["0.93,0.1", "0.25,0.8"], "line 2: expected the name of a label in column 'urgent', g"),
        (["3,5", "4,1", "2,2"], "line 2: expected the name of a label in column 'urgent', got '3'"),
        (["bai,ez", "ez,bai"], "line 2: expected the name of a label in column 'urgent', got"),
        # One column of yes and no beside one of names.
        (["1,slow", "0,late", "1,late"], "column 'urgent', got '1'; columns of yes and no have"),
    ],
)
def test_what_is_neither_yes_nor_no_names_the_cell(tmp_path, rows, message):
    config = columns_file(tmp_path / "a.csv", [f"text {n},{row}" for n, row in enumerate(rows)])
    with pytest.raises(DataError, match=message):
        load_sentiment_data(config, 0)
    found = check_sentiment(SentimentConfig(data=config))
    assert re.search(message, "\n".join(found.errors))
    if found.remedies:  # they help
        assert set(found.remedies) == {"--drop-bad"}
        assert not check_sentiment(SentimentConfig(data=replace(config, drop_bad=True))).errors
    frame = pd.read_csv(config.data, dtype=str)
    with pytest.raises(DataError, match=r"data, row \d+: expected"):
        text_source(frame, text="text", label=["urgent", "billing"])


def test_codes_of_topics_are_names(tmp_path):
    rows = [f"text {i},{17 + i % 3},{1 if i % 2 else ''}" for i in range(30)]
    data = load_sentiment_data(columns_file(tmp_path / "a.csv", rows), 0)
    assert data.classes == ("1", "17", "18", "19")


def test_a_label_on_every_row_or_on_none_is_said(tmp_path):
    rows = [f"text {i},1.0,0.0" for i in range(30)]
    config = columns_file(tmp_path / "a.csv", rows)
    notes = load_sentiment_data(config, 0).notes
    assert any(note.startswith("every row has the label 'urgent' (30 rows)") for note in notes)
    assert any(note.startswith("no row has the label 'billing'") for note in notes)
    frame = pd.read_csv(config.data)
    table = text_source(frame, text="text", label=["urgent", "billing"]).table
    data = load_sentiment_data(SentimentDataConfig(), 0, table)
    assert [note for note in data.notes if "label" in note] == [n for n in notes if "label" in n]


def test_empty_cells_beside_no_are_said(tmp_path):
    rows = [f"text {i},{('1.0', '0.0', '')[i % 3]},{i % 2}" for i in range(30)]
    notes = load_sentiment_data(columns_file(tmp_path / "a.csv", rows), 0).notes
    assert "10 empty cells in --label-columns read as no, as 0 is" in notes


ANSWERED = {"user_id": "ann", "status": "submitted"}
TOOLS = {
    "a list": lambda names: names,
    "a list in a text": json.dumps,
    "Python's list": repr,
    "Label Studio": lambda names: {"choices": names},
    "Label Studio in CSV": lambda names: json.dumps({"choices": names}),
    "Argilla": lambda names: [{"value": name, **ANSWERED} for name in names],
    "Argilla, several labels": lambda names: [{"value": names, **ANSWERED}],
    "Argilla, two who agree": lambda names: [{"value": name, **ANSWERED} for name in names] * 2,
    "doccano": lambda names: [{"label": name, "user": 1} for name in names],
    "spaCy": lambda names: {name: float(name in names) for name in ("bug", "billing", "other")},
    "spaCy, truth": lambda names: {name: name in names for name in ("bug", "billing", "other")},
}


def tool_file(path, form, labels, column="label"):
    rows = [{"text": f"text {i}", column: form(names)} for i, names in enumerate(labels)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return SentimentDataConfig(data=path)


def labels_of(data):
    """The names of each text's labels, whatever their kind."""
    found = {}
    for part in data.parts().values():
        for text, label in zip(part.texts, part.labels, strict=True):
            held = [int(label)] if data.kind == "class" else np.flatnonzero(label)
            found[text] = {data.classes[number] for number in held}
    return found


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("several", [False, True])
def test_labels_as_annotation_tools_write_them(tmp_path, tool, several):
    """Of one label each they are classes, in a file and in memory; of more they are labels."""
    drawn = [["bug"], ["billing"], ["bug", "billing"], []]
    meant = [drawn[i % (4 if several else 2)] for i in range(40)]
    form = TOOLS[tool]
    config = tool_file(tmp_path / "a.jsonl", form, meant)
    expected = {f"text {i}": set(names) for i, names in enumerate(meant)}
    note = "each list of labels holds one, which is read as the class of the row"
    texts = list(expected)
    source = text_source(texts, [form(names) for names in meant])
    for data in (
        load_sentiment_data(config, 0),
        load_sentiment_data(SentimentDataConfig(), 0, source.table),
    ):
        assert data.kind == ("labels" if several else "class")
        assert labels_of(data) == expected
        assert any(said.startswith(note) for said in data.notes) != several
    if not several:
        as_labels = load_sentiment_data(replace(config, target_type="labels"), 0)
        assert as_labels.kind == "labels"
        assert labels_of(as_labels) == expected
        assert not check_sentiment(
            SentimentConfig(data=replace(config, target_type="class"))
        ).errors


@pytest.mark.parametrize("column", ["cats", "accept", "annotations", "label.responses", "labels"])
def test_columns_of_labels_as_annotation_tools_call_them(tmp_path, column):
    config = tool_file(tmp_path / "a.jsonl", list, [["a"], ["b"]] * 10, column)
    assert load_sentiment_data(config, 0).classes == ("a", "b")


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ([{"label": "a", "score": 0.9}], "are given with --soft-data"),
        ({"a": 0.7, "b": 0.3}, r"not 0\.7; probabilities to learn from are given with --soft-data"),
        ([{"start": 0, "end": 3, "label": "PER"}], "labels of parts of a text are not read"),
        ([[0, 3, "PER"]], r"expected a list of labels in column 'label', got \[\[0, 3"),
        ([0, 1, 0], "yes and no by their place say no names"),
        ([False, True], "yes and no by their place say no names"),
    ],
)
def test_lists_that_hold_no_labels_are_refused_with_the_way_out(tmp_path, label, message):
    config = tool_file(tmp_path / "a.jsonl", lambda _: label, [["a"]] * 9)
    found = check_sentiment(SentimentConfig(data=config))
    assert re.search(message, "\n".join(found.errors))
    assert not found.remedies  # no row would be left
    with pytest.raises(DataError, match="expected labels for each text, got"):
        text_source([f"text {i}" for i in range(9)], [label] * 9)


def test_what_argilla_holds_back_is_no_label(tmp_path):
    def form(names):
        kept = [{"value": "odd", "status": state} for state in ("discarded", "draft")]
        return [*kept, *({"value": name, **ANSWERED} for name in names)]

    data = load_sentiment_data(tool_file(tmp_path / "a.jsonl", form, [["a"], ["b"]] * 10), 0)
    assert data.classes == ("a", "b")


def test_two_labels_where_one_is_expected_say_how_to_read_both(tmp_path):
    labels = [["a"], ["b"]] * 10 + [["a", "b"]]
    config = tool_file(tmp_path / "a.jsonl", list, labels)
    single = SentimentConfig(data=replace(config, target_type="class"))
    (error,) = check_sentiment(single).errors
    assert error.endswith('got ["a", "b"]; --target-type labels reads any number of labels')
    assert check_sentiment(single).remedies == ("--drop-bad",)
    assert not check_sentiment(SentimentConfig(data=replace(single.data, drop_bad=True))).errors
    assert load_sentiment_data(replace(config, target_type="labels"), 0).kind == "labels"


def test_a_label_that_prodigy_rejects_is_not_the_label(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [
        {"text": f"t {i}", "label": "ab"[i % 2], "answer": ("accept", "reject", "ignore")[i % 3]}
        for i in range(60)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = check_sentiment(SentimentConfig(data=SentimentDataConfig(data=path)))
    rejected, ignored = found.errors
    assert "line 2: expected the label in column 'label' to apply to the text" in rejected
    assert "line 3: expected a text with a label, got Prodigy's 'answer' 'ignore'" in ignored
    assert found.remedies == ("--drop-bad", "--drop-bad")
    kept = load_sentiment_data(SentimentDataConfig(data=path, drop_bad=True), 0)
    assert set(labels_of(kept)) == {f"t {i}" for i in range(0, 60, 3)}
    yes_or_no = load_sentiment_data(SentimentDataConfig(data=path, label_column="answer"), 0)
    assert yes_or_no.classes == ("accept", "ignore", "reject")


def one_hot(way):
    names = [NAMES[i % 3] for i in range(30)]
    texts = pd.DataFrame({"id": range(30), "text": [f"text {i}" for i in range(30)]})
    return texts.join(way(pd.get_dummies(pd.Series(names)))), names


@pytest.mark.parametrize(
    "way",
    [lambda d: d, lambda d: d.astype(int), lambda d: d.astype(float), lambda d: d.astype(str)],
)
def test_columns_of_yes_and_no_without_a_label_column_are_told(tmp_path, way):
    """The error has the flags that read them, as classes where each row has one."""
    frame, names = one_hot(way)
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    with pytest.raises(ForeignDataError, match="to one of them in each row, which --target") as no:
        load_sentiment_data(SentimentDataConfig(data=path), 0)
    flags = ("--target-type", "class", "--label-columns", "bad", "ok", "other")
    assert no.value.flags == flags
    config = SentimentDataConfig(
        data=path, target_type="class", label_columns=("bad", "ok", "other")
    )
    data = load_sentiment_data(config, 0)
    assert data.kind == "class"
    assert labels_of(data) == {f"text {i}": {name} for i, name in enumerate(names)}
    with pytest.raises(
        DataError, match=r"which label=\['bad', 'ok', 'other'\] and target_type=\"c"
    ):
        text_source(frame)
    source = text_source(frame, None, config_of("class"), label=list(NAMES))
    assert [row.labels for row in source.table.rows] == [(name,) for name in names]
    assert source.table.kind == "class"


def config_of(kind):
    return SentimentDataConfig(target_type=kind)


def test_one_label_in_each_row_of_columns_is_told(tmp_path):
    frame, _ = one_hot(lambda dummies: dummies)
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    config = SentimentDataConfig(data=path, label_columns=NAMES)
    notes = load_sentiment_data(config, 0).notes
    (told,) = (each for each in notes if each.startswith("each row has one of --label-columns; "))
    assert text_source(frame["text"], frame[list(NAMES)]).table.notes == [told]
    assert not text_source(frame["text"], frame[list(NAMES)], config_of("class")).table.notes
    frame.loc[4, list(NAMES)] = [True, True, False]
    frame.to_csv(path, index=False)
    assert not any("each row has one" in each for each in load_sentiment_data(config, 0).notes)
    with pytest.raises(
        DataError, match=r"expected one of --label-columns ok bad other, got 'ok', "
    ):
        load_sentiment_data(replace(config, target_type="class"), 0)


def test_lists_of_numbers_are_names_where_they_are_no_places(tmp_path):
    config = tool_file(tmp_path / "a.jsonl", list, [[0, 1], [0], [1], [3, 0]] * 5)
    assert load_sentiment_data(config, 0).classes == ("0", "1", "3")


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("is_spam", [True, False], "the column 'is_spam' says yes or no"),
        ("is_spam", ["yes", "no"], "the column 'is_spam' says yes or no"),
        ("stars", [1, 2, 3, 4, 5], "the column 'stars' holds 5 different values"),
    ],
)
def test_the_only_column_beside_the_texts_is_told(tmp_path, name, values, reason):
    path = tmp_path / "a.csv"
    rows = [(f"text {i}", values[i % len(values)]) for i in range(40)]
    pd.DataFrame(rows, columns=["text", name]).to_csv(path, index=False)
    with pytest.raises(ForeignDataError, match=reason) as told:
        load_sentiment_data(SentimentDataConfig(data=path), 0)
    assert told.value.flags == ("--label-column", name)
    data = load_sentiment_data(SentimentDataConfig(data=path, label_column=name), 0)
    assert len(data.classes) == len(values)


def test_labels_in_one_cell_name_their_separator(tmp_path):
    names = ["bug", "billing", "bug#billing", "urgent#bug", "urgent", "urgent#billing"]
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "".join(f"text {i},{names[i % 6]}\n" for i in range(60)))
    note = "labels such as 'bug#billing' look like several in one cell; --label-separator '#' reads"
    config = SentimentDataConfig(data=path)
    for separator in (None, ";"):
        told = load_sentiment_data(replace(config, label_separator=separator), 0).notes
        assert any(said.startswith(note) for said in told)
    data = load_sentiment_data(replace(config, label_separator="#"), 0)
    assert data.classes == ("billing", "bug", "urgent")
