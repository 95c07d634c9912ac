"""Newer rows of a panel: series that ended, are new or constant, values far off, a time zone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gru_training import Forecaster
from gru_training.__main__ import main
from gru_training.errors import DataError
from gru_training.forecasting.outcomes import file_outcomes
from gru_training.task import find_task
from tests.known_panel import HORIZON, train_sales
from tests.made_once import made_once

ZONE, ROWS = "Europe/Berlin", 160
BOUNDS = ["lo-95", "lo-80", "forecast", "hi-80", "hi-95"]


def table():
    rng = np.random.default_rng(4)
    times = pd.date_range("2024-03-28", periods=ROWS, freq="h", tz=ZONE)  # clocks change in it
    wave = np.sin(2 * np.pi * np.arange(ROWS) / 24)
    found = {
        name: level * (1 + 0.2 * wave + rng.normal(0, 0.02, ROWS))
        for name, level in {"a": 100, "b": 30, "c": 250}.items()
    }
    found["zero"] = np.zeros(ROWS)
    parts = [pd.DataFrame({"unique_id": name, "ds": times, "y": y}) for name, y in found.items()]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def forecaster():
    def make(folder: Path) -> None:
        frame = table()
        texts = frame.assign(ds=[time.isoformat() for time in frame["ds"]])
        texts.to_csv(folder / "panel.csv", index=False)
        train_sales(folder / "panel.csv", folder, "panel", (), timezone=ZONE, season=24)

    return Forecaster.load(made_once("newer_panel", make) / "panel")


@pytest.fixture(scope="module")
def ahead(forecaster):
    return forecaster.predict()


def test_forecasts_are_in_the_zone_of_the_times(forecaster, ahead, tmp_path):
    last = table()["ds"].iloc[-1]
    expected = pd.date_range(last, periods=HORIZON + 1, freq="h")[1:]
    for name in ("a", "b", "c", "zero"):
        assert list(ahead.loc[ahead["unique_id"] == name, "ds"]) == list(expected)
    run = str(forecaster.run_.path)
    assert main(["forecast", run, "--output", str(tmp_path / "f.csv")]) == 0
    assert pd.read_csv(tmp_path / "f.csv")["ds"].iloc[0] == expected[0].isoformat()
    assert main(["forecast", run, "--output", str(tmp_path / "f.parquet")]) == 0
    assert pd.read_parquet(tmp_path / "f.parquet")["ds"].iloc[0] == expected[0]


def test_a_constant_series_is_forecast_as_it_was(forecaster, ahead, capsys):
    assert (ahead.loc[ahead["unique_id"] == "zero", BOUNDS] == 0).all(axis=None)
    assert main(["forecast", str(forecaster.run_.path)]) == 0
    assert (
        "constant in the training, and forecast as they were: zero (0)" in capsys.readouterr().out
    )


def test_an_export_says_that_servers_do_not_forecast_it(forecaster):
    (note,) = find_task("forecasting").servable(forecaster.run_).notes()
    assert note == "constant in the training, so that servers do not forecast them: zero (0)"


def test_a_series_without_newer_values_is_named(forecaster, capsys):
    frame = table()
    found = forecaster.predict(data=frame[frame["unique_id"] != "b"])
    assert set(found["unique_id"]) == {"a", "c", "zero"}
    assert "no forecast for b: no value in the last" in capsys.readouterr().err


def test_errors_on_a_file_are_of_the_series_that_it_has(forecaster, tmp_path):
    """Those without a row count as those without a value."""
    frame, path = table(), tmp_path / "later.csv"
    frame["ds"] = [time.isoformat() for time in frame["ds"]]
    of_b = frame["unique_id"] == "b"
    found = []
    for rows in (frame.assign(y=frame["y"].mask(of_b)), frame[~of_b]):
        rows.to_csv(path, index=False)
        found.append(file_outcomes(forecaster.run_, path, forecaster.run_))
    expected, got = ([each.columns for each in of.model.measures] for of in found)
    np.testing.assert_array_equal(got, expected)
    assert [of.notes for of in found] == [(), ("no rows of b",)]


def test_a_series_whose_last_value_is_old_is_named(forecaster, capsys):
    frame = table()
    last = frame["ds"].max()
    ends = {"a": HORIZON - 1, "c": HORIZON}
    kept = [row.ds <= last - pd.Timedelta(hours=ends.get(row.unique_id, 0))
            for row in frame.itertuples()]  # fmt: skip
    assert set(forecaster.predict(data=frame[kept])["unique_id"]) == {"a", "b", "c", "zero"}
    said = f"no value just before the forecast: a ({HORIZON - 1} steps), c ({HORIZON} steps);"
    assert said in capsys.readouterr().err


def test_the_last_rows_of_each_series_continue_those_of_the_run(forecaster, ahead, capsys):
    """Of one that ended early they begin long before those of the others."""
    frame = table()
    kept = ~((frame["unique_id"] == "b") & (frame["ds"] > frame["ds"].max() - pd.Timedelta("30h")))
    found = forecaster.predict(data=frame[kept].groupby("unique_id").tail(5))
    assert "newer row of a, c are from the run's own series" in capsys.readouterr().err
    own, expected = (each.query("unique_id in ['a', 'c']") for each in (found, ahead))
    np.testing.assert_allclose(own[BOUNDS], expected[BOUNDS], rtol=1e-5)


def test_a_new_series_is_forecast_by_what_the_others_share(forecaster, ahead, capsys):
    """On the scale of its own history: in other units the forecast is the same in these."""
    frame = table()
    new = frame[frame["unique_id"] == "a"].assign(unique_id="new")
    beside = forecaster.predict(data=pd.concat([frame, new.assign(y=7 * new["y"])]))
    assert "new: not known to the model" in capsys.readouterr().err
    known = beside[beside["unique_id"] != "new"].reset_index(drop=True)
    pd.testing.assert_frame_equal(known, ahead, rtol=1e-5)
    alone = forecaster.predict(data=new)
    alone, beside = (each[each["unique_id"] == "new"].reset_index() for each in (alone, beside))
    np.testing.assert_allclose(7 * alone[BOUNDS], beside[BOUNDS], rtol=1e-4)
    own = ahead.loc[ahead["unique_id"] == "a", "forecast"].to_numpy()
    np.testing.assert_allclose(alone["forecast"], own, rtol=0.3)


def test_a_value_far_off_widens_the_intervals(forecaster, ahead, capsys):
    frame = table()
    last = frame.index[frame["unique_id"] == "b"][-2]
    frame.loc[last, "y"] = 5000.0
    found = forecaster.predict(data=frame)
    said = capsys.readouterr().err
    assert "b is 5000 at 2024-04-03" in said
    assert "leave the cell empty" in said
    frame.loc[last, "y"] = np.nan
    without = forecaster.predict(data=frame)
    assert "far from all" not in capsys.readouterr().err
    wide, own, plain = (each[each["unique_id"] == "b"] for each in (found, without, ahead))
    assert (wide["lo-80"].to_numpy() <= own["lo-80"].to_numpy() + 1e-3).all()
    assert (wide["hi-80"].to_numpy() >= own["hi-80"].to_numpy() - 1e-3).all()
    np.testing.assert_allclose(own["forecast"], plain["forecast"], rtol=0.5)
    others = found["unique_id"] != "b"
    pd.testing.assert_frame_equal(found[others], ahead[others], rtol=1e-5)


def test_newer_times_without_a_zone_are_not_guessed(forecaster):
    frame = table()
    naive = frame.assign(ds=frame["ds"].dt.tz_localize(None).dt.strftime("%Y-%m-%dT%H:%M"))
    found = forecaster.predict(data=naive)  # --timezone says which they are in
    assert str(found["ds"].dt.tz) == ZONE
    with pytest.raises(DataError, match="expected values of a, b, c, got none"):
        forecaster.predict(data=naive.assign(y=np.nan))
