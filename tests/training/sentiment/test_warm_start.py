"""Text classifiers that begin with the vocabulary and the weights of an earlier run."""

import re
from dataclasses import replace

import keras
import numpy as np
import pytest

from gru_serving.preprocessing.texts import ATTACHED
from gru_training.__main__ import main
from gru_training.errors import ConfigError, DataError, RunDirectoryError
from gru_training.sentiment.config import PretrainingConfig, SentimentConfig, SentimentDataConfig
from gru_training.sentiment.data import check_sentiment, load_data
from gru_training.sentiment.initial_weights import RunWeights
from gru_training.sentiment.network.model import predict_logits
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.warm_start import is_learned
from gru_training.words.vocabulary import token_ids
from tests.made_once import made_once
from tests.training.cut_short import killed
from tests.training.tickets import NEW_WORDS, WORDS, config, first_run, tickets, write

STILL = 1e-30
"""A learning rate with which no weight moves."""


@pytest.fixture(scope="module")
def old():
    return SentimentRun.open(made_once("warm_old", first_run) / "old")


def begun(run, folder, data, name="warm", rate=STILL, **changed):
    """The settings of a training that begins with a run; sizes are left at their defaults."""
    made = config(folder, name, data)
    training = replace(made.training, warm_start=run.path, learning_rate=rate, epochs=1, **changed)
    return replace(made, training=training, model=SentimentConfig().model)


def grown(folder, old, rows=60, words=NEW_WORDS):
    """The rows of the run and new ones."""
    return SentimentDataConfig(
        data=write(folder / "all.csv", [*tickets(240, 0), *tickets(rows, 1, words)])
    )


def weights(run):
    return {
        f"{layer.name}/{number}": value
        for layer in run.load_model().layers
        for number, value in enumerate(layer.get_weights())
    }


@pytest.mark.slow
def test_without_a_step_the_network_is_that_of_the_run(old, tmp_path):
    warm = train_sentiment(begun(old, tmp_path, old.config.data))
    assert warm.vocabulary == old.vocabulary
    assert warm.config.model.units == old.config.model.units != SentimentConfig().model.units
    expected, found = weights(old), weights(warm)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    start = warm.metrics["warm_start"]
    assert start["run"] == str(old.path)
    assert (start["new_words"], start["new_classes"], start["dropped_classes"]) == (0, [], [])
    assert len(start["digest"]) == 64
    assert f"Training began with the weights of `{old.path}`;" in (
        (warm.path / "report.md").read_text("utf-8")
    )
    # The same rows, split the same way: none has to move.
    assert not [note for note in warm.metrics["data"]["notes"] if "are trained on" in note]


@pytest.mark.slow
def test_new_words_and_classes_come_behind_those_that_are_known(old, tmp_path):
    warm = train_sentiment(begun(old, tmp_path, grown(tmp_path, old)))
    known = len(old.vocabulary)
    assert warm.vocabulary.tokens[:known] == old.vocabulary.tokens
    assert {"password", "voucher"} < set(warm.vocabulary.tokens[known:])
    before, after = weights(old), weights(warm)
    table = after["embedding/0"]
    np.testing.assert_array_equal(table[:known], before["embedding/0"])
    for number, word in enumerate(warm.vocabulary.tokens[known:], known):
        ((read_before,),) = token_ids(old.preprocessor(), [word.removeprefix(ATTACHED)])
        np.testing.assert_array_equal(table[number], table[read_before], err_msg=word)
    assert len(table) == len(warm.vocabulary) > known
    assert warm.classes == ("billing", "bug", "delivery", "login")
    np.testing.assert_array_equal(after["logits/0"][:, :3], before["logits/0"])
    np.testing.assert_array_equal(after["logits/1"][:3], before["logits/1"])
    np.testing.assert_allclose(after["logits/0"][:, 3], 0, atol=1e-20)
    rows = warm.metrics["data"]["balance"]["login"]["train"], warm.metrics["data"]["rows"]["train"]
    assert after["logits/1"][3] == pytest.approx(np.log(rows[0] / (rows[1] - rows[0])), abs=0.1)
    start = warm.metrics["warm_start"]
    assert (start["new_words"], start["new_classes"]) == (len(table) - known, ["login"])
    report = (warm.path / "report.md").read_text("utf-8")
    assert "1 new: login" in report
    assert "subwords=yes" not in report  # a training with --warm-start refuses it


@pytest.mark.slow
def test_classes_are_found_by_name_and_missing_ones_are_dropped(old, tmp_path):
    words = {"account": "password locked", **{n: w for n, w in WORDS.items() if n != "bug"}}
    data = SentimentDataConfig(data=write(tmp_path / "other.csv", tickets(120, 4, words)))
    warm = train_sentiment(begun(old, tmp_path, data))
    assert warm.classes == ("account", "billing", "delivery")
    before, after = weights(old), weights(warm)
    np.testing.assert_array_equal(after["logits/0"][:, 1:], before["logits/0"][:, [0, 2]])
    np.testing.assert_array_equal(after["logits/1"][1:], before["logits/1"][[0, 2]])
    assert warm.metrics["warm_start"]["dropped_classes"] == ["bug"]


VARIANTS = {
    "subwords": ({"subwords": True, "layers": 2, "chunk": 4}, {}, {}),
    "vectors": ({}, {}, {"word_vectors": True, "vector_size": 3, "topic_size": 2}),
    "combined": ({"bidirectional": True, "ngrams": True, "pooling": "attention"}, {}, {}),
}


@pytest.mark.long
@pytest.mark.parametrize("name", VARIANTS)
def test_texts_of_known_words_get_the_same_logits(name, tmp_path):
    model, rows, pretraining = VARIANTS[name]
    data = SentimentDataConfig(data=write(tmp_path / "old.csv", tickets(240, 0)), **rows)
    first = replace(
        config(tmp_path, "old", data, **model), pretraining=PretrainingConfig(**pretraining)
    )
    old = train_sentiment(first)
    warm = train_sentiment(begun(old, tmp_path, grown(tmp_path, old)))
    known = old.vocabulary.tokens
    assert warm.vocabulary.tokens[: len(known)] == known
    assert warm.vocabulary != old.vocabulary
    texts = [text for text, _ in tickets(90, 0)]
    ids = [token_ids(run.preprocessor(), texts) for run in (old, warm)]
    same = [k for k, row in enumerate(ids[1]) if row.max() < len(known)]
    assert len(same) > 60
    before, after = (
        predict_logits(_gru(run.load_model()), [of[k] for k in same])
        for run, of in zip((old, warm), ids, strict=True)
    )
    np.testing.assert_allclose(after[:, :3], before, atol=1e-5)


def _gru(model):
    return keras.Model(model.input, model.get_layer("logits").output)


@pytest.mark.slow
def test_a_number_keeps_its_units(tmp_path):
    rows = [(text, 20 * len(name) + k % 7) for k, (text, name) in enumerate(tickets(150, 0))]
    data = SentimentDataConfig(data=write(tmp_path / "old.csv", rows), target_type="number")
    old = train_sentiment(config(tmp_path, "old", data))
    more = [(text, 900) for text, _ in tickets(60, 1)]
    data = replace(data, data=write(tmp_path / "all.csv", [*rows, *more]))
    warm = train_sentiment(begun(old, tmp_path, data))
    assert (warm.scale.mean, warm.scale.deviation) == (old.scale.mean, old.scale.deviation)
    for name, value in weights(old).items():
        if name != "embedding/0":
            np.testing.assert_array_equal(weights(warm)[name], value, err_msg=name)


@pytest.mark.slow
def test_no_row_that_was_learned_from_is_held_out(old, tmp_path):
    plain, warm = (
        load_data(replace(made, training=replace(made.training, warm_start=start)))
        for made in [begun(old, tmp_path, grown(tmp_path, old))]
        for start in (None, old.path)
    )
    learned = {" ".join(text.split()) for text in load_data(old.config).train.texts}
    held = [[*data.validation.texts, *data.test.texts] for data in (plain, warm)]
    moved = [text for text in held[0] if text in learned]
    assert moved
    assert set(held[1]) == set(held[0]) - set(moved)
    assert set(warm.train.texts) == {*plain.train.texts, *moved}
    assert sum(map(len, warm.parts().values())) == sum(map(len, plain.parts().values())) == 300
    (note,) = [note for note in warm.notes if "are trained on" in note]
    left = f"{len(warm.validation)} for validation and {len(warm.test)} for test are left"
    assert note.startswith(f"{len(moved)} of the {len(held[0])} rows to hold out are trained on")
    assert note.endswith(left)
    # Texts count as the same whatever their case and blanks.
    assert is_learned([f"  {moved[0].upper()} ", "nothing like it"], old).tolist() == [True, False]


def test_a_group_that_was_learned_from_is_not_held_out(old, tmp_path):
    known, new = tickets(240, 0), tickets(60, 1)
    rows = [(text, label, f"c{k % 80}") for k, (text, label) in enumerate([*known, *new])]
    path = write(tmp_path / "groups.csv", rows, ("text", "label", "customer"))
    data = SentimentDataConfig(data=path, group_column="customer")
    learned = {" ".join(text.split()) for text in load_data(old.config).train.texts}
    groups = {group for text, _, group in rows if text in learned}
    with pytest.raises(DataError, match=r"expected rows for \w+ that .*old has not learned from"):
        load_data(begun(old, tmp_path, data))  # each customer has written before
    rows = [(text, label, f"c{k % 80}" if k < 240 else f"n{k % 20}") for k, (text, label) in
            enumerate([*known, *new])]  # fmt: skip
    write(path, rows, ("text", "label", "customer"))
    warm = load_data(begun(old, tmp_path, data))
    held = {*warm.validation.texts, *warm.test.texts}
    assert held
    assert not {group for text, _, group in rows if text in held} & groups


@pytest.mark.slow
def test_what_a_run_has_learned_is_handed_on(old, tmp_path):
    """A third run must hold out no text that the first one learned from."""
    data = SentimentDataConfig(data=write(tmp_path / "new.csv", tickets(90, 1)))
    warm = train_sentiment(begun(old, tmp_path, data))
    first, own = (load_data(run.config).train.texts for run in (old, warm))
    assert is_learned([*first, *own], warm).all()
    held = load_data(warm.config).test.texts
    assert not is_learned(held, warm).any()


def test_other_rows_of_the_run_held_out_are_refused_and_its_own_taken(old, tmp_path):
    rows = tickets(240, 0)
    learned = set(load_data(old.config).train.texts)
    rest = [row for row in rows if row[0] not in learned]
    data = SentimentDataConfig(
        data=write(tmp_path / "rest.csv", rest),
        test=write(tmp_path / "test.csv", [row for row in rows if row[0] in learned][:30]),
    )
    asked = begun(old, tmp_path, data)
    with pytest.raises(DataError, match="got 30 that it has") as refused:
        load_data(asked)
    path, seed = re.search(r"with --data (\S+) and --split-seed (\d+)", str(refused.value)).groups()
    advised = SentimentDataConfig(data=old.config.data.data, split_seed=int(seed))
    assert path == str(old.config.data.data)
    assert load_data(begun(old, tmp_path, advised)).test.texts == load_data(old.config).test.texts


@pytest.mark.parametrize(
    ("section", "setting", "said"),
    [
        ("model", {"units": 9}, "--units 5, got --units 9"),
        ("model", {"layers": 2}, "--layers 1, got --layers 2"),
        ("model", {"pooling": "mean"}, "--pooling max, got --pooling mean"),
        ("data", {"spacing": True}, "--no-spacing, got --spacing"),
        ("data", {"cleaning": False}, "--cleaning, got --no-cleaning"),
        ("data", {"max_tokens": 50}, "--max-tokens 400, got --max-tokens 50"),
        ("pretraining", {"word_vectors": True}, "--no-word-vectors, got --word-vectors"),
    ],
)
def test_other_sizes_are_refused_and_left_out_as_advised(old, tmp_path, section, setting, said):
    asked = begun(old, tmp_path, old.config.data)
    wanted = replace(asked, model=replace(asked.model, bidirectional=True))
    wanted = replace(wanted, **{section: replace(getattr(wanted, section), **setting)})
    with pytest.raises(ConfigError, match=f"old was trained with {said}; leave it out"):
        RunWeights(wanted)
    (error,) = check_sentiment(wanted).errors
    assert said in error
    assert not check_sentiment(asked).errors
    elsewhere = replace(wanted.training, warm_start=None)
    assert not check_sentiment(replace(wanted, training=elsewhere)).errors


def test_a_setting_that_a_warm_start_excludes(old, tmp_path):
    asked = begun(old, tmp_path, old.config.data)
    with pytest.raises(ConfigError, match="--warm-start excludes --word-ratios"):
        replace(asked, model=replace(asked.model, word_ratios=True))


def test_rows_of_another_kind_are_refused(old, tmp_path):
    rows = [(text, k) for k, (text, _) in enumerate(tickets(60, 0))]
    data = SentimentDataConfig(data=write(tmp_path / "a.csv", rows), target_type="number")
    with pytest.raises(ConfigError, match="answers with a class for each text, got rows with a nu"):
        load_data(begun(old, tmp_path, data))


@pytest.mark.slow
def test_runs_that_cannot_be_begun_with(old, tmp_path, forecasting_run, capsys):
    asked = begun(old, tmp_path, old.config.data)
    for path, kind, said in (
        (tmp_path / "nowhere", RunDirectoryError, "--warm-start: there is no run directory"),
        (forecasting_run.path, ConfigError, "expected a run of gru-train sentiment, got .*waves"),
    ):
        with pytest.raises(kind, match=said):
            load_data(replace(asked, training=replace(asked.training, warm_start=path)))
    command = ["sentiment", "--data", str(old.config.data.data), "--warm-start", "nowhere"]
    assert main(command) == 2
    assert "--warm-start: there is no run directory nowhere" in capsys.readouterr().err
    assert main(["tune", *command, "--trials", "1"]) == 2
    assert "--warm-start must be left out of a search" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_a_resumed_training_ends_with_the_same_weights(old, tmp_path):
    data = grown(tmp_path, old)
    asked = replace(begun(old, tmp_path, data, rate=0.01), run=replace(old.config.run, name="a"))
    asked = replace(asked, training=replace(asked.training, epochs=3))
    whole = train_sentiment(replace(asked, run=replace(asked.run, runs_dir=tmp_path / "whole")))
    cut = replace(asked, run=replace(asked.run, runs_dir=tmp_path / "cut"))
    with killed():
        train_sentiment(cut)
    assert main(["resume", str(tmp_path / "cut" / "a")]) == 0
    resumed = SentimentRun.open(tmp_path / "cut" / "a")
    assert resumed.metrics["warm_start"] == whole.metrics["warm_start"]
    for name, value in weights(whole).items():
        np.testing.assert_array_equal(weights(resumed)[name], value, err_msg=name)
    assert not np.array_equal(weights(old)["logits/0"], weights(whole)["logits/0"][:, :3])
