"""What is watched of rows: counted by hand."""

import numpy as np
import pytest

from gru_serving.drift.quantities import COLUMNS, Quantities
from gru_serving.drift.reference import FILE, Reference
from gru_serving.drift.text_reader import TextReader
from gru_serving.errors import InvalidArgument, NotFound
from gru_serving.preprocessing.texts import FindTokens, Tokenizer, Words

WORDS = Tokenizer([FindTokens(r"\w+")])
READER = TextReader(WORDS, Words(["", "[UNK]", "good", "film"]))


def strings(*texts):
    array = np.empty(len(texts), object)
    array[:] = [text.encode() for text in texts]
    return array


def test_texts_and_classes():
    outputs = {
        "label": strings("yes", "no", "yes"),
        "probability": np.array([0.9, 0.8, 0.5]),
        "scores": np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], np.float32),
    }
    rows = Quantities(READER)({"text": strings("good film, good", "ein Film", "")}, outputs)
    assert len(rows) == 3
    assert rows.numbers["text: words"].tolist() == [3, 2, 0]
    assert rows.numbers["text: unknown words"].tolist() == [0, 1, 0]
    np.testing.assert_allclose(rows.numbers["scores: highest"], [0.9, 0.8, 0.5], rtol=1e-6)
    assert rows.names == {"label": ["yes", "no", "yes"]}
    assert rows.texts == ["good film, good", "ein Film", ""]


def test_answers_that_are_not_one_for_each_row():
    """As models of others may give: they are left out."""
    outputs = {
        "label": strings("one for all"),
        "loss": np.float32(3).reshape(()),
        "scores": np.zeros((2, 0), np.float32),
    }
    rows = Quantities(READER)({"text": strings("good", "film")}, outputs)
    assert set(rows.numbers) == {"text: words", "text: unknown words"}
    assert rows.names == {}


def test_several_labels():
    labels = np.array([[b"a", b"b"], [b"", b""]], object)
    rows = Quantities(READER)({"text": strings("x", "y")}, {"labels": labels})
    assert rows.numbers["labels: how many"].tolist() == [2, 0]
    assert rows.names["labels: first"] == ["a", ""]


def test_series_by_their_columns():
    history = np.array([[[1.0, 10.0], [3.0, np.nan]], [[np.nan, 5.0], [np.nan, 7.0]]])
    forecast = np.array([[[4.0], [6.0]], [[1.0], [1.0]]])
    watched = Quantities(TextReader(), {"history": ["load", "heat"], "forecast": ["load"]})
    numbers = watched({"history": history}, {"forecast": forecast}).numbers
    np.testing.assert_array_equal(numbers["history of load: level"], [2, np.nan])
    np.testing.assert_array_equal(numbers["history of load: spread"], [1, np.nan])
    np.testing.assert_array_equal(numbers["history of heat: level"], [10, 6])
    np.testing.assert_array_equal(numbers["history: missing values"], [0.25, 0.5])
    np.testing.assert_array_equal(numbers["forecast of load"], [5, 1])


def test_columns_by_the_names_of_the_request():
    history = np.array([[[1.0, 10.0, 0.0]]])
    names = np.array([[b"heat", b"load", b""]], object)
    watched = Quantities(TextReader(), {"history": ["load", "heat"]})
    numbers = watched({"history": history, "columns": names}, {}).numbers
    assert numbers["history of heat: level"] == [1]
    assert numbers["history of load: level"] == [10]
    assert len([name for name in numbers if "level" in name]) == 2


def test_wide_series_have_few_quantities():
    rows = Quantities(TextReader())({"history": np.zeros((1, 2, 1000))}, {})
    assert len(rows.numbers) == 2 * COLUMNS + 1


def test_a_reference_is_what_was_written(tmp_path):
    rows = Quantities(READER)(
        {"text": strings("good", "film film", "a b c")}, {"label": strings("y", "n", "y")}
    )
    (tmp_path / FILE).parent.mkdir()
    Reference.of(rows, {"history": ["x"]}).write(tmp_path)
    read = Reference.read(tmp_path)
    assert read.rows == 3
    assert read.columns == {"history": ["x"]}
    for name, one in Reference.of(rows, {}).quantities.items():
        assert read.quantities[name].bins == one.bins
        assert read.quantities[name].counts.tolist() == one.counts.tolist()


def test_no_reference_and_a_broken_one(tmp_path):
    with pytest.raises(NotFound, match="export the run again"):
        Reference.read(tmp_path)
    (tmp_path / FILE).parent.mkdir()
    for text, said in (("[]", "not the file"), ("{", "not the file"), ('{"format": 9}', "got 9")):
        (tmp_path / FILE).write_text(text)
        with pytest.raises(InvalidArgument, match=said):
            Reference.read(tmp_path)
