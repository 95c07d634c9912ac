"""A forecaster that reads the calendar, from training to a forecast."""

import numpy as np
import pandas as pd
import pytest

from gru_training.__main__ import main
from gru_training.config import from_dict, to_dict
from gru_training.errors import ConfigError, DataError
from gru_training.estimators.forecaster import Forecaster
from gru_training.forecasting.config import ForecastingConfig, SeriesConfig
from gru_training.forecasting.data import prepare, read_series
from gru_training.forecasting.run import ForecastingRun
from tests.known_calendar import HORIZON, train_demand, write_demand
from tests.made_once import made_once


@pytest.fixture(scope="module")
def made():
    def make(folder):
        data, runs = folder / "demand.csv", folder / "runs"
        write_demand(data)
        train_demand(data, runs, "without")
        train_demand(data, runs, "with", calendar=("weekday", "year"), holidays="DE")

    return made_once("known_calendar", make)


@pytest.fixture(scope="module")
def runs(made):
    return {name: ForecastingRun.open(made / "runs" / name) for name in ("with", "without")}


@pytest.mark.slow
def test_the_calendar_lowers_the_error(runs):
    found = {name: run.metrics["model"]["test"]["mse"] for name, run in runs.items()}
    assert found["with"] < 0.3 * found["without"]
    made = ("weekday", "year_sin", "year_cos", "holiday")
    assert runs["with"].metrics["known_inputs"] == [*made]
    assert runs["with"].columns == ("demand", *made)
    assert runs["with"].series.future_columns == ()
    assert runs["with"].series.calendar.years == (2020, 2033)
    assert (runs["with"].path / "known_inputs.png").is_file()


@pytest.mark.slow
def test_a_forecast_needs_the_series_alone(made, runs, tmp_path):
    """Newer values end before Christmas, which is forecast without a word from the caller."""
    table = pd.read_csv(made / "demand.csv", parse_dates=["date"])
    newer = table[table["date"] <= "2023-12-20"]
    newer.to_csv(tmp_path / "newer.csv", index=False)
    command = ["forecast", str(runs["with"].path), "--data", str(tmp_path / "newer.csv")]
    assert main([*command, "--output", str(tmp_path / "out.csv")]) == 0
    found = pd.read_csv(tmp_path / "out.csv", parse_dates=["ds"]).set_index("ds")["forecast"]
    assert len(found) == HORIZON
    truth = table.set_index("date")["demand"].reindex(found.index)
    truth.loc["2024-01-01":] = np.nan
    assert (found - truth).abs().max() < 25  # a holiday takes 100 off, a weekend 60
    again = Forecaster.load(runs["with"].path).predict(data=newer)
    np.testing.assert_allclose(again["forecast"], found, rtol=1e-5)
    assert len(Forecaster.load(runs["with"].path).predict()) == HORIZON


def test_beyond_the_years_that_are_known_there_is_no_forecast(runs):
    later = pd.DataFrame({"date": pd.date_range("2033-12-20", periods=10), "demand": 200.0})
    with pytest.raises(DataError, match=r"years 2020 to 2033, .*got 2034-01-01"):
        Forecaster.load(runs["with"].path).predict(data=later)


def test_what_never_varies_is_left_out(made):
    config = SeriesConfig(made / "demand.csv", calendar=("hour", "weekday"), horizon=7)
    series = read_series(config)
    assert series.calendar.columns == ("day_sin", "day_cos", "weekday")
    data = prepare(series, config)
    assert data.series.columns == ("demand", "weekday")
    assert data.series.calendar.columns == ("weekday",)
    assert any("day_sin, day_cos left out" in note for note in data.series.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"calendar": ("moon",)}, "--calendar must be auto, none or some of hour, weekday"),
        ({"calendar": ("auto", "hour")}, "--calendar must be auto, none or some of"),
    ],
)
def test_settings_that_are_none_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        SeriesConfig(**options)


def test_inputs_are_listed():
    values = to_dict(ForecastingConfig(data=SeriesConfig(calendar=("hour, weekday",))))
    assert values["data"]["calendar"] == ["hour", "weekday"]
    assert from_dict(ForecastingConfig, values).data.calendar == ("hour", "weekday")
    assert SeriesConfig(calendar=("none",)).calendar == ()


@pytest.mark.parametrize("options", [["--calendar", "auto"], ["--holidays", "DE"]])
def test_a_network_that_answers_tick_by_tick_is_refused(made, tmp_path, capsys, options):
    command = ["forecasting", "--data", str(made / "demand.csv"), "--runs-dir", str(tmp_path)]
    command += ["--architecture", "one_shot", "--normalisation", "none", *options]
    assert main(command) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{options[0]} must be left out of a network that answers tick by tick" in said
