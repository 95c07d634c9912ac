import gzip

import numpy as np
import pytest

from gru_training.errors import ConfigError, DataError
from gru_training.sentiment.config import (
    ClassifierConfig,
    PretrainingConfig,
    SentimentConfig,
    SentimentDataConfig,
)
from gru_training.sentiment.corpora import read_unlabelled
from gru_training.sentiment.data import LabelledTexts, SentimentData
from gru_training.sentiment.texts import pretrained_words, sentiment_words, text_reading
from gru_training.words.vocabulary import index_tokens
from tests.training.sentiment.reading import load_sentiment_data

WORDS = [f"word{chr(97 + i)}" for i in range(20)]


@pytest.fixture
def texts(tmp_path):
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(WORDS, 12)) for _ in range(200)]
    path = tmp_path / "texts.txt.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path, lines


def test_learned_once_and_kept(texts, tmp_path):
    path, lines = texts
    config = PretrainingConfig(path, vector_size=6, topic_size=4)
    said = []
    learned = pretrained_words(config, [], [], tmp_path, said.append)
    assert sorted(learned.tokens) == sorted(WORDS)
    assert learned.vectors.shape == (20, 10)
    assert np.sqrt(np.mean(learned.vectors**2)) == pytest.approx(0.3, rel=1e-4)
    assert learned.texts == len(set(lines)) == 200
    assert "factorising" in said

    (kept,) = tmp_path.glob(".word-vectors-*.npz")
    said.clear()
    again = pretrained_words(config, [], [], tmp_path, said.append)
    assert "factorising" not in said
    np.testing.assert_array_equal(again.vectors, learned.vectors)
    assert again.tokens == learned.tokens
    # A damaged file is made again, and other settings have their own file.
    kept.write_bytes(kept.read_bytes()[:100])
    np.testing.assert_array_equal(
        pretrained_words(config, [], [], tmp_path).vectors, learned.vectors
    )
    pretrained_words(PretrainingConfig(path, vector_size=6, topic_size=3), [], [], tmp_path)
    assert len(list(tmp_path.glob(".word-vectors-*.npz"))) == 2
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("tmp")]


def test_held_out_texts_are_not_learned_from(texts, tmp_path):
    path, lines = texts
    config = PretrainingConfig(path, vector_size=6, topic_size=0)
    held_out = ["  ".join(lines[3].upper().split()), lines[9], "something else"]
    assert pretrained_words(config, [], held_out, tmp_path).texts == 198


def test_from_the_training_texts(texts, tmp_path):
    path, lines = texts
    own = [*lines[:90], *(" ".join(WORDS[i : i + 9]) for i in range(10))]

    def learned(config, training):
        return pretrained_words(config, training, lines[190:], tmp_path)

    sizes = {"vector_size": 6, "topic_size": 4}
    alone = learned(PretrainingConfig(None, True, **sizes), own)
    assert alone.texts == 100
    both = learned(PretrainingConfig(path, True, **sizes), own)
    assert both.texts == 100 + 200 - 90 - 10
    without = learned(PretrainingConfig(path, False, **sizes), own)
    assert without.texts == 190
    assert not np.array_equal(alone.vectors, both.vectors)
    with pytest.raises(DataError, match=r"--word-vectors: expected more than 6 texts .* got 2 t"):
        learned(PretrainingConfig(None, True, **sizes), own[:2])


def test_an_index_at_hand_is_of_the_training_texts_alone(texts, tmp_path):
    path, lines = texts
    (tmp_path / "again").mkdir()
    index = index_tokens(lines[:150])
    for unlabelled in (None, path):
        config = PretrainingConfig(unlabelled, True, vector_size=6, topic_size=4)
        expected = pretrained_words(config, lines[:150], [], tmp_path)
        said = []
        again = tmp_path / "again"
        learned = pretrained_words(config, lines[:150], [], again, said.append, index)
        np.testing.assert_array_equal(learned.vectors, expected.vectors)
        assert ("tokenizing the texts" in said) == (unlabelled is not None)


def test_too_few_words(tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("one two\n" * 10)
    with pytest.raises(
        DataError, match=r"expected more than 300 texts .* got 10 texts with 2 such words"
    ):
        pretrained_words(PretrainingConfig(path), [], [], tmp_path)


def test_what_can_be_read(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("a")
    with pytest.raises(DataError, match=r"--unlabelled: expected .*\.txt"):
        read_unlabelled(path)
    with pytest.raises(DataError, match="imdb_unsup"):
        read_unlabelled(tmp_path)
    with pytest.raises(DataError, match="cannot read"):
        read_unlabelled(tmp_path / "none.txt")


def test_imdb_without_its_test_reviews(tmp_path):
    header = "id\tlabel\trating\tmovie\ttext\n"
    for name, rows in (
        ("train", header + "1\t1\t9\tm1\tgood\n2\t0\t1\tm2\tbad\n"),
        ("test", header + "3\t1\t9\tm3\tshared text\n"),
        ("unsup", "id\tmovie\ttext\n4\tm4\tshared text\n5\tm5\tunlabelled\n"),
    ):
        (tmp_path / f"imdb_{name}.tsv.gz").write_bytes(gzip.compress(rows.encode()))
    assert read_unlabelled(tmp_path) == ["unlabelled", "good", "bad"]


def test_words_of_the_training_texts_come_first(texts, tmp_path):
    path, _ = texts
    rows = [f"worda own{i % 7} wordb,{i % 2}" for i in range(60)]
    rows = [f"{row.split(',')[0]} nr{i},{i % 2}" for i, row in enumerate(rows)]
    (tmp_path / "rows.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    config = SentimentConfig(
        data=SentimentDataConfig(data=tmp_path / "rows.csv", min_count=4),
        pretraining=PretrainingConfig(path, vector_size=6, topic_size=0),
        model=ClassifierConfig(embedding_size=3),
    )
    words = sentiment_words(load_sentiment_data(config.data, 0), config, tmp_path)
    own = words.vocabulary.tokens[: words.trained]
    assert set(own[2:]) == {"worda", "wordb", *(f"own{i}" for i in range(7))}
    assert set(words.vocabulary.tokens) == {*own, *WORDS}
    learned = pretrained_words(config.pretraining, [], [], tmp_path)
    for token, vector in zip(words.vocabulary.tokens, words.vectors, strict=True):
        if token in learned.tokens:
            expected = learned.vectors[learned.tokens.index(token)]
            np.testing.assert_array_equal(vector, expected)
    assert not words.vectors[0].any()
    assert words.vectors[1].any()


def test_vectors_of_a_file_are_those_of_the_words(tmp_path):
    rows = [f"Good worda nr{i},{i % 2}" for i in range(60)]
    (tmp_path / "rows.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    rng = np.random.default_rng(0)
    given = {word: rng.normal(size=7) for word in ("the", "good", "never", "worda")}
    lines = [f"{word} {' '.join(map(repr, map(float, row)))}" for word, row in given.items()]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n")
    config = SentimentConfig(
        data=SentimentDataConfig(data=tmp_path / "rows.csv", min_count=4),
        pretraining=PretrainingConfig(vectors=tmp_path / "vectors.txt", vector_words=2),
        model=ClassifierConfig(embedding_size=3),
    )
    words = sentiment_words(load_sentiment_data(config.data, 0), config, tmp_path)
    # Those of the training texts, then the first two of the file that are not among them.
    assert set(words.vocabulary.tokens[2:]) == {"good", "worda", "the"}
    assert words.trained == 4
    found = dict(zip(words.vocabulary.tokens, words.vectors, strict=True))
    size = np.sqrt(np.mean([given[word] ** 2 for word in ("the", "good", "worda")]))
    for word in ("the", "good", "worda"):
        np.testing.assert_allclose(found[word], 0.3 * given[word] / size, rtol=1e-5)


@pytest.mark.parametrize(
    ("further", "wanted"),
    [
        ({}, "spaced"),
        ({"model": ClassifierConfig(bidirectional=False)}, "words"),
        ({"pretraining": PretrainingConfig(word_vectors=True)}, "words"),
        ({"data": SentimentDataConfig(spacing=False)}, "words"),
    ],
)
def test_what_the_tokens_of_own_texts_are(further, wanted):
    part = LabelledTexts(("a",), np.zeros(1, np.int32))
    data = SentimentData("own", ("x", "y"), part, part, part, own=True)
    assert text_reading(data, SentimentConfig(**further)) == wanted
    known = SentimentData("mr", ("x", "y"), part, part, part)
    assert text_reading(known, SentimentConfig()) == "words"


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ({"model": ClassifierConfig(bidirectional=False)}, "--spacing needs --bidirectional"),
        (
            {"pretraining": PretrainingConfig(word_vectors=True)},
            "--unlabelled and --word-vectors, which are of words",
        ),
    ],
)
def test_what_spacing_excludes(further, message):
    with pytest.raises(ConfigError, match=message):
        SentimentConfig(data=SentimentDataConfig(spacing=True), **further)
