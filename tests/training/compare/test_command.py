import json
import shutil
from pathlib import Path

import pytest

from gru_training.__main__ import main
from gru_training.compare.command import CompareConfig, compare_runs, flags, ordered, run_names
from gru_training.errors import ConfigError
from gru_training.task import TASKS
from tests.training.fresh_process import in_fresh_process


@pytest.fixture
def runs(tiny_run, tmp_path):
    """A run, and another one with other settings that always gives the other answer."""
    folder = tmp_path / "runs"
    first = shutil.copytree(tiny_run.path, folder / "first")
    second = shutil.copytree(tiny_run.path, folder / "second")
    stored = (second / "test_predictions.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in stored.splitlines()]
    for row in rows[::3]:
        row["scores"] = row["scores"][::-1]
        row["predicted"] = next(r["label"] for r in rows if r["label"] != row["predicted"])
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    rewrite(second, "test_predictions.jsonl", lines)
    settings = json.loads((second / "config.json").read_text())
    settings["model"]["units"] = 7
    rewrite(second, "config.json", json.dumps(settings))
    return first, second


def rewrite(run, name, text):
    (run / name).write_text(text, "utf-8")
    sizes = json.loads((run / "manifest.json").read_text())
    sizes[name] = (run / name).stat().st_size
    (run / "manifest.json").write_text(json.dumps(sizes))


def test_tables_and_folder(runs, capsys):
    first, second = runs
    assert main(["compare", str(first), str(second), "--resamples", "999"]) == 0
    said = capsys.readouterr().out
    folder = first.parent / "first-vs-second"
    assert str(folder / "comparison.md") in said
    assert "2 runs on the same" in said
    assert "bag of words" in said
    assert "--units" in said
    stored = json.loads((folder / "comparison.json").read_text("utf-8"))
    assert stored["settings"] == {"--units": {"first": "5", "second": "7"}}
    assert [each["name"] for each in stored["contenders"] if each["is_run"]] == ["first", "second"]
    again = main(["compare", str(first), str(second), "--resamples", "999", "--output",
                  str(first.parent / "again")])  # fmt: skip
    assert again == 0
    for name in ("comparison.json", "comparison.md", "comparison.png"):
        assert (folder / name).read_bytes() == (first.parent / "again" / name).read_bytes()


def test_the_reference_can_be_chosen_by_its_name(runs, capsys):
    first, second = runs
    command = ["compare", str(first), str(second), "--reference", "second", "--resamples", "999"]
    assert main(command) == 0
    assert "against second" in capsys.readouterr().out
    assert (first.parent / "second-vs-first" / "comparison.md").is_file()


def test_in_python(runs):
    comparison = compare_runs(runs, resamples=999)
    assert comparison.reference.name == "first"
    assert comparison.contenders[1].mcnemar.gained + comparison.contenders[1].mcnemar.lost > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["first"], "compare needs at least two run directories, got "),
        (["first", "nowhere"], "there is no run directory "),
        (["first", "first"], "expected different runs, got "),
        (["first", "second", "--reference", "third"], "--reference must be one of "),
        (["first", "second", "--data", "none.csv"], "--data: there is no file none.csv"),
        (["first", "second", "--resamples", "10"], "--resamples must be at least 999, got 10"),
    ],
)
def test_user_errors_are_one_line_and_status_2(runs, capsys, arguments, message):
    folder = runs[0].parent
    places = [str(folder / x) if x in ("first", "second", "nowhere") else x for x in arguments]
    assert main(["compare", *places]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"gru-train: error: {message}")
    assert error.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == ["first", "second"]


def test_what_is_there_already_is_kept(runs, capsys):
    first, second = runs
    assert main(["compare", str(first), str(second), "--output", str(second)]) == 2
    assert "second exists already; choose another --output or remove it" in capsys.readouterr().err


def test_runs_of_two_tasks(runs, forecasting_run, capsys):
    assert main(["compare", str(runs[0]), str(forecasting_run.path)]) == 2
    error = capsys.readouterr().err
    assert "waves: expected a sentiment run as " in error
    assert "got one of the task 'forecasting'" in error


def test_arguments_are_checked_without_tensorflow(runs):
    """Up to the last check, which is that the folder exists already."""
    first, second = map(str, runs)
    command = ["compare", first, second, "--output", first]
    (compared,), imported = in_fresh_process(
        command, heavy={"keras", "tensorflow", "matplotlib", "scipy"}
    )
    assert compared.status == 2
    assert "exists already" in compared.errors
    assert not imported


def test_runs_that_forecast_other_steps_are_refused_without_tensorflow(forecasting_run, tmp_path):
    copy = shutil.copytree(forecasting_run.path, tmp_path / "copy")
    series = json.loads((copy / "series.json").read_text("utf-8"))
    rewrite(copy, "series.json", json.dumps({**series, "horizon": 7}))
    command = ["compare", str(forecasting_run.path), str(copy)]
    (compared,), imported = in_fresh_process(command, heavy={"keras", "tensorflow"})
    assert f"{copy}: expected the horizon 6 of " in compared.errors
    assert not imported


def test_runs_of_a_task_that_is_not_compared(runs, capsys):
    first, second = runs
    settings = json.loads((first / "config.json").read_text())
    rewrite(first, "config.json", json.dumps({**settings, "task": "language"}))
    assert main(["compare", str(first), str(second)]) == 2
    assert "gru-train compare knows runs of sentiment and forecasting" in capsys.readouterr().err


@pytest.mark.slow
def test_forecasters_are_compared_window_by_window(forecasting_run, tmp_path, capsys):
    copy = shutil.copytree(forecasting_run.path, tmp_path / "copy")
    command = ["compare", str(forecasting_run.path), str(copy), "--output", str(tmp_path / "out")]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "seasonal naive" in said
    assert "No difference in MSE from waves shown: copy." in said
    assert "MASE" in said


@pytest.mark.slow
def test_a_task_of_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(TASKS, "tagging", "tests.training.toy_task.answering")
    for name, epochs in (("short", "1"), ("long", "25")):
        command = ["tagging", "--sequences", "600", "--learning-rate", "0.02", "--epochs", epochs]
        assert main([*command, "--runs-dir", str(tmp_path), "--name", name]) == 0
    paths = [str(tmp_path / name) for name in ("short", "long")]
    capsys.readouterr()
    assert main(["compare", *paths]) == 0
    said = capsys.readouterr().out
    assert "2 runs on the same 120 held-out sequences." in said
    assert "Better than short by sequences right: long." in said
    assert "--epochs" in said


def test_names_are_told_apart(tmp_path):
    paths = [tmp_path / "a" / "run", tmp_path / "b" / "run", tmp_path / "b" / "other"]
    assert run_names(paths) == ["a/run", "b/run", "b/other"]
    assert run_names(paths[1:]) == ["run", "other"]


def test_the_reference_comes_first():
    paths = [Path("x/a"), Path("x/b"), Path("x/c")]
    assert ordered(paths, None) == paths
    assert ordered(paths, Path("c")) == ordered(paths, Path("x/../x/c")) == [
        paths[2], paths[0], paths[1]]  # fmt: skip
    with pytest.raises(ConfigError, match="--reference must be one of x/a, y/a"):
        ordered([Path("x/a"), Path("y/a")], Path("a"))


def test_settings_go_by_their_flags(tiny_run):
    found = flags(tiny_run.config)
    assert found["--learning-rate"] == "0.002"
    assert found["--data"] == found["--preset"] == "–"
    assert found["--bidirectional"] == "yes"
    assert "--runs-dir" not in found


def test_every_setting_has_its_bounds():
    paths = (Path("a"), Path("b"))
    with pytest.raises(ConfigError, match="--seed"):
        CompareConfig(paths, seed=-1)
