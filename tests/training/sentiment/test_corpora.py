import gzip

import numpy as np
import pytest

from gru_training.errors import DataError
from gru_training.sentiment.config import SentimentDataConfig
from gru_training.sentiment.corpora import read_corpus
from tests.training.sentiment.reading import load_sentiment_data


def write_mr(folder, negative, positive):
    (folder / "rt-polarity.neg").write_bytes(b"".join(line + b" \n" for line in negative))
    (folder / "rt-polarity.pos").write_bytes(b"".join(line + b" \n" for line in positive))


def write_imdb(folder, train, test):
    for name, rows in (("train", train), ("test", test)):
        lines = ["id\tlabel\trating\tmovie\ttext", *("\t".join(row) for row in rows)]
        data = gzip.compress(("\n".join(lines) + "\n").encode())
        (folder / f"imdb_{name}.tsv.gz").write_bytes(data)


def test_mr_is_cp1252_and_its_0x85_ends_no_line(tmp_path):
    write_mr(tmp_path, [b"dull\x85 very dull", b"caf\xe9 \x97 no"], [b'a "good one'])
    corpus = read_corpus(tmp_path)
    assert [row[:2] for row in corpus.train] == [
        ("dull… very dull", 0),
        ("café — no", 0),
        ('a "good one', 1),
    ]
    assert corpus.validation is None
    assert corpus.test is None
    assert "published set has 10,662" in corpus.notes[0]
    assert corpus.notes[1].startswith("rt-polarity.pos, rt-polarity.neg: not the known copy")


def test_sst2_keeps_its_official_parts_and_bare_quotes(tmp_path):
    for part, rows in {
        "train": '1 "a fine\n0 b\n',
        "dev": "0 c d\n",
        "test": "1 e\u0085f\n",
    }.items():
        (tmp_path / f"stsa.binary.{part}.txt").write_text(rows, newline="\n")
    (tmp_path / "glue_train.tsv").write_bytes(b'label\tsentence\r\n1\t"quote\r\n0\tx \r\n')
    corpus = read_corpus(tmp_path)
    assert [row[:3] for row in corpus.train] == [('"a fine', 1, None), ("b", 0, None)]
    assert [row[:3] for row in corpus.validation] == [("c d", 0, None)]
    assert [row[:3] for row in corpus.test] == [("e\u0085f", 1, None)]
    phrases = read_corpus(tmp_path, phrases=True)
    assert [row[:2] for row in phrases.train] == [('"quote', 1), ("x", 0)]


def test_imdb_reads_quotes_breaks_and_movies(tmp_path):
    row = ("pos/0", "1", "9", "tt1", 'He said "wow.<br />Next\u0085line')
    write_imdb(tmp_path, [row], [row])
    corpus = read_corpus(tmp_path)
    assert [row[:3] for row in corpus.train] == [('He said "wow.<br />Next\u0085line', 1, "tt1")]
    assert corpus.validation is None


def test_imdb_validation_shares_no_movie_with_training(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        (f"x/{i}", str(i % 2), "5", f"tt{rng.integers(40)}", f"review number {i}")
        for i in range(400)
    ]
    test = [("y/0", "0", "5", "tt900", "t"), ("y/1", "1", "5", "tt901", "review number 7")]
    write_imdb(tmp_path, rows, test)
    movie = {row[4]: row[3] for row in rows}
    data = load_sentiment_data(SentimentDataConfig(data=tmp_path), seed=0)
    train = {movie[text] for text in data.train.texts}
    validation = {movie[text] for text in data.validation.texts}
    assert validation
    assert not train & validation
    assert "review number 7" not in data.train.texts + data.validation.texts


def test_uci_takes_the_last_tab(tmp_path):
    for name in ("amazon_cells", "imdb", "yelp"):
        (tmp_path / f"{name}_labelled.txt").write_text(f'{name} "a\tb.  \t1\n', newline="\n")
    assert read_corpus(tmp_path).train[0][:2] == ('amazon_cells "a\tb.  ', 1)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (
            lambda folder: (folder / "empty").mkdir(),
            "no known data set; expected rt-polarity.pos.*found empty. Texts of your own",
        ),
        (lambda folder: (folder / "x.bin").touch(), r"found x\.bin"),
        (lambda folder: write_mr(folder, [b"a", b""], [b"b"]), "neg, line 2: the text is empty"),
        (lambda folder: write_mr(folder, [b"a\x00"], [b"b"]), "neg, line 1: a NUL"),
        (lambda folder: write_mr(folder, [b"\x81"], [b"b"]), "expected cp1252"),
        (lambda folder: write_imdb(folder, [("a", "2", "", "", "t")], []), "0 or 1, got '2'"),
        (lambda folder: write_imdb(folder, [("a", "1", "t")], []), "expected 5 cells, got 3"),
    ],
)
def test_says_what_is_wrong(tmp_path, write, message):
    write(tmp_path)
    with pytest.raises(DataError, match=message):
        read_corpus(tmp_path)


def test_phrases_need_sst2(tmp_path):
    write_mr(tmp_path, [b"a"], [b"b"])
    with pytest.raises(DataError, match="--phrases is for SST-2"):
        read_corpus(tmp_path, phrases=True)


PUBLISHED = {
    "mr": ([5331, 5331], None, None),
    "sst2": ([3310, 3610], [428, 444], [912, 909]),
    "imdb": ([12500, 12500], None, [12500, 12500]),
    "uci_sentences": ([1500, 1500], None, None),
}


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(real_data, name):
    corpus = read_corpus(real_data / name)
    assert corpus.notes == ()
    for rows, counts in zip(
        (corpus.train, corpus.validation, corpus.test), PUBLISHED[name], strict=True
    ):
        found = None if rows is None else np.bincount([row.label for row in rows]).tolist()
        assert found == counts


@pytest.mark.data
def test_phrase_counts(real_data):
    corpus = read_corpus(real_data / "sst2", phrases=True)
    assert np.bincount([row.label for row in corpus.train]).tolist() == [29780, 37569]


@pytest.mark.slow_cases
@pytest.mark.data
@pytest.mark.parametrize("name", [*PUBLISHED, "phrases"])
def test_real_parts_share_no_text(real_data, name):
    phrases = name == "phrases"
    folder = real_data / ("sst2" if phrases else name)
    data = load_sentiment_data(SentimentDataConfig(data=folder, phrases=phrases), seed=0)
    texts = [{" ".join(t.lower().split()) for t in part.texts} for part in data.parts().values()]
    assert not texts[0] & texts[1]
    assert not texts[0] & texts[2]
    assert not texts[1] & texts[2]


@pytest.mark.slow
@pytest.mark.data
def test_real_imdb_validation_shares_no_movie(real_data):
    corpus = read_corpus(real_data / "imdb")
    movies = {row.text: row.group for row in corpus.train}
    data = load_sentiment_data(SentimentDataConfig(data=real_data / "imdb"), seed=0)
    train = {movies[text] for text in data.train.texts}
    validation = {movies[text] for text in data.validation.texts}
    assert not train & validation
    assert len(data.validation) > 2000


@pytest.mark.data
def test_sst2_test_sentences_stand_in_mr(real_data):
    """The reason why nobody may train on one and test on the other."""

    def letters(rows):
        return {"".join(filter(str.isalnum, row.text.lower())) for row in rows}

    test = read_corpus(real_data / "sst2").test
    shared = letters(test) & letters(read_corpus(real_data / "mr").train)
    assert len(shared) > 1000
