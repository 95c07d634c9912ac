"""Words cut into learned pieces, beside the library that learned them."""

import numpy as np
import pytest
import tensorflow as tf
from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from gru_serving.export.files import fuzzed_texts
from gru_training.words.tokens import marked_words
from gru_training.words.vocabulary import index_tokens
from gru_training.words.word_pieces import MOST_CHARACTERS, PieceCutter, learn_pieces

TEXTS = [
    "The parcel is late, and the parcels are lost.",
    "the courier lost my PARCEL again",
    "Relate the late courier's latest loss .",
    "我的包裹丢了 👍",
]


@pytest.fixture(scope="module")
def pieces():
    index = index_tokens(TEXTS, True, "pieces")
    return learn_pieces(index.tokens, index.counts, 100)


def cut(pieces, rows):
    found = PieceCutter(pieces)(tf.ragged.constant(rows, dtype=tf.string, ragged_rank=1))
    return [[piece.decode() for piece in row] for row in found.to_list()]


def test_pieces_are_the_longest_ones_from_left_to_right():
    known = ["▁", "un", "u", "n", "funn", "fun", "y", "▁un", "ny"]
    rows = [["▁unfunny", "▁fun", "fun"], [], ["▁unfit", "▁"]]
    assert cut(known, rows) == [["▁un", "funn", "y", "▁", "fun", "fun"], [], ["▁unfit", "▁"]]


def test_words_that_are_too_long_stay_whole():
    fits, long = "a" * MOST_CHARACTERS, "a" * (MOST_CHARACTERS + 1)
    assert cut(["a"], [[fits, long]]) == [[*["a"] * MOST_CHARACTERS, long]]


def test_no_texts_and_no_words_have_no_pieces():
    assert cut(["a"], []) == []
    assert cut(["a"], [[], []]) == [[], []]


def test_the_graph_cuts_as_the_library_does(pieces):
    library = Tokenizer(
        WordPiece(
            {piece: number for number, piece in enumerate([*pieces, "[UNK]"])},
            unk_token="[UNK]",
            continuing_subword_prefix="",
            max_input_chars_per_word=MOST_CHARACTERS,
        )
    )
    draw = np.random.default_rng(0)
    made = ["▁" + "".join(draw.choice(pieces, draw.integers(1, 9))) for _ in range(2000)]
    words = marked_words(tf.constant([*TEXTS, *fuzzed_texts(1000), *made]), cleaned=True)
    found = PieceCutter(pieces)(words).to_list()
    for row, given in zip(found, words.to_list(), strict=True):
        wanted = []
        for word in given:
            said = library.model.tokenize(word.decode())
            whole = [piece.value for piece in said] == ["[UNK]"]
            wanted += [word.decode()] if whole else [piece.value for piece in said]
        assert [piece.decode() for piece in row] == wanted
    used = {piece.decode() for row in found for piece in row}
    assert len(used & set(pieces)) > 80  # the corpus holds most of them


def test_learning_again_gives_the_same_pieces_and_at_most_as_many(pieces):
    index = index_tokens(TEXTS, True, "pieces")
    assert len(pieces) <= 100
    for _ in range(5):
        assert learn_pieces(index.tokens, index.counts, 100) == pieces


def test_pieces_run_in_a_saved_model_of_strings(pieces, tmp_path):
    module = tf.Module()
    module.cutter = PieceCutter(pieces)

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)])
    def serve(text):
        return {"pieces": module.cutter(marked_words(text, True)).to_tensor("")}

    tf.saved_model.save(module, str(tmp_path), {"serving_default": serve})
    restored = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    wanted = PieceCutter(pieces)(marked_words(tf.constant(TEXTS), True)).to_tensor("")
    np.testing.assert_array_equal(restored(text=tf.constant(TEXTS))["pieces"], wanted)
