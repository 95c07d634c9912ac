"""Settings from flags, `--set` and files."""

import dataclasses
import re
import tomllib

import pytest

from gru_training.__main__ import main
from gru_training.command_settings import as_words, given_settings, task_settings
from gru_training.config import sections, toml_text
from gru_training.errors import ConfigError
from gru_training.task import TASKS, find_task

MOST_FLAGS = 45

CHANGED = {
    "sentiment": ("word_dropout", 0.31, "spacing", False, "target_precision", ("a=0.9", "b=0.8")),
    "forecasting": ("clip_norm", 2.5, "channel_independent", False, "target", ("a", "two words")),
    "language": ("sampled", 64, "recurrent_dropout", 0.25, "more_data", ()),
}  # fmt: skip


def parsed(name, *words):
    return task_settings(find_task(name), words, "gru-train")


@pytest.mark.parametrize("name", TASKS)
def test_a_file_that_a_run_has_written_gives_its_settings(name, tmp_path):
    task, (a, one, b, two, c, three) = find_task(name), CHANGED[name]
    config, where = task.settings(), sections(task.settings())
    for setting, value in ((a, one), (b, two), (c, three)):
        part = dataclasses.replace(getattr(config, where[setting]), **{setting: value})
        config = dataclasses.replace(config, **{where[setting]: part})
    path = tmp_path / "settings.toml"
    path.write_text(toml_text(config), "utf-8")
    assert tomllib.loads(path.read_text())[where[a]][a] == one
    assert parsed(name, "--config", str(path)) == config
    assert {a, b} <= given_settings(task, [f"--config={path}"])


@pytest.mark.parametrize("name", TASKS)
def test_few_settings_have_flags_and_those_exist(name, capsys):
    task = find_task(name)
    with pytest.raises(SystemExit):
        parsed(name, "--help")
    said = capsys.readouterr().out
    known = sections(task.settings())
    for setting in known:
        flag = setting.replace("_", "-")
        shown = re.search(rf"^\W*(--[\w-]+, )?--{flag}[ ,]", said, re.M) is not None
        assert shown == (setting in task.flags), setting
        assert (f"--{flag} " in said) <= shown, setting
    assert len({*task.flags, "preset", "config", "set"}) <= MOST_FLAGS


def test_later_ones_win(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('preset = "mr"\n[model]\nunits = 24\ndropout = 0.2\n[training]\nepochs = 3\n')
    words = ["--units", "8", "--set", "model.dropout=.3", "--config", str(path), "--set=epochs=4"]
    found = parsed("sentiment", *words)
    assert (found.model.units, found.model.dropout, found.training.epochs) == (8, 0.3, 4)
    assert found.preset == "mr"
    assert found.data == parsed("sentiment", "--preset", "mr").data


def test_settings_are_checked_together_whichever_way_they_are_given(tmp_path):
    """`--set track_to=...` was refused beside `--track mlflow`."""
    path = tmp_path / "settings.toml"
    path.write_text('[run]\ntrack_to = "http://flow"\n')
    words = ["--config", str(path), "--set", "register=films"]
    found = parsed("sentiment", *words, "--track", "mlflow").run
    assert (found.track, found.track_to, found.register) == ("mlflow", "http://flow", "films")
    with pytest.raises(ConfigError, match=r"--track-to and .* need --track"):
        parsed("sentiment", *words)


@pytest.mark.parametrize(
    ("text", "section", "value"),
    [
        ("word_dropout=0", "model", 0.0),
        ("data.spacing=no", "data", False),
        ("spacing=none", "data", None),
        ("more-data=a.csv,b.csv", "data", ("a.csv", "b.csv")),
        ("text_column=2020", "data", "2020"),
        ("pooling=mean", "model", "mean"),
    ],
)
def test_values_are_read_as_the_setting_takes_them(text, section, value):
    name = text.partition("=")[0].rpartition(".")[2].replace("-", "_")
    found = getattr(getattr(parsed("sentiment", "--data", "x.csv", "--set", "data=x.csv",
                                   "--set", text), section), name)  # fmt: skip
    assert (tuple(map(str, found)) if isinstance(value, tuple) else found) == value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "word_drop=1"], "--set: there is no setting 'word_drop'; did you mean word_dro"),
        (["--set", "data.units=1"], "there is no setting 'data.units'"),
        (["--set", "units"], "--set must be NAME=VALUE, as word_dropout=0.3, got 'units'"),
        (["--set", "units=many"], "--set: units must be int, got 'many'"),
        (
            ["--word-dropout", "0.3"],
            "the setting word_dropout has no flag; give it as --set word_d",
        ),
        (["--no-spacing"], "the setting spacing has no flag; give it as --set spacing=false"),
        (["--config", "none.toml"], "--config: there is no file none.toml"),
    ],
)
def test_what_cannot_be_used_is_named(words, said):
    with pytest.raises(ConfigError) as caught:
        parsed("sentiment", *words)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[model]\nunit = 3\n", "[model] has no setting 'unit'; did you mean units"),
        ("[data]\nunits = 3\n", "[data] has no setting 'units'; it stands in [model]"),
        ("units = 3\n", "expected the tables [data], "),
        ("[model]\nunits = 'x'\n", "units must be int, got 'x'"),
        ("[model\n", "expected a TOML file"),
        ('preset = "none"\n', "--preset must be one of"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, text, said):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        parsed("sentiment", "--config", str(path))
    assert said in str(caught.value)


def test_errors_name_settings_without_flags_as_they_are_given(capsys):
    assert main(["sentiment", "--set", "word_dropout=2"]) == 2
    said = capsys.readouterr().err
    assert "--set word_dropout must be at least 0 and below 1, got 2.0" in said


def test_what_a_search_has_found_is_given_again():
    task = find_task("sentiment")
    words = [word for each in (("units", 96), ("subwords", True), ("word_dropout", 0.125))
             for word in as_words(task, *each)]  # fmt: skip
    assert words == ["--units", "96", "--set", "subwords=true", "--set", "word_dropout=0.125"]
    found = parsed("sentiment", *words).model
    assert (found.units, found.subwords, found.word_dropout) == (96, True, 0.125)
    assert given_settings(task, words) == {"units", "subwords", "word_dropout"}
