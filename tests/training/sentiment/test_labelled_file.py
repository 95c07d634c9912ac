import json
from dataclasses import replace

import pytest

from gru_training.data.problems import DataProblemsError
from gru_training.errors import DataError
from gru_training.sentiment.config import (
    PretrainingConfig,
    SentimentConfig,
    SentimentDataConfig,
    SoftConfig,
)
from gru_training.sentiment.data import check_sentiment, load_data
from tests.training.sentiment.reading import load_sentiment_data

GOOD = [(f"text number {i}", "ab"[i % 2]) for i in range(20)]


def write(tmp_path, rows):
    path = tmp_path / "a.csv"
    lines = [f'"{text}","{label}"' for text, label in rows]
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return SentimentDataConfig(data=path)


def texts(data):
    return sorted(text for part in data.parts().values() for text in part.texts)


def notes_of(config):
    return "\n".join(load_sentiment_data(config, 0).notes)


def test_all_problems_come_at_once_with_counts_and_first_lines(tmp_path):
    rows = [("", "a"), ("x", ""), *GOOD, (" ", "b"), ("the odd one", "CANCEL"), ("", "a")]
    rows += [(f"several {i}", "['billing', 'cancel']") for i in range(9)]
    with pytest.raises(DataProblemsError) as caught:
        load_sentiment_data(write(tmp_path, rows), 0)
    head, *lines, remedy = str(caught.value).split("\n  ")
    assert head == f"{tmp_path / 'a.csv'}: 4 problems keep it from being trained on"
    assert lines == [
        "line 2: the text is empty (column 'text') (and 2 more such rows, lines 24, 26)",
        "line 3: the label is missing (column 'label')",
        "line 27: expected one label in column 'label', got ['billing', 'cancel']; --target-type "
        "labels reads any number of labels (and 8 more such rows, lines 28, 29, 30, 31, 32 ...)",
        "class 'CANCEL' has 1 row, expected at least 3 (training, validation and test need one "
        "each)",
    ]
    assert remedy == "to train without them: --drop-bad --drop-small-classes"


def test_what_is_dropped_is_counted_and_named_and_the_rest_is_as_without_it(tmp_path):
    rows = [("", "a"), *GOOD, ("x", ""), ("the odd one", "CANCEL")]
    config = replace(write(tmp_path, rows), drop_bad=True, drop_small_classes=True)
    data = load_sentiment_data(config, 0)
    assert data.classes == ("a", "b")
    assert texts(data) == sorted(text for text, _ in GOOD)
    assert data.notes == (
        "1 row dropped (--drop-bad), line 2: the text is empty (column 'text')",
        "1 row dropped (--drop-bad), line 23: the label is missing (column 'label')",
        "1 class with fewer than 3 rows dropped, 1 row in all (--drop-small-classes): 'CANCEL'",
    )


def test_a_list_of_labels_in_json_is_no_label(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"text": text, "label": label} for text, label in GOOD]
    rows[3]["label"] = ["billing", "cancel"]
    rows[4]["text"] = ["tokens", "of", "a", "text"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{oops\n")
    config = SentimentDataConfig(data=path)
    with pytest.raises(DataError) as caught:
        load_sentiment_data(config, 0)
    message = str(caught.value)
    assert """line 4: expected one label in column 'label', got ["billing", "cancel"]""" in message
    assert "line 5: expected a text in column 'text', got" in message
    assert "line 21: not JSON" in message
    assert len(texts(load_sentiment_data(replace(config, drop_bad=True), 0))) == 18


def test_a_name_in_brackets_is_a_label(tmp_path):
    rows = [(text, {"a": "[spam", "b": "[ham]"}[label]) for text, label in GOOD]
    assert load_sentiment_data(write(tmp_path, rows), 0).classes == ("[ham]", "[spam")


def test_spellings_of_a_label_are_told_and_merged_when_asked(tmp_path):
    rows = [*GOOD, *((f"loud {i}", "A") for i in range(3))]
    config = write(tmp_path, rows)
    assert load_sentiment_data(config, 0).classes == ("A", "a", "b")
    assert "'a' (10 rows), 'A' (3 rows); --merge-labels" in notes_of(config)
    merged = replace(config, merge_labels=True)
    data = load_sentiment_data(merged, 0)
    assert data.classes == ("a", "b")
    assert sum((part.labels == 0).sum() for part in data.parts().values()) == 13
    assert "labels read as 'a' (--merge-labels): 'a' (10 rows), 'A' (3 rows)" in notes_of(merged)
    other = tmp_path / "other.csv"
    other.write_text("text,label\none more,A \nand more,B\n")
    held = load_sentiment_data(replace(merged, test=other), 0)
    assert held.classes == ("a", "b")
    assert held.test.labels.tolist() == [0, 1]


def test_repeated_texts_are_told_and_dropped_when_asked(tmp_path):
    rows = [*GOOD, ("Text  NUMBER 0", "a"), ("text number 1", "a")]
    config = write(tmp_path, rows)
    assert "1 row with the text and the label of another, which --drop-dup" in notes_of(config)
    assert "1 text with more than one label" in notes_of(config)
    assert "on lines 3, 23: 'a' and 'b'" in notes_of(config)
    dropped = replace(config, drop_duplicates=True)
    assert texts(load_sentiment_data(dropped, 0)) == sorted(
        text for text, _ in GOOD if text != "text number 1"
    )
    assert "dropped (--drop-duplicates)" in notes_of(dropped)


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([(str(i), label) for i, (_, label) in enumerate(GOOD)], "all texts are numbers, lines 2"),
        ([*GOOD, *((f"w{i}", "n/a") for i in range(3))], "the label 'n/a' (3 rows) counts as a"),
        ([*GOOD, ("long " * 500, "a")], "1 text of more than 400 tokens, which"),
        ([*((f"{t} {i}", "common") for i in range(9) for t, _ in GOOD),
          *((f"other {i}", "comon") for i in range(4))], "'comon' (4 rows) may be a misspelling"),
    ],
)  # fmt: skip
def test_what_was_hardly_meant_is_remarked_on(tmp_path, rows, note):
    assert note in notes_of(write(tmp_path, rows))


def test_the_wrong_label_column_is_guessed(tmp_path):
    rows = [(f"text {i}", f"id {i}") for i in range(50)]
    with pytest.raises(DataError, match=r"50 of 50 classes have too few rows .*--label-column the"):
        load_sentiment_data(write(tmp_path, rows), 0)


def test_a_class_of_three_rows_is_enough(tmp_path):
    data = load_sentiment_data(write(tmp_path, [*GOOD, *((f"c {i}", "c") for i in range(3))]), 0)
    assert [(part.labels == 2).sum() for part in data.parts().values()] == [1, 1, 1]


def vectors(path, size=50):
    line = " ".join(f"0.{i}" for i in range(size))
    path.write_text("".join(f"word{i} {line}\n" for i in range(5000)))
    return path


def test_word_vectors_are_not_taken_for_texts(tmp_path):
    path = vectors(tmp_path / "glove.txt")
    config = SentimentConfig(pretraining=PretrainingConfig(unlabelled=path))
    (error,) = check_sentiment(config).errors
    assert error.startswith(f"--unlabelled: expected one text per line; {path} holds word vectors")
    path.write_text("Some prose with 3 numbers 1 2.\nAnd 1 2 3 4 5 6 7 8 9 10 11 12 of them\n" * 9)
    assert check_sentiment(config).errors == ()


def test_the_table_counts_rows_and_words(tmp_path):
    rows = [*GOOD, ("one two", "c"), ("one", "c"), ("one two three four five", "c")]
    found = check_sentiment(SentimentConfig(data=write(tmp_path, rows)))
    assert found.summary.startswith("23 texts in 3 classes; ")
    assert found.table().rows == [
        ("a", "10", "43.5%", "3", "3"),
        ("b", "10", "43.5%", "3", "3"),
        ("c", "3", "13.0%", "2", "5"),
    ]
    assert found.data.classes == ("a", "b", "c")


@pytest.mark.parametrize(
    "text", ["<br>", "\u200b", "<p></p> &nbsp;", "\u00ad \u200f", "<!-- x -->"]
)
def test_a_text_that_is_empty_once_cleaned_is_called_empty(tmp_path, text):
    config = write(tmp_path, [*GOOD, (text, "a")])
    (error,) = check_sentiment(SentimentConfig(data=config)).errors
    assert "line 22: the text " in error
    assert "is empty once it is cleaned" in error
    assert texts(load_sentiment_data(replace(config, drop_bad=True), 0)) == sorted(
        text for text, _ in GOOD
    )


def test_lengths_are_counted_as_the_model_counts(tmp_path):
    """150 words with signs between them are 450 tokens; 450 tags are none."""
    signs = " ".join(["well,-"] * 150)
    config = write(tmp_path, [*GOOD, (signs, "a"), ("x " + "<i>" * 450, "b"), ("--- ...", "a")])
    notes = load_sentiment_data(config, 0).notes
    assert any(note.startswith("1 text of more than 400 tokens") for note in notes)
    assert "1 text without a letter or digit, such as '--- ...', line 24" in notes


@pytest.mark.parametrize("part", ["validation", "test"])
def test_a_class_that_only_held_out_rows_have_names_their_file_and_lines(tmp_path, part):
    other = tmp_path / "other.csv"
    held = [("one more", "a"), ("odd", "new"), ("and more", "b"), ("odder", "new")]
    other.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in held))
    config = replace(write(tmp_path, GOOD), **{part: other})
    found = check_sentiment(SentimentConfig(data=config))
    assert found.errors == (
        f"{other}, line 3: expected a class of the training rows, 'a', 'b', got 'new' (and 1 more "
        "such row, line 5)",
    )
    assert found.remedies == ("--drop-bad",)
    assert found.summary == "22 texts in 2 classes"
    data = load_sentiment_data(replace(config, drop_bad=True), 0)
    assert set(data.parts()[part].texts) == {"one more", "and more"}
    assert any(
        note.startswith(f"{other}: 2 rows dropped (--drop-bad), lines 3, 5: ")
        for note in data.notes
    )
    other.write_text("text,label\nodd,new\n")
    only = check_sentiment(SentimentConfig(data=config))
    assert "line 2: expected a class of the training rows" in only.errors[0]
    assert not only.remedies  # no row would be left


@pytest.mark.parametrize("flag", ["validation", "test", "more_data"])
def test_the_columns_of_the_first_file_are_read_in_the_others(tmp_path, flag):
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    lines = [f"{text},{n % 7}" for n, (text, _) in enumerate(GOOD)]
    path.write_text("\n".join(["sentence,score", *lines]) + "\n")
    other.write_text("text,Sentence,label,Score\nticket 1,a new text,1,70\nticket 2,another,0,80\n")
    config = SentimentDataConfig(data=path, target_type="number")
    data = load_sentiment_data(
        replace(config, **{flag: (other,) if flag == "more_data" else other}), 0
    )
    found = {
        text: number
        for part in data.parts().values()
        for text, number in zip(part.texts, part.labels, strict=True)
    }
    assert {"a new text": 70, "another": 80}.items() <= found.items()
    assert data.columns == {"text": "sentence", "label": "score"}


def test_the_text_column_of_the_data_is_read_in_soft_data(tmp_path):
    soft = tmp_path / "soft.csv"
    soft.write_text("text,sentence,a,b\nticket 1,a new text,0.2,0.8\n")
    path = tmp_path / "a.csv"
    path.write_text(
        "\n".join(["sentence,label", *(f"{text},{label}" for text, label in GOOD)]) + "\n"
    )
    config = SentimentConfig(data=SentimentDataConfig(data=path), soft=SoftConfig(soft_data=soft))
    assert load_data(config).soft.texts == ("a new text",)
