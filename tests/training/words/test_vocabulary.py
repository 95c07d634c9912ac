import threading

import numpy as np
import pytest
import tensorflow as tf

from gru_training.errors import DataError
from gru_training.words.vocabulary import (
    TextPreprocessor,
    Vocabulary,
    build_vocabulary,
    index_tokens,
    load_vocabulary,
    token_ids,
)


@pytest.fixture
def vocabulary():
    return build_vocabulary(index_tokens(["the film is not bad", "The film is bad , bad"]), 100)


def test_most_frequent_first_then_by_code_point(vocabulary):
    assert vocabulary.tokens == ("[PAD]", "[UNK]", "bad", "film", "is", "the", ",", "not")
    index = index_tokens(["b b a c"])
    assert build_vocabulary(index, 2).tokens == ("[PAD]", "[UNK]", "b", "a")
    assert build_vocabulary(index, 9, min_count=2).tokens == ("[PAD]", "[UNK]", "b")


def test_chunks_keep_their_order_and_start_no_python_thread(monkeypatch):
    """Eager operations in several Python threads sometimes crashed the interpreter."""

    def refuse(thread):
        raise AssertionError(f"{thread} was started")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    index = index_tokens([f"word{n} and" for n in range(2500)])
    assert index.tokens[0] == "and"
    assert index.counts[0] == 2500
    assert [index.tokens[row[0]] for row in index.rows] == [f"word{n}" for n in range(2500)]


def test_no_texts_have_no_tokens():
    index = index_tokens([])
    assert (index.tokens, index.rows, len(index.counts)) == ([], [], 0)


def test_ids_are_padded_with_0_and_unknown_words_are_1(vocabulary):
    ids = TextPreprocessor(vocabulary, 10)(tf.constant(["the film", "", "[PAD] not film at all"]))
    assert ids.dtype == tf.int32
    np.testing.assert_array_equal(
        ids, [[5, 3, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 7, 3, 1, 1]]
    )


def test_at_least_one_column_and_the_last_tokens_of_long_texts(vocabulary):
    preprocessor = TextPreprocessor(vocabulary, 2)
    np.testing.assert_array_equal(preprocessor(tf.constant(["", " "])), [[0], [0]])
    assert preprocessor(tf.constant([], tf.string)).shape == (0, 1)
    np.testing.assert_array_equal(preprocessor(tf.constant(["the film is bad"])), [[4, 2]])
    assert preprocessor.tokens(tf.constant(["the film is bad"])).to_list() == [[b"is", b"bad"]]


def test_a_row_does_not_depend_on_its_neighbours(vocabulary):
    preprocessor = TextPreprocessor(vocabulary, 10)
    alone = preprocessor(tf.constant(["not bad"])).numpy()
    among = preprocessor(tf.constant(["the the the the", "not bad"])).numpy()
    np.testing.assert_array_equal(among[1, :2], alone[0])
    assert not among[1, 2:].any()


def test_saved_model_answers_alike(vocabulary, tmp_path):
    module = tf.Module()
    module.preprocessor = TextPreprocessor(vocabulary, 10)
    module.serve = tf.function(
        module.preprocessor.__call__, input_signature=[tf.TensorSpec([None], tf.string)]
    )
    texts = tf.constant(["It isn't BAD", b"\xff film", ""])
    tf.saved_model.save(module, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    np.testing.assert_array_equal(loaded.serve(texts), module.preprocessor(texts))


def test_token_ids_have_no_padding(vocabulary):
    rows = token_ids(TextPreprocessor(vocabulary, 10), ["the film is bad", "", "zzz"])
    assert [row.tolist() for row in rows] == [[5, 3, 4, 2], [0], [1]]


def test_vocabulary_file_round_trip(vocabulary, tmp_path):
    path = tmp_path / "vocabulary.txt"
    vocabulary.save(path)
    assert path.read_text("utf-8").split("\n")[2] == "bad"
    assert load_vocabulary(path) == vocabulary


def test_vocabulary_refuses_doubles_and_foreign_files(tmp_path):
    with pytest.raises(ValueError, match="distinct"):
        Vocabulary(["a", "a"])
    path = tmp_path / "v.txt"
    path.write_text("the\nfilm\n")
    with pytest.raises(DataError, match=r"expected the lines \[PAD\] and \[UNK\]"):
        load_vocabulary(path)
    with pytest.raises(DataError, match="cannot read"):
        load_vocabulary(tmp_path / "none.txt")
