"""Files of word vectors in their formats, written by hand and by gensim's rules."""

import gzip

import numpy as np
import pytest

from gru_training.errors import DataError
from gru_training.words.vectors import read_vectors

WORDS = ("the", "Paris", "good", "new york", "tickets", "good-bye")
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 12)).astype(np.float32)


def text_lines():
    return [
        f"{word} {' '.join(repr(float(x)) for x in row)}\n"
        for word, row in zip(WORDS, VECTORS, strict=True)
    ]


def write(path, kind):
    if kind == "glove":
        content = "".join(text_lines()).encode()
    elif kind == "text":
        content = f"{len(WORDS)} 12\n{''.join(text_lines())}".encode()
    else:
        content = f"{len(WORDS)} 12\n".encode()
        for word, row in zip(WORDS, VECTORS, strict=True):
            end = b"\n" if kind == "binary with line ends" else b""
            name = word.replace(" ", "_")
            content += name.encode() + b" " + row.astype("<f4").tobytes() + end
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("kind", ["glove", "text", "binary", "binary with line ends"])
@pytest.mark.parametrize("name", ["vectors.txt", "vectors.gz"])
def test_wanted_words_are_read_from_every_format(tmp_path, kind, name):
    found = read_vectors(write(tmp_path / name, kind), {"good", "paris", "tickets", "absent"})
    assert sorted(found.tokens) == ["good", "paris", "tickets"]
    assert found.words == len(WORDS)
    for token, vector in zip(found.tokens, found.vectors, strict=True):
        place = [word.lower() for word in WORDS].index(token)
        np.testing.assert_array_equal(vector, VECTORS[place])


def test_the_first_words_come_too(tmp_path):
    found = read_vectors(write(tmp_path / "v.txt", "glove"), {"tickets"}, further=4)
    assert found.tokens == ("the", "good", "new york", "tickets")


def test_the_small_word_is_preferred(tmp_path):
    path = tmp_path / "v.vec"
    path.write_text("3 2\nGood 1 2\ngood 3 4\nGOOD 5 6\n")
    found = read_vectors(path, {"good"})
    assert found.vectors.tolist() == [[3, 4]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"good 1 2 3\nbad 1 2\n", r"word 2: expected a word and 3 numbers, got 'bad 1 2'"),
        (b"good 1 2 3\n", "none of which occurs there"),
        (b"a text about something\n", "is this a file of vectors"),
        (b"nice nan 2 3\n", "word 1: expected finite numbers"),
        (b"5 4\nword " + bytes(range(200, 216)) + b"next", "expected 5 words of 4 numbers, got 1"),
    ],
)
def test_what_is_no_file_of_vectors_is_named(tmp_path, content, message):
    path = tmp_path / "v.bin"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_vectors(path, {"bad", "nice"})
    with pytest.raises(DataError, match="cannot read"):
        read_vectors(tmp_path / "none.txt", {"bad"})
