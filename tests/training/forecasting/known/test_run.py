"""A forecaster that reads known inputs of the steps ahead, from training to a forecast."""

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from gru_training import errors
from gru_training.__main__ import main
from gru_training.estimators.forecaster import Forecaster
from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.run import ForecastingRun
from tests.known_inputs import HORIZON, KNOWN_AHEAD, train, write_load
from tests.made_once import made_once


@pytest.fixture(scope="module")
def made():
    def make(folder):
        write_load(folder / "load.csv")
        train(folder / "load.csv", folder / "runs", "with")
        train(folder / "load.csv", folder / "runs", "log", combine=False, transform="log1p")
        train(folder / "load.csv", folder / "runs", "without", future=())

    return made_once("known_inputs", make)


@pytest.fixture(scope="module")
def table(made):
    return pd.read_csv(made / "load.csv", parse_dates=["time"])


@pytest.fixture(scope="module")
def runs(made):
    return {name: ForecastingRun.open(made / "runs" / name) for name in ("with", "log", "without")}


def test_an_update_goes_on_with_the_inputs_that_were_known(runs, table):
    """Of the steps ahead the first three are over: the others' inputs are still there."""
    whole = table.assign(load=table["load"].fillna(180.0))
    first = int(table["load"].isna().argmax())
    rows = whole.iloc[first : first + 3]
    ahead = table.iloc[first + 3 :]
    expected = Forecaster.load(runs["with"].path).predict(
        data=pd.concat([table.iloc[:first], rows, ahead])
    )
    updated = Forecaster.load(runs["with"].path).update(rows).predict()
    assert len(updated) == KNOWN_AHEAD - 3
    pd.testing.assert_frame_equal(updated, expected)
    given = Forecaster.load(runs["with"].path).update(pd.concat([rows, ahead])).predict()
    pd.testing.assert_frame_equal(given, expected)


@pytest.mark.parametrize(("factor", "noted"), [(1, 0), (100, 1)])
def test_inputs_in_another_unit_are_noted(runs, table, tmp_path, capsys, factor, noted):
    run, path = runs["with"], tmp_path / "future.csv"
    name = run.series.future_columns[0]
    ahead = table[table["load"].isna()].drop(columns="load")
    ahead.assign(**{name: factor * ahead[name]}).to_csv(path, index=False)
    assert main(["forecast", str(run.path), "--future", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count(f"{name} is up to") == shown.count("both in the same unit?") == noted


@pytest.mark.parametrize("lacking", [0, 2])
def test_inputs_that_stand_in_for_missing_ones_are_noted(runs, table, tmp_path, capsys, lacking):
    run, paths = runs["with"], [tmp_path / "future.csv", tmp_path / "filled.csv"]
    name = run.series.future_columns[0]
    ahead = table[table["load"].isna()].drop(columns="load").reset_index(drop=True)
    ahead.loc[1:lacking, name] = np.nan
    ahead.to_csv(paths[0], index=False)
    ahead.ffill().to_csv(paths[1], index=False)
    for path in paths:
        assert (
            main(["forecast", str(run.path), "--future", str(path), "--output", f"{path}.csv"]) == 0
        )
        shown = " ".join(capsys.readouterr().out.split())
        said = f"not known in the steps to forecast: {name} ({lacking} steps)"
        assert (said in shown) == (lacking > 0 and path == paths[0])
    pd.testing.assert_frame_equal(*(pd.read_csv(f"{path}.csv") for path in paths))


@pytest.mark.long
def test_known_inputs_lower_the_error(runs):
    errors = {name: run.metrics["model"]["test"]["mse"] for name, run in runs.items()}
    assert errors["with"] < 0.5 * errors["without"]
    floors = [runs[name].metrics["baselines"]["ridge"]["test"]["mse"] for name in ("with", "log")]
    assert floors[0] == pytest.approx(floors[1], rel=1e-9)  # on the scale of the series itself
    assert errors["with"] < 0.5 * floors[0]


@pytest.mark.slow
def test_rows_without_a_load_are_not_tested_on(runs, table):
    rows = runs["with"].metrics["data"]["rows"]
    assert sum(rows.values()) == len(table) - KNOWN_AHEAD
    assert runs["with"].series.future_columns == ("temperature", "holiday")
    assert runs["without"].series.future_columns == ()
    notes = runs["with"].metrics["data"]["notes"]
    assert any(f"last {KNOWN_AHEAD} rows without a value of" in note for note in notes)
    note = next(n for n in notes if "without them" in n)
    before, after = (float(text.strip(" ,")) for text in (note.split()[-6], note.split()[-3]))
    assert after < before


def test_the_report_shows_what_inputs_add(runs):
    for name, shown in (("with", True), ("log", True), ("without", False)):
        picture = runs[name].path / "known_inputs.png"
        assert picture.is_file() == shown
        assert ("known_inputs.png" in (runs[name].path / "report.md").read_text("utf-8")) == shown
        if shown:
            assert imread(picture).std() > 0.03


def forecast(run, folder, *options):
    path = folder / "out.csv"
    command = ["forecast", str(run.path), "--output", str(path), "--overwrite", *options]
    assert main(command) == 0
    return pd.read_csv(path, parse_dates=["ds"])


@pytest.mark.parametrize("name", ["with", "log"])
def test_errors_are_those_of_the_forecasts_in_raw_units(runs, table, name):
    run = runs[name]
    stored, windows = run.test_errors(), run.arrays("test_windows.npz")
    load = table["load"].to_numpy()
    truth = np.stack([load[origin : origin + HORIZON] for origin in windows["origins"]])
    train_rows = run.series.borders[0]
    scaled = (windows["forecasts"][..., 0] - truth) / np.nanstd(load[:train_rows])
    place = windows["origins"] - windows["origins"][0]
    np.testing.assert_allclose((scaled**2).sum(axis=1), stored["squared"][0][place], rtol=2e-3)
    inputs = table[["temperature", "holiday"]].to_numpy(np.float32)
    ahead = np.stack([inputs[origin : origin + HORIZON] for origin in windows["origins"]])
    np.testing.assert_array_equal(windows["futures"], ahead)


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", ["with", "log"])
def test_rows_after_the_last_load_are_what_is_forecast(runs, table, tmp_path, name):
    found = forecast(runs[name], tmp_path)
    assert found["ds"].tolist() == table["time"][-KNOWN_AHEAD:].tolist()
    file = tmp_path / "future.csv"
    table[["holiday", "time", "temperature"]].to_csv(file, index=False)  # in another order
    again = forecast(runs[name], tmp_path, "--future", str(file))
    pd.testing.assert_frame_equal(again, found)
    data = tmp_path / "data.csv"
    table.to_csv(data, index=False)
    again = forecast(runs[name], tmp_path, "--data", str(data))
    pd.testing.assert_frame_equal(again, found, rtol=1e-5)


def test_what_inputs_add_is_added_to_the_forecast(runs, table, tmp_path):
    """Of a model without logarithms: the difference of two forecasts, from scaler.json by hand."""
    warm, cold = (table.iloc[-KNOWN_AHEAD:][["time", "temperature", "holiday"]] for _ in range(2))
    warm, cold = warm.assign(temperature=20.0), cold.assign(temperature=2.5, holiday=1)
    found = []
    for ahead in (warm, cold):
        ahead.to_csv(tmp_path / "future.csv", index=False)
        found.append(forecast(runs["with"], tmp_path, "--future", str(tmp_path / "future.csv")))
    scaler = json.loads((runs["with"].path / "scaler.json").read_text("utf-8"))
    known, columns = scaler["known"], ["temperature", "load", "holiday"]
    assert [columns[number] for number in known["columns"]] == ["temperature", "holiday"]
    added = []
    for ahead in (warm, cold):
        x = [
            (ahead[columns[c]].to_numpy() - scaler["mean"][c]) / scaler["deviation"][c]
            for c in known["columns"]
        ]
        x = [np.clip(each, -4, 4) for each in x]
        bases = [
            [each, *(np.maximum(each - knot, 0) for knot in knots)]
            for each, knots in zip(x, known["knots"], strict=True)
        ]
        made = bases[0] + bases[1]
        if known["pairs"]:
            made += [x[0] * each for each in bases[1]] + [x[1] * each for each in bases[0][1:]]
        weights = np.array(known["coefficients"])[:, 0]
        added.append(sum(w * f for w, f in zip(weights, made, strict=True)))
    expected = (added[1] - added[0]) * scaler["deviation"][1]
    difference = found[1]["forecast"] - found[0]["forecast"]
    np.testing.assert_allclose(difference, expected, rtol=1e-3, atol=1e-2)
    assert difference.mean() > 15  # 2.5 degrees are 62 more than 20, a holiday 30 less


def test_of_fewer_steps_there_are_fewer_forecasts(runs, table, tmp_path):
    file = tmp_path / "future.csv"
    table.iloc[-KNOWN_AHEAD : -KNOWN_AHEAD + 5].drop(columns="load").to_csv(file, index=False)
    found = forecast(runs["with"], tmp_path, "--future", str(file))
    assert len(found) == 5
    whole = forecast(runs["with"], tmp_path)
    pd.testing.assert_frame_equal(found, whole.iloc[:5])


def test_inputs_that_are_not_there_are_asked_for(runs, table, tmp_path, capsys):
    data = tmp_path / "until_today.csv"
    table.iloc[:-KNOWN_AHEAD].to_csv(data, index=False)
    assert main(["forecast", str(runs["with"].path), "--data", str(data)]) == 2
    said = capsys.readouterr()
    said = " ".join((said.out + said.err).split())
    assert (
        "reads temperature, holiday of the steps that it forecasts, from 2024-01-30 04:00" in said
    )
    assert "--future FILE" in said
    late = tmp_path / "late.csv"
    table.iloc[-5:].drop(columns="load").to_csv(late, index=False)
    assert main(["forecast", str(runs["with"].path), "--future", str(late)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "expected temperature, holiday from 2024-01-30 04:00:00 on" in said
    assert main(["forecast", str(runs["without"].path), "--future", str(late)]) == 2
    assert "reads no known inputs" in capsys.readouterr().err


def test_from_python(runs, table, made, tmp_path):
    forecaster = Forecaster.load(runs["with"].path)
    ahead = table.iloc[-KNOWN_AHEAD:].drop(columns="load")
    whole = forecast(runs["with"], tmp_path)
    found = forecaster.predict(future=ahead)
    pd.testing.assert_frame_equal(found, whole, check_dtype=False, rtol=1e-5)
    later = table.iloc[: -KNOWN_AHEAD - 3]
    found = forecaster.predict(4, data=later, future=table.drop(columns="load"))
    assert found["ds"].tolist() == table["time"][len(later) : len(later) + 4].tolist()
    assert len(found) == 4 < HORIZON
    with pytest.raises(errors.DataError, match="temperature"):
        forecaster.predict(data=later)


@pytest.mark.slow
def test_columns_that_are_not_read_may_be_absent(runs, table, tmp_path, capsys):
    run = runs["without"]
    whole, bare = tmp_path / "whole.csv", tmp_path / "bare.csv"
    known = table.iloc[:-KNOWN_AHEAD]
    known.to_csv(whole, index=False)
    known[["time", "load"]].to_csv(bare, index=False)
    expected = forecast(run, tmp_path, "--data", str(whole))
    pd.testing.assert_frame_equal(forecast(run, tmp_path, "--data", str(bare)), expected)
    found = Forecaster.load(run.path).predict(data=known[["load", "time"]])
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-5)
    assert main(["forecast", str(runs["with"].path), "--data", str(bare)]) == 2
    assert "has no column 'temperature', 'holiday'" in " ".join(capsys.readouterr().err.split())


def test_a_backtest_reads_what_was_known(runs, made):
    forecaster = Forecaster.load(runs["with"].path)
    folds = forecaster.cross_validation(folds=2)
    own = folds[folds["model"] == "combination"]["mse"].mean()
    assert own < 0.5 * folds[folds["model"] == "ridge"]["mse"].mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": ("load",), "future": ("load",)}, "--target and --future must name different"),
        ({"future": ("a", "b"), "past": ("b",)}, "--future and --past must name different"),
        ({"future": ("a", "a")}, "--future must name each column once"),
    ],
)
def test_columns_have_one_part_to_play(options, message):
    with pytest.raises(errors.ConfigError, match=message):
        SeriesConfig(**options)


def test_names_may_stand_between_commas():
    assert SeriesConfig(future=("temperature, holiday", "price")).future == (
        "temperature",
        "holiday",
        "price",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--future", "rain"], "--future: {data} has no column 'rain'"),
        (["--future", "temperature,holiday,load"], "expected a column to forecast"),
        (
            ["--future", "holiday", "--architecture", "one_shot", "--normalisation", "none"],
            "--future must be left out of a network that answers tick by tick",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused(made, tmp_path, capsys, options, message):
    data = made / "load.csv"
    command = ["forecasting", "--data", str(data), "--runs-dir", str(tmp_path), *options]
    assert main(command) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message.format(data=data) in said
    assert not list(tmp_path.iterdir())


def test_past_inputs_are_read_and_not_forecast(made, tmp_path):
    from gru_training.forecasting.config import ForecastingConfig
    from gru_training.forecasting.data import read_series
    from gru_training.forecasting.plan import InitialWeights, make_plan

    config = SeriesConfig(data=made / "load.csv", past=("temperature", "holiday"), horizon=6)
    plan = make_plan(read_series(config), InitialWeights(ForecastingConfig(data=config)))
    assert plan.data.target_columns == ("load",)
    assert not plan.config.model.channel_independent
    assert plan.data.preprocessor.future_columns == ()
