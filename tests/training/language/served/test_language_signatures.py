"""What an exported language model answers, beside the model on whole texts."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from gru_training import load_run
from gru_training.errors import RunDirectoryError
from gru_training.estimators.load import _load_pyfunc
from gru_training.language.reading import END, END_ID, joined
from gru_training.language.servable import LanguageServable
from gru_training.words.tokens import NEW_LINE


@pytest.fixture(scope="module")
def served(language_run):
    return LanguageServable(language_run)


@pytest.fixture(scope="module")
def probabilities(language_run):
    """Of each next token behind words, from the Keras model."""
    model, tokens = language_run.load_model(), language_run.vocabulary.tokens

    def after(words):
        ids = [END_ID, *(tokens.index(word) if word in tokens else 1 for word in words)]
        logits = model(np.array([ids])).numpy()[0, -1].astype(np.float64)
        shares = np.exp(logits - logits.max())
        return dict(zip(tokens[1:], shares / shares.sum(), strict=True))

    return after


def score(served, texts):
    return {k: v.numpy() for k, v in served.signatures["score"](tf.constant(texts)).items()}


@pytest.mark.slow
def test_score_multiplies_what_each_word_has_behind_those_before_it(served, probabilities):
    texts = ["The cat sees songs.", "", "a zebra"]
    found = score(served, texts)
    words = [["the", "cat", "sees", "songs", "."], [], ["a", "zebra"]]
    assert found["length"].tolist() == [5, 0, 2]
    for row, own in enumerate(words):
        known = [word if word != "zebra" else "[UNK]" for word in own]
        expected = [np.log(probabilities(own[:t])[word]) for t, word in enumerate(known)]
        padded = expected + [0] * (5 - len(own))
        np.testing.assert_allclose(found["log_probabilities"][row], padded, atol=1e-5)
        assert found["log_likelihood"][row] == pytest.approx(sum(expected), abs=1e-5)
        end = np.log(probabilities(own)[END])
        assert found["end_log_probability"][row] == pytest.approx(end, abs=1e-5)
        assert [t.decode() for t in found["tokens"][row]][: len(own)] == own
    alone = score(served, texts[2:])
    np.testing.assert_allclose(alone["log_likelihood"], found["log_likelihood"][2:], atol=1e-5)


def test_steps_name_the_likeliest_next_words(served, probabilities):
    step, size = served.signatures["step"], served.module.state_size
    state = tf.zeros((2, size))
    read = [[], []]
    for pieces in (["", "the cat"], ["a", ""], ["dog likes", "sees"]):
        answer = step(token=tf.constant(pieces), state=state)
        state = answer["state"]
        for row, piece in enumerate(pieces):
            read[row] += piece.split()
            expected = probabilities(read[row])
            names = [name.decode() for name in answer["next_token"].numpy()[row]]
            assert sorted(names) == sorted(expected)  # few enough that all are named
            values = answer["log_probability"].numpy()[row]
            np.testing.assert_allclose(np.exp(values), [expected[n] for n in names], atol=1e-6)
            assert (np.diff(values) <= 0).all()
            assert np.exp(values.astype(float)).sum() == pytest.approx(1, abs=1e-5)
            shown = [text.decode() for text in answer["next_text"].numpy()[row]]
            for name, text in zip(names, shown, strict=True):
                assert text == ("" if name == END else name if name in (".", "!") else f" {name}")


def test_streams_and_golden_requests_agree_with_the_signatures(served):
    gaps = [np.abs(whole - step).max() for whole, step in served.streamed() if len(whole)]
    assert len(gaps) >= 5
    assert max(gaps) < 1e-5
    golden = served.golden()
    warmed = [(each.signature, len(next(iter(each.inputs.values())))) for each in
              served.warmup(golden)]  # fmt: skip
    assert sorted(warmed) == sorted((n, rows) for n in served.signatures for rows in (1, 2))
    for request in golden:
        found = served.signatures[request.signature](
            **{name: tf.constant(array) for name, array in request.inputs.items()}
        )
        for name, expected in request.outputs.items():
            if expected.dtype == object:
                assert found[name].numpy().tolist() == expected.tolist()
            else:
                np.testing.assert_allclose(found[name], expected, atol=1e-5)


def test_words_and_characters_become_texts():
    words = ["it", "'s", "do", "n't", ",", "never", "(", "x", ")", ".", END]
    assert joined(words, "words") == "it's don't, never ( x)."
    assert joined(["a", NEW_LINE, " ", ".", "b"], "characters") == "a\n .b"


def test_mlflow_loads_a_run_as_what_says_how_likely_texts_are(language_run, served):
    frame = pd.DataFrame({"n": [1, 2], "text": ["the cat sees songs.", "a zebra"]}, index=[5, 7])
    found = _load_pyfunc(str(language_run.path)).predict(frame)
    expected = score(served, list(frame["text"]))
    assert found.index.tolist() == [5, 7]
    assert found["tokens"].tolist() == [5, 2]
    likelihood = expected["log_likelihood"]
    np.testing.assert_allclose(found["log_likelihood"], likelihood, atol=1e-5)
    whole = likelihood + expected["end_log_probability"]
    np.testing.assert_allclose(found["perplexity"], np.exp(-whole / [6, 3]), rtol=1e-5)


def test_a_language_model_has_no_estimator(language_run):
    with pytest.raises(
        RunDirectoryError, match=r"no estimator; score texts with gru-train predict"
    ):
        load_run(language_run.path)
