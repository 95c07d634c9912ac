"""`gru-train forecast`, as a user runs it."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from gru_training.__main__ import main
from gru_training.forecasting.future import future_times
from tests.training.conftest import write_waves
from tests.training.fresh_process import in_fresh_process


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    return write_waves(tmp_path_factory.mktemp("data") / "waves.csv")


@pytest.fixture(scope="module")
def forecast(forecasting_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("forecast") / "forecast.csv"
    assert main(["forecast", str(forecasting_run.path), "--output", str(path)]) == 0
    return pd.read_csv(path, parse_dates=["ds"])


def test_the_file_has_times_and_intervals_in_raw_units(forecast, waves):
    names = ["unique_id", "ds", "forecast", "lo-80", "hi-80", "lo-95", "hi-95"]
    assert list(forecast.columns) == names
    known = pd.read_csv(waves, parse_dates=["time"])
    expected = known["time"].iloc[-1] + pd.to_timedelta(np.arange(1, 7), unit="h")
    for name in ("up", "down"):
        rows = forecast[forecast["unique_id"] == name]
        assert rows["ds"].tolist() == expected.tolist()
        assert (rows["forecast"] - known[name].mean()).abs().max() < 3 * known[name].std()
    assert (forecast["lo-95"] <= forecast["lo-80"]).all()
    assert (forecast["lo-80"] <= forecast["forecast"]).all()
    assert (forecast["forecast"] <= forecast["hi-80"]).all()
    assert (forecast["hi-80"] <= forecast["hi-95"]).all()


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv.gz"])
def test_every_kind_of_output(forecasting_run, forecast, tmp_path, kind):
    path = tmp_path / f"forecast.{kind}"
    command = ["forecast", str(forecasting_run.path), "--output", str(path)]
    assert main(command) == 0
    read = {"jsonl": lambda p: pd.read_json(p, lines=True), "parquet": pd.read_parquet}
    table = read.get(kind, lambda p: pd.read_csv(p, parse_dates=["ds"]))(path)
    table["ds"] = pd.to_datetime(table["ds"]).astype(forecast["ds"].dtype)
    pd.testing.assert_frame_equal(table, forecast, check_dtype=False, rtol=1e-6)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert main(command) == 2
    assert main([*command, "--overwrite"]) == 0


def test_columns_go_by_name(forecasting_run, forecast, waves, tmp_path, capsys):
    table = pd.read_csv(waves)
    data, output = tmp_path / "swapped.csv", tmp_path / "out.csv"
    table[["down", "up", "time"]].assign(weather="fine").to_csv(data, index=False)
    command = ["forecast", str(forecasting_run.path), "--data", str(data), "--output", str(output)]
    assert main(command) == 0
    assert "note: columns that the model does not know: weather" in capsys.readouterr().out
    pd.testing.assert_frame_equal(pd.read_csv(output, parse_dates=["ds"]), forecast)


@pytest.mark.parametrize(
    ("factor", "noted"), [(1, False), (1.5, False), (1000, True), (0.001, True)]
)
def test_rows_in_another_unit_are_noted(forecasting_run, waves, tmp_path, capsys, factor, noted):
    table, data = pd.read_csv(waves), tmp_path / "newer.csv"
    table.assign(up=table["up"] * factor).to_csv(data, index=False)
    assert main(["forecast", str(forecasting_run.path), "--data", str(data)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert ("note: up is about" in out and "are both in the same unit?" in out) == noted
    assert "note: down is about" not in out


def _training_with(run, path, **settings):
    """Copy a run as if it had been trained with other settings of its data."""
    shutil.copytree(run.path, path)
    text = (path / "config.json").read_text()
    config = json.loads(text)
    config["data"] |= settings
    (path / "config.json").write_text(json.dumps(config).ljust(len(text)))  # its size is checked
    return str(path)


@pytest.mark.parametrize("known", [True, False])
def test_newer_rows_are_sorted_and_dropped_as_those_of_the_training(
    forecasting_run, forecast, waves, tmp_path, capsys, known
):
    """Of the newest row first, as many programs write it, and one that is there twice."""
    table = pd.read_csv(waves)[::-1]
    data, output = tmp_path / "newer.csv", tmp_path / "out.csv"
    pd.concat([table, table[50:51]]).to_csv(data, index=False)
    settings = {"sort_rows": known, "drop_bad": known}
    run = _training_with(forecasting_run, tmp_path / "run", **settings)
    status = main(["forecast", run, "--data", str(data), "--output", str(output)])
    said = capsys.readouterr()
    if known:
        assert status == 0, said.err
        assert "note: rows sorted by time" in said.out
        assert "note: 1 row dropped" in said.out
        pd.testing.assert_frame_equal(pd.read_csv(output, parse_dates=["ds"]), forecast)
    else:
        assert status == 2
        assert "expected each time once" in said.err
        assert "sort the rows\n" in said.err
        assert "--drop-bad" not in said.err  # this command has no such flags


def test_rows_between_the_steps_of_the_run_do_not_continue_it(
    forecasting_run, waves, tmp_path, capsys
):
    table = pd.read_csv(waves, parse_dates=["time"])[-5:]
    data = tmp_path / "newer.csv"
    for minutes, status in ((300, 0), (330, 2)):
        late = table["time"] + pd.Timedelta(minutes=minutes)
        table.assign(time=late).to_csv(data, index=False)
        assert main(["forecast", str(forecasting_run.path), "--data", str(data)]) == status
    assert "or rows that go on from 2021-05-14 07:00:00" in capsys.readouterr().err


@pytest.mark.parametrize("columns", ["200", "30"])
def test_the_screen_shows_all_of_it(forecasting_run, forecast, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["forecast", str(forecasting_run.path)]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.split("\n") if line.startswith((" up", " down"))]
    assert len(rows) == 12
    assert rows[0][1:3] == ["2021-05-14", "08:00"]
    shown = [float(row[3].replace(",", "")) for row in rows]
    np.testing.assert_allclose(shown, forecast["forecast"], rtol=1e-4)
    assert "…" not in out


def test_errors_are_one_line_and_soon_there(forecasting_run, waves, tmp_path):
    other = tmp_path / "other.csv"
    pd.read_csv(waves).drop(columns="down").to_csv(other, index=False)
    cases = [
        (["--horizon", "9"], "--horizon must be 1 to 6, the steps that"),
        (["--output", tmp_path / "a.xlsx"], "expected a file name ending in .csv"),
        (["--output", tmp_path / "none" / "a.csv"], "there is no folder"),
        (["--data", tmp_path / "none.csv"], "there is no such file"),
        (["--data", other], "has no column 'down'; its columns are ['time', 'up']"),
    ]
    commands = [["forecast", *map(str, (forecasting_run.path, *words))] for words, _ in cases]
    heavy = {"keras", "matplotlib", "sklearn", "tensorflow"}
    ended, imported = in_fresh_process(*commands, heavy=heavy)
    assert not imported
    for (status, _, errors), (_, message) in zip(ended, cases, strict=True):
        assert status == 2, errors
        assert message in errors
        assert errors.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["other.csv"]


@pytest.mark.slow
def test_runs_that_cannot_forecast(tiny_run, tmp_path, capsys):
    assert main(["forecast", str(tiny_run.path)]) == 2
    assert "expected a forecasting run, got task 'sentiment'" in capsys.readouterr().err
    assert main(["forecast", str(tmp_path / "none")]) == 2
    assert "there is no run directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("last", "frequency", "expected"),
    [
        ("2024-01-31", "ME", ["2024-02-29", "2024-03-31"]),
        ("2023-12-01", "MS", ["2024-01-01", "2024-02-01"]),
        ("2024-03-01", "B", ["2024-03-04", "2024-03-05"]),
        ("2024-02-24", "W-SAT", ["2024-03-02", "2024-03-09"]),
        ("2023-10-01", "QS-OCT", ["2024-01-01", "2024-04-01"]),
        ("2024-02-28 23:45", "15min", ["2024-02-29 00:00", "2024-02-29 00:15"]),
    ],
)
def test_times_follow_the_spacing(last, frequency, expected):
    times = future_times(pd.Timestamp(last), frequency, 2)
    assert times.tolist() == [pd.Timestamp(each) for each in expected]


def test_one_step_is_told_as_one(forecasting_run, capsys):
    assert main(["forecast", str(forecasting_run.path), "--horizon", "1"]) == 0
    out = capsys.readouterr().out
    assert "waves: 1 step at 2021-05-14 08:00:00, after 2021-05-14 07:00:00\n" in out
