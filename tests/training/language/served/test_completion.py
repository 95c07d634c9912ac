"""The fourth text's auto-completion: a model of d, e, p and the stop completes the word.

Trained, exported, served and asked over REST and gRPC.
"""

import csv
import json

import numpy as np
import pytest

from gru_serving.__main__ import main as gru_serve
from gru_serving.client import connect
from gru_serving.client.streaming import StreamAnswer, StreamingSession
from gru_serving.commands.complete import NextTokenSampler, completion
from gru_serving.errors import ServingError
from gru_training.__main__ import main as gru_train
from gru_training.config import RunConfig
from gru_training.language.config import (
    LanguageConfig,
    LanguageDataConfig,
    LanguageModelConfig,
    LanguageTrainingConfig,
)
from tests.made_once import made_once
from tests.serving.servers import running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def models():
    from gru_training.language.pipeline import train_language

    def make(folder):
        for name, count in (("train", 64), ("held_out", 4)):
            (folder / f"{name}.txt").write_text("deep\n" * count)
        held_out = folder / "held_out.txt"
        config = LanguageConfig(
            data=LanguageDataConfig(
                data=folder / "train.txt",
                validation=held_out,
                test=held_out,
                document="line",
                unit="characters",
            ),
            model=LanguageModelConfig(embedding_size=6, units=8, dropout=0.0),
            training=LanguageTrainingConfig(
                epochs=60, patience=60, batch_size=8, steps=8, learning_rate=0.02
            ),
            run=RunConfig(runs_dir=folder, name="deep"),
        )
        train_language(config)
        assert gru_serve(["export", str(folder / "deep"), "--to", str(folder / "models")]) == 0

    return made_once("auto_completion", make) / "models"


@pytest.fixture(scope="module")
def server(models, tmp_path_factory):
    flags = ("--model_name=deep", f"--model_base_path={models}")
    with running(tmp_path_factory.mktemp("log") / "log", *flags) as started:
        yield started


@pytest.fixture(params=["rest", "grpc"])
def url(server, request):
    return server.rest if request.param == "rest" else f"grpc://{server.grpc}"


def complete(url, *arguments):
    return gru_serve(["complete", "--url", url, "--model", "deep", *arguments])


def test_the_word_is_completed_and_ends(url, capsys):
    assert complete(url, "--temperature", "0", "d") == 0
    assert capsys.readouterr().out == "deep\n"
    assert complete(url, "--temperature", "0", "--max-tokens", "2", "") == 0
    assert capsys.readouterr().out == "de\n"


def test_next_characters_have_the_probabilities_of_a_softmax(url):
    with connect(url) as client:
        session = StreamingSession(client, "deep")
        answer = session.feed("d").outputs
        tokens = [token.decode() for token in answer["next_token"][0]]
        assert set(tokens) == {"d", "e", "p", "[END]", "[UNK]"}
        shares = np.exp(answer["log_probability"][0])
        assert shares.sum() == pytest.approx(1, abs=1e-5)
        assert tokens[0] == "e"
        assert shares[0] > 0.9
        score = client.predict({"text": ["deep", "peed"]}, "deep", signature="score")
    likely, odd = score["log_likelihood"] + score["end_log_probability"]
    assert likely > np.log(0.8)
    assert odd < np.log(0.01)


def test_a_file_gets_the_columns_of_gru_train_predict(models, url, tmp_path, capsys):
    data, scored = tmp_path / "texts.csv", (tmp_path / "served.csv", tmp_path / "run.csv")
    data.write_text("text\ndeep\npe\n")
    served, run = ["--data", str(data), "--output"], str(models.parent / "deep")
    assert gru_serve(["predict", "--url", url, "--model", "deep", *served, str(scored[0])]) == 0
    assert gru_train(["predict", run, *served, str(scored[1])]) == 0
    (header, *rows), (of_run, *rows_of_run) = (
        csv.reader(path.read_text().splitlines()) for path in scored
    )
    names = ["log_likelihood", "end_log_probability", "tokens", "perplexity"]
    assert header == of_run == ["text", *names]
    for row, row_of_run, length in zip(rows, rows_of_run, (4, 2), strict=True):
        likelihood, end, tokens, perplexity = map(float, row[1:])
        assert tokens == length
        assert perplexity == pytest.approx(np.exp(-(likelihood + end) / (length + 1)), rel=1e-4)
        assert perplexity == pytest.approx(float(row_of_run[-1]), rel=1e-4)


def test_answers_are_printed_without_padding(url, capsys):
    assert gru_serve(["predict", "--url", url, "--model", "deep", "deep", "d"]) == 0
    *_, row = capsys.readouterr().out.splitlines()
    assert row.split()[-1] == "d"
    assert len(row.split()) == 6  # the text, two sums, one token with its logarithm, the length


def test_a_stream_shows_the_likeliest_next_tokens(url, capsys):
    assert gru_serve(["stream", "--url", url, "--model", "deep", "dee"]) == 0
    shown = capsys.readouterr().out.split()
    assert shown[:2] == ["dee", "p"]
    assert float(shown[2]) > 0.9


def test_drawn_texts_are_those_of_the_seed(url, capsys):
    def drawn(seed):
        arguments = ["--temperature", "3", "--seed", str(seed), "--output", "json", "d"]
        assert complete(url, *arguments) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    texts = [drawn(seed) for seed in range(4)]
    assert texts == [drawn(seed) for seed in range(4)]
    assert len({"".join(piece["text"] for piece in text) for text in texts}) > 1
    assert all(piece["log_probability"] <= 0 for text in texts for piece in text)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--top-p", "0"], "top_p must be above 0 and at most 1, got 0.0"),
        (["--temperature", "-1"], "temperature must be a number from 0, got -1.0"),
        (["--max-tokens", "0"], "--max-tokens must be at least 1, got 0"),
        (["--top-k", "0"], "top_k must be at least 1, got 0"),
        (["--version", "9"], "9"),
    ],
)
def test_what_cannot_be_completed_is_one_line(server, capsys, flags, message):
    assert complete(server.rest, *flags, "d") == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"scores": np.ones((1, 2))}, "expected a language model"),
        ({"next_token": np.array([[b"a"]]), "next_text": np.array([[b"a"]]),
          "log_probability": np.array([[np.nan]])}, "finite numbers"),
        ({"next_token": np.array([[b"a", b"b"]]), "next_text": np.array([[b"a"]]),
          "log_probability": np.array([[0.0]])}, "finite numbers"),
    ],
)  # fmt: skip
def test_a_server_that_answers_something_else_is_an_error(outputs, message):
    class Session:
        def feed(self, _):
            return StreamAnswer(outputs, 1, 1, False)

    with pytest.raises(ServingError, match=message):
        list(completion(Session(), "a", NextTokenSampler(), 3))
