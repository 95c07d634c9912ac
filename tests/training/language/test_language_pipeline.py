"""From a corpus to a run directory, and back from a checkpoint to the same weights."""

import json

import numpy as np
import pytest
from matplotlib.image import imread

from gru_training.__main__ import main
from gru_training.language.pipeline import train_language
from gru_training.language.run import LanguageRun
from gru_training.loop.checkpoint import Checkpoint
from gru_training.task import find_task
from tests.training.cut_short import terminated


def test_a_run_holds_what_its_report_shows(language_run):
    report = (language_run.path / "report.md").read_text("utf-8")
    page = (language_run.path / "report.html").read_text("utf-8")
    for name in ("curves",):
        assert np.ptp(imread(language_run.path / f"{name}.png")) > 0.5
        assert f"({name}.png)" in report
    metrics = language_run.metrics
    assert list(metrics["baselines"]) == ["unigram", "Kneser-Ney 5-gram"]
    found = metrics["model"]["test"]
    assert f"{found['perplexity']:,.2f}" in report
    assert f"{found['perplexity']:,.2f}" in page
    grams = metrics["baselines"]["Kneser-Ney 5-gram"]["test"]
    assert f"{found['bits_per_character']:.2f} bits for each character" in report.split("\n")[2]
    assert f"(Kneser-Ney 5-gram) needs {grams['bits_per_character']:.2f}" in report
    best = language_run.history[metrics["best_epoch"] - 1]
    assert np.exp(best["validation"]["loss"]) == pytest.approx(
        metrics["model"]["validation"]["perplexity"], rel=1e-5
    )
    model = language_run.load_model()
    assert model.vocabulary_size == metrics["vocabulary_size"] == len(language_run.vocabulary)
    assert len(language_run.held_out_texts()) == metrics["data"]["test"]["documents"] == 4


@pytest.mark.slow
def test_it_learns_more_than_how_often_words_occur(config_of, tmp_path):
    config = config_of(tmp_path, name="more", epochs=30, patience=30)
    metrics = train_language(config).metrics
    floor = metrics["baselines"]["unigram"]["test"]
    assert metrics["model"]["test"]["perplexity"] < 0.5 * floor["perplexity"]
    ratio = metrics["model"]["test"]["bits_per_character"] / floor["bits_per_character"]
    assert ratio < 0.8


@pytest.mark.slow
@pytest.mark.parametrize("further", [pytest.param({}, marks=pytest.mark.long), {"sampled": 5}])
def test_killed_and_resumed_it_has_the_same_weights(config_of, tmp_path, monkeypatch, further):
    settings = {"epochs": 2, **further}
    whole = train_language(config_of(tmp_path, name="whole", **settings))
    save, saved = Checkpoint.save, []
    monkeypatch.setattr(Checkpoint, "due", True)

    class Killed(BaseException):
        pass

    def save_and_die(*arguments):
        save(*arguments)
        saved.append(arguments)
        if len(saved) == 5:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_die)
        with pytest.raises(Killed):
            train_language(config_of(tmp_path, name="broken", **settings))
    state = saved[-1][1]
    assert state.step > 0  # in the middle of an epoch, and of documents
    broken = train_language(config_of(tmp_path, name="broken", **settings), resume=True)
    for own, expected in zip(
        broken.load_model().get_weights(), whole.load_model().get_weights(), strict=True
    ):
        np.testing.assert_array_equal(own, expected)
    assert not list(tmp_path.glob(".broken*"))


@pytest.mark.slow
def test_the_command_line_trains_resumes_and_scores(corpus, language_run, tmp_path, capsys):
    flags = ["--data", str(corpus), "--document", "line", "--units", "5",
             "--embedding-size", "4",
             "--unit", "characters", "--epochs", "3", "--runs-dir", str(tmp_path),
             "--name", "a"]  # fmt: skip
    with terminated():
        assert main(["language", *flags]) == 130
    assert f"gru-train resume {tmp_path / 'a'}" in capsys.readouterr().err
    assert main(["resume", str(tmp_path / "a")]) == 0
    out = capsys.readouterr().out
    assert "Kneser-Ney 6-gram" in out
    assert f"gru-serve export {tmp_path / 'a'} --to models/a" in out
    run = LanguageRun.open(tmp_path / "a")
    assert "e" in run.vocabulary.tokens
    table = tmp_path / "rows.csv"
    table.write_text("text\nthe cat sees the moon.\nzzzz qqqq\n")
    scored = tmp_path / "scored.jsonl"
    assert main(["predict", str(run.path), "--data", str(table), "--output", str(scored)]) == 0
    likely, odd = map(json.loads, scored.read_text().splitlines())
    assert likely["tokens"] == len("the cat sees the moon.")
    assert likely["perplexity"] < odd["perplexity"]
    capsys.readouterr()
    assert main(["compare", str(run.path), str(language_run.path)]) == 2
    error = capsys.readouterr().err
    assert "got one of the task language" in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_search_judges_by_the_validation_documents(config_of, tmp_path):
    task, told = find_task("language"), []
    config = config_of(tmp_path, epochs=2)
    data = task.read(config).data
    criterion = task.criterion(config, data)
    found = task.try_settings(config, data, criterion, lambda *each: told.append(each))
    assert [epoch for epoch, _ in told] == [1, 2]
    assert found.value == min(bits for _, bits in told)
    assert (criterion.name, criterion.higher_is_better) == ("bits per word", False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--steps", "0"], "--steps must be at least 1, got 0"),
        (["--dropout", "1"], "--dropout must be at least 0 and below 1"),
        (["--text-column", "body"], "--text-column need --data"),
        (["--data", "none.txt"], "none.txt"),
    ],
)
def test_settings_that_cannot_work_are_told(flags, message, capsys):
    assert main(["language", *flags]) == 2
    assert message in capsys.readouterr().err
