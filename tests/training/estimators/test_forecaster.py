"""Forecaster, compared with the command line, the exported model and the stored windows."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tensorflow as tf
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gru_training import Forecaster, TextClassifier
from gru_training.__main__ import main
from gru_training.errors import CheckpointError, ConfigError, DataError, RunDirectoryError
from gru_training.forecasting.backtest import run_backtest
from gru_training.forecasting.config import BacktestConfig
from gru_training.forecasting.export.servable import ForecastingServable
from gru_training.forecasting.run import ForecastingRun
from tests.made_once import made_once
from tests.training.conftest import write_waves
from tests.training.cut_short import killed

TINY = {
    "lookback": 24,
    "horizon": 6,
    "validation_fraction": 0.25,
    "units": 6,
    "segment": 6,
    "epochs": 2,
}
FLAGS = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
COLUMNS = ["unique_id", "ds", "forecast", "lo-80", "hi-80", "lo-95", "hi-95"]


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    return write_waves(tmp_path_factory.mktemp("data") / "waves.csv")


@pytest.fixture(scope="module")
def frame(waves):
    return pd.read_csv(waves, parse_dates=["time"])


@pytest.fixture(scope="module")
def fitted():
    """Loaded from its run, so without the rows that it was fitted on."""

    def make(folder):
        frame = pd.read_csv(write_waves(folder / "waves.csv"), parse_dates=["time"])
        Forecaster(**TINY, runs_dir=folder, name="frame").fit(frame)

    return Forecaster.load(made_once("forecaster", make) / "frame")


def same_weights(one, two):
    for first, second in zip(
        ForecastingRun.open(one).load_model().get_weights(),
        ForecastingRun.open(two).load_model().get_weights(),
        strict=True,
    ):
        np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_a_frame_gives_the_run_of_the_same_rows_in_a_file(fitted, waves, tmp_path):
    arguments = ["forecasting", "--data", str(waves), *FLAGS, "--runs-dir", str(tmp_path)]
    assert main([*arguments, "--name", "file"]) == 0
    same_weights(tmp_path / "file", fitted.run_.path)
    file = Forecaster.load(tmp_path / "file")
    pd.testing.assert_frame_equal(file.predict(), fitted.predict())
    assert file.run_.metrics["model"] == fitted.run_.metrics["model"]


@pytest.mark.slow
def test_the_forecast_is_that_of_the_exported_signature(fitted, frame):
    forecast = fitted.predict()
    assert list(forecast.columns) == COLUMNS
    assert forecast["unique_id"].tolist() == ["up"] * 6 + ["down"] * 6
    expected = pd.date_range("2021-05-14 08:00", periods=6, freq="h")
    assert forecast["ds"].tolist() == [*expected, *expected]
    history = frame[["up", "down"]].to_numpy(np.float32)[np.newaxis, -24:]
    answer = ForecastingServable(fitted.run_).signatures["serving_default"](tf.constant(history))
    quantiles = answer["quantiles"].numpy()[0]  # (H, K, Q)
    for number, name in enumerate(("up", "down")):
        rows = forecast[forecast["unique_id"] == name]
        served = dict(
            zip(
                ("lo-95", "lo-80", "forecast", "hi-80", "hi-95"),
                quantiles[:, number].T,
                strict=True,
            )
        )
        # The run computes with what XLA compiled, the signature with plain operations: they agree
        # to float32's rounding of standardised values, of the size 1, whatever the forecast's.
        rounding = 1e-5 * frame[name].std()
        for column, values in served.items():
            np.testing.assert_allclose(rows[column], values, rtol=1e-5, atol=rounding)


def test_tables_of_other_libraries_indexes_and_long_ones_are_read_alike(fitted, frame):
    expected = fitted.predict(data=frame)
    pd.testing.assert_frame_equal(expected, fitted.predict())
    long = frame.melt("time", var_name="unique_id", value_name="y").rename(columns={"time": "ds"})
    for table in (
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        frame.set_index("time"),
        frame[["down", "time", "up"]],
        frame.assign(time=frame["time"].astype(str), note="text"),
        long,
        pl.from_pandas(long.iloc[::-1]),
    ):
        pd.testing.assert_frame_equal(fitted.predict(data=table), expected)


@pytest.mark.long
def test_a_long_table_trains_a_forecaster_of_every_series(frame, tmp_path):
    long = frame.melt("time", var_name="unique_id", value_name="y").rename(columns={"time": "ds"})
    forecaster = Forecaster(**TINY, runs_dir=tmp_path).fit(long)
    assert forecaster.run_.target_columns == ("down", "up")
    assert set(forecaster.predict(2)["unique_id"]) == {"down", "up"}


def test_the_forecast_follows_newer_values(fitted, frame, tmp_path):
    longer = pd.read_csv(write_waves(tmp_path / "longer.csv", 340), parse_dates=["time"])
    newer = longer.iloc[-60:]
    forecast = fitted.predict(3, data=newer)
    assert forecast["ds"].iloc[0] == longer["time"].iloc[-1] + pd.Timedelta(hours=1)
    assert len(forecast) == 6
    pd.testing.assert_frame_equal(fitted.predict(3, data=tmp_path / "longer.csv"), forecast)
    # Ten rows are fewer than the 24 that are read, so the end of the run's own data precedes them.
    later = frame.iloc[-14:].assign(time=lambda t: t["time"] + pd.Timedelta(hours=10))
    joined = pd.concat([frame[frame["time"] < later["time"].iloc[0]], later])
    pd.testing.assert_frame_equal(fitted.predict(data=later), fitted.predict(data=joined))
    far = later.assign(time=later["time"] + pd.Timedelta(days=30))
    with pytest.raises(DataError, match=r"at least the 24 steps .* go on from 2021-05-14 07:00"):
        fitted.predict(data=far)


@pytest.fixture
def longer(tmp_path):
    return pd.read_csv(write_waves(tmp_path / "longer.csv", 360), parse_dates=["time"])


@pytest.mark.parametrize("sizes", [(10,), (1, 9), (24,), (5, 30)])
def test_an_update_answers_as_the_whole_history_does(fitted, longer, sizes):
    """Whatever part of what the model reads (24 steps) is new."""
    updated, first = copy.deepcopy(fitted), 320
    for size in sizes:
        assert updated.update(longer.iloc[first : first + size]) is updated
        first += size
    whole = fitted.predict(data=longer.iloc[:first])
    pd.testing.assert_frame_equal(updated.predict(), whole)
    assert updated.predict()["ds"].iloc[0] == longer["time"].iloc[first - 1] + pd.Timedelta("1h")
    assert fitted.predict()["ds"].iloc[0] == longer["time"].iloc[320]  # the copy alone has them


def test_what_travels_has_the_rows_of_an_update(fitted, longer, tmp_path):
    updated = copy.deepcopy(fitted).update(longer.iloc[320:330])
    expected = updated.predict()
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(updated)).predict(), expected)
    path = updated.save(tmp_path / "updated")
    pd.testing.assert_frame_equal(Forecaster.load(path).predict(), expected)
    longer.iloc[330:333].to_csv(tmp_path / "next.csv", index=False)
    further = Forecaster.load(path).update(tmp_path / "next.csv")
    pd.testing.assert_frame_equal(further.predict(), fitted.predict(data=longer.iloc[:333]))
    # Newer rows for one forecast go on from those of the update.
    pd.testing.assert_frame_equal(updated.predict(data=longer.iloc[330:333]), further.predict())
    pd.testing.assert_frame_equal(updated.predict(), expected)


def test_notes_have_keywords_in_place_of_flags(fitted, longer, capsys):
    written = longer["time"].dt.strftime("%Y%m%d%H")
    fitted.predict(data=longer.assign(time=written))
    said = " ".join(capsys.readouterr().err.split())
    assert "(time_format reads others)" in said
    assert "--" not in said


@pytest.mark.parametrize(("factor", "noted"), [(1, False), (1000, True)])
def test_an_update_in_another_unit_is_noted_once(fitted, longer, capsys, factor, noted):
    rows = longer.iloc[320:330]
    updated = copy.deepcopy(fitted).update(rows.assign(up=rows["up"] * factor))
    said = " ".join(capsys.readouterr().err.split())
    assert ("note: up is about" in said and "are both in the same unit?" in said) == noted
    assert "note: down is about" not in said
    updated.predict()
    assert "the same unit" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (slice(321, 330), r"from 2021-05-14 08:00:00 on.* 09:00:00 to .* predict\(data="),
        (slice(300, 330), "after the last known one, got rows from 2021-05-13 12:00:00"),
        (slice(0, 0), "row"),
    ],
)
def test_an_update_that_does_not_go_on_is_refused(fitted, longer, rows, message):
    updated = copy.deepcopy(fitted)
    with pytest.raises(DataError, match=message):
        updated.update(longer.iloc[rows])
    with pytest.raises(DataError, match="no column 'down'"):
        updated.update(longer.iloc[320:330].drop(columns="down"))
    pd.testing.assert_frame_equal(updated.predict(), fitted.predict())


def test_rows_without_a_value_yet_are_what_is_forecast(fitted, frame, capsys):
    times = pd.date_range(frame["time"].iloc[-1], periods=25, freq="h")[1:]
    empty = pd.DataFrame({"time": times, "up": np.nan, "down": np.nan})
    forecast = fitted.predict(data=pd.concat([frame, empty]))
    pd.testing.assert_frame_equal(forecast, fitted.predict())
    assert "the last 24 rows have no value of up, down" in " ".join(capsys.readouterr().err.split())


def test_steps_beyond_those_trained_are_refused(fitted):
    assert len(fitted.predict(1)) == 2
    for horizon in (0, 7):
        with pytest.raises(ConfigError, match=f"^horizon must be 1 to 6.* got {horizon}"):
            fitted.predict(horizon)
    with pytest.raises(ConfigError, match=r"^horizon must be a whole number .*, got DataFrame;"):
        fitted.predict(pd.DataFrame())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="down"), "no column 'down'; its columns are"),
        (
            lambda t: t.assign(up="high"),
            "column 'up': expected a number or an empty cell, got 'high'",
        ),
        (lambda t: t.assign(up="no"), "got 'no'; write 1 for yes and 0 for no"),
        (lambda t: t.assign(up=np.nan), "column 'up': expected a value in the 24 steps"),
        (lambda t: t.assign(up=np.nan, down=np.nan), "expected values of up, down, got none"),
        (lambda t: t.iloc[::-1], "sort the rows$"),
        (lambda t: t.iloc[[0, 1, 1, 2]], "expected each time once"),
        (lambda t: t["up"].tolist(), "expected a table with a column of times"),
        (
            lambda t: t.assign(time=pd.date_range("2021", periods=len(t), freq="7min")),
            "expected times every h counted from",
        ),
    ],
)
def test_what_does_not_fit_the_run_is_named(fitted, frame, change, message):
    with pytest.raises(DataError, match=message):
        fitted.predict(data=change(frame))


@pytest.mark.long
def test_calendar_columns_are_made_for_newer_values(frame, tmp_path):
    settings = {**TINY, "calendar": "auto", "channel_independent": False, "target": "up"}
    forecaster = Forecaster(**settings, runs_dir=tmp_path).fit(frame)
    assert forecaster.run_.columns[2:4] == ("day_sin", "day_cos")
    pd.testing.assert_frame_equal(forecaster.predict(data=frame), forecaster.predict())
    pd.testing.assert_frame_equal(forecaster.predict(data=frame.iloc[-3:]), forecaster.predict())
    assert forecaster.predict()["unique_id"].unique().tolist() == ["up"]


@pytest.mark.slow
def test_cross_validation_is_the_backtest(frame, waves, tmp_path):
    fitted = Forecaster(**TINY, runs_dir=tmp_path).fit(frame)
    table = fitted.cross_validation(folds=3)
    config = BacktestConfig(fitted.run_.path, 3, waves, name="rolled")
    summary = json.loads((run_backtest(config) / "backtest.json").read_text())
    for number, fold in enumerate(summary["folds"], start=1):
        for name, errors in fold["errors"].items():
            row = table[(table["fold"] == number) & (table["model"] == name)].iloc[0]
            assert row["mse"] == pytest.approx(errors["mse"], rel=1e-6)
            assert row["last_time"] == pd.Timestamp(fold["last_time"])
            assert row["mase"] == pytest.approx(errors["mase"], rel=1e-6)
        network = table[table["fold"] == number].iloc[0]
        assert network["crps"] == pytest.approx(fold["errors"][network["model"]]["crps"])
        assert network["inside-80"] == fold["coverage"]["0.8"]
    assert fitted.cross_validation(folds=2, step=5, gap=4)["inside-80"].notna().sum() == 2
    again = Forecaster.load(fitted.run_.path)
    with pytest.raises(DataError, match="give it again as `data`"):
        again.cross_validation()
    pd.testing.assert_frame_equal(again.cross_validation(frame, folds=3), table)
    pd.testing.assert_frame_equal(again.cross_validation(waves, folds=3), table)
    with pytest.raises(RunDirectoryError, match="trained on a table in memory"):
        run_backtest(BacktestConfig(fitted.run_.path, 3, name="none"))


@pytest.mark.slow
def test_folds_have_the_times_that_people_read(frame, tmp_path):
    zoned = frame["time"].dt.tz_localize("UTC").dt.tz_convert("America/New_York")
    for times in (zoned, pd.Series(range(1, 321))):
        fitted = Forecaster(**TINY, runs_dir=tmp_path).fit(frame.assign(time=times))
        table = fitted.cross_validation(folds=1, step=6)
        first, last = (table[name].iloc[0] for name in ("first_time", "last_time"))
        begin = times.tolist().index(first)
        assert begin == fitted.run_.series.borders[1]
        assert last == times[begin + 6 * table["windows"].iloc[0] - 1]


def test_habits(fitted, tmp_path):
    forecaster = Forecaster(**TINY, target=["up"])
    assert clone(forecaster).get_params() == forecaster.get_params()
    with pytest.raises(NotFittedError):
        forecaster.predict()
    with pytest.raises(ConfigError, match="did you mean 'horizon'"):
        Forecaster(horizn=3)
    with pytest.raises(ConfigError, match="no setting 'time_column': give it to fit as time="):
        Forecaster(time_column="ds")
    path = fitted.save(tmp_path / "copy")
    pd.testing.assert_frame_equal(Forecaster.load(path).predict(), fitted.predict())
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(fitted)).predict(), fitted.predict())
    with pytest.raises(RunDirectoryError, match="expected a sentiment run"):
        TextClassifier.load(path)


@pytest.mark.long
def test_a_killed_training_goes_on_to_the_same_weights(fitted, frame, tmp_path):
    with killed():
        Forecaster(**TINY, runs_dir=tmp_path, name="cut").fit(frame)
    with pytest.raises(CheckpointError, match="expected the data that the training started with"):
        Forecaster.resume(tmp_path / "cut", frame.assign(up=frame["up"] + 1))
    resumed = Forecaster.resume(tmp_path / "cut", frame)
    same_weights(resumed.run_.path, fitted.run_.path)
