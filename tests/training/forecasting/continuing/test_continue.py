"""`gru-train continue` of runs that forecast series, from the command line to forecasts."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gru_training.__main__ import main
from gru_training.compare.command import compare_runs
from gru_training.forecasting.continuing.rows import read_whole
from gru_training.forecasting.run import ForecastingRun
from tests.made_once import made_once
from tests.training.conftest import write_waves

pytestmark = pytest.mark.long

REPOSITORY = Path(__file__).parents[4]
SMALL = ["--epochs", "2", "--units", "6", "--horizon", "6", "--networks", "1"]
OLD, ALL = 320, 360


def gru_train(*arguments):
    return main(list(map(str, arguments)))


def cut(folder):
    """The first rows, the last ones with some that are known, and all of them."""
    whole = pd.read_csv(write_waves(folder / "all.csv", ALL))
    whole[:OLD].to_csv(folder / "old.csv", index=False)
    whole[OLD - 30 :].to_csv(folder / "new.csv", index=False)
    return whole


def make(folder):
    cut(folder)
    common = ["--data", folder / "old.csv", "--runs-dir", folder, "--name", "old"]
    assert gru_train("forecasting", *SMALL, *common) == 0
    assert (
        gru_train("continue", folder / "old", "--data", folder / "new.csv", "--name", "more") == 0
    )


@pytest.fixture(scope="module")
def folder():
    return made_once("continued_forecasts", make)


@pytest.fixture(scope="module")
def runs(folder):
    return ForecastingRun.open(folder / "old"), ForecastingRun.open(folder / "more")


def squared_errors(run, whole, origins):
    """Mean squared error of a run's model on windows of all rows, in units of the old scale."""
    scale = run.preprocessor()
    read = whole[run.series.columns[0]].to_numpy(), whole[run.series.columns[1]].to_numpy()
    values = np.column_stack(read).astype(np.float32)
    L, H = run.series.lookback, run.series.horizon
    model = run.load_model()
    middle = list(run.levels).index(0.5)
    errors = []
    for origin in origins:
        history = scale.standardise(values[np.newaxis, origin - L : origin])
        answer = model(history, training=False).numpy()[0, :, :, 0] + run.offsets[..., middle]
        truth = (values[origin : origin + H] - scale.mean) / scale.deviation
        errors.append((answer - truth) ** 2)
    return float(np.nanmean(errors))


def test_the_borders_move_on_and_the_old_run_stands_beside_the_new(folder, runs):
    old, more = runs
    whole = pd.read_csv(folder / "all.csv")
    assert more.series.last_time == str(pd.Timestamp(whole["time"].iloc[-1]))
    assert more.series.borders[0] > old.series.borders[0]
    assert more.series.borders[2] == ALL
    of, horizon = more.metrics["continued"], more.series.horizon
    origins = np.arange(more.series.borders[1], ALL - horizon + 1)
    known = origins[origins + horizon <= OLD]
    parts = of["parts"]
    assert parts["old test windows"]["rows"] == len(known)
    assert parts["new test windows"]["rows"] == len(origins) - len(known)
    assert parts["old test windows"]["before"] == pytest.approx(
        squared_errors(old, whole, known), rel=1e-3
    )
    assert parts["all test windows"]["after"] == pytest.approx(
        squared_errors(more, whole, origins), rel=1e-3
    )
    assert parts["all test windows"]["after"] == pytest.approx(
        more.metrics["model"]["test"]["mse"], rel=1e-6
    )
    begin, end = more.series.borders[:2]
    held = np.arange(begin, min(end, OLD) - horizon + 1)
    assert of["check"]["rows"] == len(held)
    assert of["check"]["before"] == pytest.approx(squared_errors(old, whole, held), rel=1e-3)
    assert of["grown"] == {"rows": ALL - OLD, "series": []}
    for name in ("report.md", "report.html"):
        text = (more.path / name).read_text("utf-8")
        assert "The run it goes on from" in text
        assert f"{ALL - OLD} new rows" in text


def test_scale_parts_and_settings(runs):
    """The scale is kept, and what is linear is fitted on the rows that the training part has."""
    old, more = runs
    assert more.digest(["scaler.json"]) == old.digest(["scaler.json"])
    names = [share["name"] for share in more.combination["shares"]]
    held = {layer.name for layer in old.load_model().layers}
    assert names == [
        share["name"]
        for share in old.combination["shares"]
        if not share["network"] or share["network"] in held
    ]
    assert more.config.training.learning_rate == old.config.training.learning_rate / 4
    assert more.metrics["refit"]["rows"] == ALL
    assert more.config.continued.from_run == old.path
    assert np.isfinite(more.delivered_model().get_weights()[0]).all()


def test_it_forecasts_is_tested_again_and_compared(folder, runs, tmp_path, capsys):
    old, more = runs
    assert gru_train("forecast", more.path) == 0
    last = pd.Timestamp(more.series.last_time)
    assert str(last + pd.Timedelta(hours=1))[:16] in capsys.readouterr().out
    copy = shutil.copytree(more.path, tmp_path / "more")  # a backtest is written beside the run
    assert gru_train("backtest", copy, "--folds", "2", "--name", "more-backtest") == 0
    # The test parts differ; a file of all rows brings both to the windows that neither knows.
    found = compare_runs([old.path, more.path], folder / "all.csv", 999)
    by_name = {each.name: each for each in found.contenders if each.is_run}
    assert set(by_name) == {"old", "more"}
    assert gru_train("compare", old.path, more.path) != 0
    assert "the same" in capsys.readouterr().err


def test_killed_and_resumed_and_continued_again(folder, tmp_path):
    arguments = ["continue", folder / "old", "--data", folder / "new.csv", "--epochs", "6",
                 "--patience", "6", "--runs-dir", tmp_path]  # fmt: skip
    assert gru_train(*arguments, "--name", "whole") == 0
    command = [sys.executable, "-m", "gru_training", *map(str, arguments), "--name", "broken"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL) as process:
        while not (tmp_path / ".broken.checkpoint").exists():
            assert process.poll() is None
            time.sleep(0.002)
        process.kill()
    assert gru_train("resume", tmp_path / "broken") == 0
    whole, broken = (ForecastingRun.open(tmp_path / name) for name in ("whole", "broken"))
    for one, other in zip(
        whole.load_model().get_weights(), broken.load_model().get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    rows = pd.read_csv(folder / "all.csv")
    later = rows.assign(time=pd.to_datetime(rows["time"]) + pd.Timedelta(hours=ALL))[:40]
    later.to_csv(tmp_path / "later.csv", index=False)
    again = ["continue", tmp_path / "broken", "--data", tmp_path / "later.csv", "--name", "again"]
    assert gru_train(*again, "--epochs", "1") == 0
    last = ForecastingRun.open(tmp_path / "again")
    assert last.series.borders[2] == ALL + 40
    assert len(read_whole(last.config)) == ALL + 40


def test_rows_that_cannot_be_used(folder, tmp_path, capsys):
    rows = pd.read_csv(folder / "new.csv")
    cases = {
        "renamed.csv": (rows.rename(columns={"up": "north"}), "has no column 'up'"),
        "daily.csv": (
            rows.assign(time=pd.date_range("2021-06-01", periods=len(rows), freq="D")),
            "expected a row every 1 steps of h",
        ),
        "known.csv": (rows[:20], "expected rows after 2021-05-14 07:00:00"),
    }
    for name, (table, message) in cases.items():
        table.to_csv(tmp_path / name, index=False)
        status = gru_train(
            "continue", folder / "old", "--data", tmp_path / name, "--runs-dir", tmp_path
        )
        said = capsys.readouterr().err
        assert status, name
        assert message in said, said
        assert "Traceback" not in said
    for flag, message in (
        ("--only-new", "look back on its old rows"),
        ("--drop-small-classes", "for runs of texts"),
    ):
        assert gru_train("continue", folder / "old", "--data", folder / "new.csv", flag)
        assert message in capsys.readouterr().err
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_old_rows_that_are_gone_or_have_changed(folder, tmp_path, capsys):
    """The longer file stands in for the old one where it begins with the same rows."""
    for name in ("old.csv", "all.csv", "new.csv"):
        shutil.copy(folder / name, tmp_path / name)
    run = shutil.copytree(folder / "old", tmp_path / "old")
    settings = json.loads((run / "config.json").read_text())
    settings["data"]["data"] = str(tmp_path / "old.csv")
    text = json.dumps(settings)
    (run / "config.json").write_text(text)
    sizes = json.loads((run / "manifest.json").read_text())
    sizes["config.json"] = len(text)
    (run / "manifest.json").write_text(json.dumps(sizes))
    table = pd.read_csv(tmp_path / "old.csv")
    table.loc[5, "up"] += 1
    table.to_csv(tmp_path / "old.csv", index=False)
    assert gru_train("continue", run, "--data", tmp_path / "new.csv") != 0
    assert "are not those it was trained on" in capsys.readouterr().err
    (tmp_path / "old.csv").unlink()
    assert gru_train("continue", run, "--data", tmp_path / "new.csv") != 0
    assert "cannot be read again" in capsys.readouterr().err
    place = ["--name", "from-all", "--epochs", "1"]
    assert gru_train("continue", run, "--data", tmp_path / "all.csv", *place) == 0
    assert ForecastingRun.open(tmp_path / "from-all").series.borders[2] == ALL


def test_a_network_alone(folder, tmp_path):
    """With a rate of next to nothing it stays what it was; the scale is measured again if asked."""
    alone = ["--no-combine", *SMALL, "--lookback", "24", "--segment", "6"]
    place = ["--data", folder / "old.csv", "--runs-dir", tmp_path, "--name", "alone"]
    assert gru_train("forecasting", *alone, *place) == 0
    arguments = ["--data", folder / "new.csv", "--refit-scaler", "--name", "more", "--epochs", "1"]
    assert gru_train("continue", tmp_path / "alone", *arguments, "--learning-rate", "1e-12") == 0
    old, more = (ForecastingRun.open(tmp_path / name) for name in ("alone", "more"))
    for load in (ForecastingRun.load_model, ForecastingRun.delivered_model):
        before, after = load(old).get_weights(), load(more).get_weights()
        for one, other in zip(before, after, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-7)
    rows = pd.read_csv(folder / "all.csv")[["up", "down"]].to_numpy()[: more.series.borders[0]]
    np.testing.assert_allclose(more.preprocessor().mean, np.nanmean(rows, axis=0))
    part = more.metrics["continued"]["parts"]["all test windows"]
    assert part["after"] == pytest.approx(more.metrics["model"]["test"]["mse"], rel=1e-6)
    assert part["before"] == pytest.approx(part["after"], rel=0.1)


def panel(names, begin, end, path):
    rng = np.random.default_rng(3)
    hours = np.arange(ALL)
    frames = []
    for number, name in enumerate(names):
        values = 10 * (number + 1) + np.sin(2 * np.pi * hours / 24 + number)
        values = values + 0.1 * rng.normal(size=ALL)
        times = pd.date_range("2021-05-01", periods=ALL, freq="h")
        table = pd.DataFrame({"unique_id": name, "ds": times, "y": values})
        frames.append(table[0 if name == "c" else begin : end])
    pd.concat(frames).to_csv(path, index=False)
    return path


def test_series_that_are_new(tmp_path):
    """The vectors of the known ones stay; a new one begins as an unknown one."""
    old = panel("ab", 0, OLD, tmp_path / "old.csv")
    new = panel("abc", OLD, ALL, tmp_path / "new.csv")
    flags = [*SMALL, "--channel-embedding", "--loss", "mae"]
    place = ["--runs-dir", tmp_path, "--name", "two"]
    assert gru_train("forecasting", "--data", old, *flags, *place) == 0
    still = ["--learning-rate", "1e-12", "--epochs", "1", "--name", "three"]
    assert gru_train("continue", tmp_path / "two", "--data", new, *still) == 0
    two, three = (ForecastingRun.open(tmp_path / name) for name in ("two", "three"))
    assert three.target_columns == ("a", "b", "c")
    assert three.metrics["continued"]["grown"]["series"] == ["c"]
    np.testing.assert_array_equal(three.preprocessor().mean[:2], two.preprocessor().mean)
    models = two.load_model(), three.load_model()
    grown = 0
    for layer in models[1].layers:
        if not layer.name.startswith("network_"):
            continue
        before, after = (
            next(w for w in model.get_layer(layer.name).weights if w.name == "channel").numpy()
            for model in models
        )
        grown += 1
        np.testing.assert_allclose(after[:2], before[:2], atol=1e-7)
        for row in after[2:]:
            np.testing.assert_allclose(row, before[-1], atol=1e-7)
    assert grown
    assert gru_train("forecast", three.path) == 0
