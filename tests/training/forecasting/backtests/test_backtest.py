import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from gru_training.__main__ import main
from gru_training.config import RunConfig
from gru_training.errors import ConfigError, DataError, RunDirectoryError
from gru_training.forecasting.backtest import data_of_run, run_backtest
from gru_training.forecasting.config import (
    BacktestConfig,
    CombinationConfig,
    ForecasterConfig,
    ForecastingConfig,
    ForecastingTrainingConfig,
    SeriesConfig,
)
from gru_training.forecasting.data import read_series
from gru_training.forecasting.linear import fit_ridge
from gru_training.forecasting.pipeline import train_forecasting
from gru_training.forecasting.run import ForecastingRun
from tests.made_once import own_copy
from tests.training.conftest import write_waves
from tests.training.forecasting.reading import load_forecasting_data


@pytest.fixture(scope="module")
def forecasting_run(forecasting_run, tmp_path_factory):
    """A copy, as backtests are written beside a run."""
    copy = own_copy(forecasting_run.path.parent, tmp_path_factory)
    return ForecastingRun.open(copy / forecasting_run.path.name)


@pytest.fixture(scope="module")
def folder(forecasting_run):
    return run_backtest(BacktestConfig(forecasting_run.path, folds=3, name="rolled"))


@pytest.mark.slow
def test_folds_are_the_test_windows_in_order(forecasting_run, folder):
    summary = json.loads((folder / "backtest.json").read_text())
    folds = summary["folds"]
    # Of 59 windows the last five of the first two folds reach into the next one.
    assert [fold["windows"] for fold in folds] == [15, 15, 19]
    for fold, after in itertools.pairwise(folds):
        assert fold["last_time"] < after["first_time"]
    assert [fold["first_time"] for fold in folds] == sorted(fold["first_time"] for fold in folds)
    assert folds[-1]["last_time"] == forecasting_run.series.last_time
    weights = [fold["windows"] for fold in folds]
    mse = [fold["errors"]["GRU"]["mse"] for fold in folds]
    assert summary["all"]["GRU"]["mse"] == pytest.approx(np.average(mse, weights=weights))
    # From the stored sums of each window.
    stored = forecasting_run.test_errors()
    kept = np.r_[:15, 20:35, 40:59]
    for name, number in (("GRU", "model"), ("seasonal naive", "seasonal naive")):
        squared = stored["squared"][stored["names"].tolist().index(number)]
        expected = squared[kept].sum() / stored["count"][kept].sum()
        assert summary["all"][name]["mse"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_a_network_trained_again_knows_the_rows_before_its_fold(forecasting_run):
    config = BacktestConfig(forecasting_run.path, folds=2, refit=True, step=9, name="again")
    folder = run_backtest(config)
    summary = json.loads((folder / "backtest.json").read_text())
    stays = BacktestConfig(forecasting_run.path, folds=2, step=9, name="stays")
    as_it_was = json.loads((run_backtest(stays) / "backtest.json").read_text())
    for fold, other in zip(summary["folds"], as_it_was["folds"], strict=True):
        assert fold["windows"] == other["windows"] == 3 + (fold is summary["folds"][1])
        assert fold["errors"]["ridge"] == other["errors"]["ridge"]
        assert fold["errors"]["GRU"] != other["errors"]["GRU"]
    assert "so was the run's model." in (folder / "backtest.md").read_text()


def test_ridge_is_fitted_on_all_rows_before_the_fold(forecasting_run, folder):
    summary = json.loads((folder / "backtest.json").read_text())
    data = load_forecasting_data(forecasting_run.config.data)
    tried = forecasting_run.metrics["ridge_by_lookback"]
    lookback = int(min(tried, key=lambda name: tried[name]["validation"]["mse"]))
    windows = data.windows("test", lookback)
    parts = np.arange(15), np.arange(20, 35), np.arange(40, 59)
    for part, fold in zip(parts, summary["folds"], strict=True):
        known = data.standardised_targets[: windows.origins[part[0]]]
        ridge = fit_ridge(known, lookback, 6)
        history = data.preprocessor.standardise(windows.histories(part)).numpy()
        error = np.mean((ridge(history) - windows.futures(part)) ** 2)
        assert fold["errors"]["ridge"]["mse"] == pytest.approx(error, rel=1e-5)


def test_the_report_shows_table_and_picture(folder):
    lines = (folder / "backtest.md").read_text().split("\n")
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 3 + 1
    assert len({line.count("|") for line in table}) == 1
    assert imread(folder / "backtest.png").std() > 0.03


@pytest.mark.slow
def test_new_rows_belong_to_the_last_folds(forecasting_run, tmp_path):
    longer = write_waves(tmp_path / "waves.csv", 420)
    config = BacktestConfig(forecasting_run.path, 2, longer, name="longer")
    summary = json.loads((run_backtest(config) / "backtest.json").read_text())
    # The split is that of the run, so the 100 new rows are 100 new windows; five are between folds.
    assert sum(fold["windows"] for fold in summary["folds"]) == 159 - 5


def test_columns_are_found_by_name(forecasting_run, tmp_path):
    """In another order, beside one that the run does not know."""
    frame = pd.read_csv(forecasting_run.config.data.data)
    path = tmp_path / "turned.csv"
    frame.assign(more=frame["up"] ** 2)[["time", "down", "more", "up"]].to_csv(path, index=False)
    data = data_of_run(forecasting_run, read_series(SeriesConfig(path)))
    np.testing.assert_array_equal(data.series.values, frame[["up", "down"]])
    assert data.target_columns == ("up", "down")


def test_data_that_are_not_those_of_the_run(forecasting_run, tmp_path):
    path = write_waves(tmp_path / "waves.csv")
    frame = pd.read_csv(path)
    frame.rename(columns={"up": "other"}).to_csv(path, index=False)
    with pytest.raises(
        RunDirectoryError, match="expected the columns of the run, got none called up"
    ):
        run_backtest(BacktestConfig(forecasting_run.path, data=path))
    frame[5:].to_csv(path, index=False)
    with pytest.raises(RunDirectoryError, match="expected at least the 320 rows of the run from"):
        run_backtest(BacktestConfig(forecasting_run.path, data=path))
    frame.assign(up=frame["up"].to_numpy()[::-1], down=frame["down"] + 9).to_csv(path, index=False)
    with pytest.raises(RunDirectoryError, match="got other values from 2021-05-13"):
        run_backtest(BacktestConfig(forecasting_run.path, data=path))
    times = pd.date_range("2021-05-01", periods=len(frame), freq="2h")
    frame.assign(time=times).to_csv(path, index=False)
    with pytest.raises(RunDirectoryError, match="got other values from 2021-05-13"):
        run_backtest(BacktestConfig(forecasting_run.path, data=path))
    frame.astype({"up": object}).replace({"up": {frame["up"].iloc[40]: "bad"}}).to_csv(
        path, index=False
    )
    with pytest.raises(DataError, match=r"got 'bad' \(and 2 more such cells, lines 43, 44\)$"):
        run_backtest(BacktestConfig(forecasting_run.path, data=path))
    with pytest.raises(DataError, match="--folds: expected at most 59"):
        run_backtest(BacktestConfig(forecasting_run.path, folds=60))
    with pytest.raises(
        DataError, match="--folds: expected at most 8, so that each has a window of 6"
    ):
        run_backtest(BacktestConfig(forecasting_run.path, folds=12))
    with pytest.raises(ConfigError, match="--folds must be at least 1"):
        BacktestConfig(forecasting_run.path, folds=0)


@pytest.mark.slow
def test_command_line(forecasting_run, tmp_path, capsys):
    arguments = ["backtest", str(forecasting_run.path), "--folds", "2", "--name", "by-command"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "seasonal naive" in out
    assert "by-command/backtest.md" in out
    assert main(arguments) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["backtest", str(tmp_path / "none")]) == 2
    assert "there is no run directory" in capsys.readouterr().err


@pytest.mark.slow
def test_no_fold_knows_what_comes_after_it(tmp_path):
    """Few seasons to fit on, and a horizon so long that hardly any rows precede two of them."""
    rng = np.random.default_rng(0)
    t = np.arange(200)
    frame = pd.DataFrame({"load": np.sin(2 * np.pi * t / 32) + 0.1 * rng.normal(size=200)})
    frame.insert(0, "time", pd.date_range("2021-05-01", periods=200, freq="h"))
    frame.to_csv(tmp_path / "load.csv", index=False)
    config = ForecastingConfig(
        data=SeriesConfig(
            tmp_path / "load.csv", lookback=6, horizon=20, season=32, validation_fraction=0.1,
            test_fraction=0.65,
        ),
        model=ForecasterConfig(units=4, segment=6),
        training=ForecastingTrainingConfig(epochs=1),
        combination=CombinationConfig(combine=False, refit=False),
        run=RunConfig(tmp_path, "load"),
    )  # fmt: skip
    run = train_forecasting(config)
    first = []
    for number in range(2):
        frame.to_csv(tmp_path / f"{number}.csv", index=False)
        summary = json.loads(
            (
                run_backtest(BacktestConfig(run.path, 4, tmp_path / f"{number}.csv", str(number)))
                / "backtest.json"
            ).read_text()
        )
        first.append(summary["folds"][0])
        after = frame["time"] > summary["folds"][0]["last_time"]
        after[-6:] = False  # the end of the series, by which the run knows it
        assert 60 < after.sum() < 120
        frame.loc[after, "load"] += 100 * rng.normal(size=after.sum())
    assert set(first[0]["errors"]) == {
        "GRU", "last value", "seasonal naive", "ridge", "exponential smoothing",
    }  # fmt: skip
    assert first[0] == first[1]


@pytest.mark.slow
def test_every_measure_of_all_folds_together(forecasting_run):
    """With NumPy, from the forecasts of the windows that the folds have."""
    config = BacktestConfig(forecasting_run.path, folds=2, step=3, metric="mase", name="measures")
    folder = run_backtest(config)
    summary = json.loads((folder / "backtest.json").read_text())
    data = load_forecasting_data(forecasting_run.config.data)
    windows = data.windows("test")
    rows = np.r_[0:25:3, 30:59:3]  # 59 windows; five of the first fold reach into the second
    assert sum(fold["windows"] for fold in summary["folds"]) == len(rows)
    histories = forecasting_run.preprocessor().standardise(windows.histories(rows))
    residual = windows.futures(rows) - forecasting_run.load_model()(histories).numpy()[..., 0]
    train = data.standardised_targets[: data.borders.train]
    naive = np.nanmean(np.abs(train[24:] - train[:-24]), axis=0)
    own = summary["all"]["GRU"]
    assert own["mase"] == pytest.approx((np.abs(residual).mean((0, 1)) / naive).mean(), rel=1e-4)
    bounds = forecasting_run.offsets
    low, high = bounds[..., 1], bounds[..., 3]
    inside = ((low <= residual) & (residual <= high)).mean()
    assert summary["coverage"]["0.8"] == pytest.approx(inside)
    table = (folder / "backtest.md").read_text()
    assert "; MASE." in table
    assert f"**{own['mase']:.4f}**" in table
    assert "| 80% interval |" in table
    assert "Forecasts begin at one time in 3." in table
    assert 0 < own["crps"] < own["mae"]


@pytest.mark.slow
def test_rows_of_the_gap_are_not_fitted_on(forecasting_run):
    config = BacktestConfig(forecasting_run.path, folds=2, gap=30, name="gap")
    summary = json.loads((run_backtest(config) / "backtest.json").read_text())
    data = load_forecasting_data(forecasting_run.config.data)
    tried = forecasting_run.metrics["ridge_by_lookback"]
    lookback = int(min(tried, key=lambda name: tried[name]["validation"]["mse"]))
    windows = data.windows("test", lookback)
    ridge = fit_ridge(data.standardised_targets[: windows.origins[30] - 30], lookback, 6)
    part = np.arange(30, 59)
    history = data.preprocessor.standardise(windows.histories(part)).numpy()
    error = np.mean((ridge(history) - windows.futures(part)) ** 2)
    assert summary["folds"][1]["errors"]["ridge"]["mse"] == pytest.approx(error, rel=1e-5)
    with pytest.raises(DataError, match="--gap: expected at most"):
        run_backtest(BacktestConfig(forecasting_run.path, gap=240, name="none"))


@pytest.mark.slow
def test_a_warm_start_goes_on_from_the_fold_before(forecasting_run, monkeypatch):
    """What the network of each fold begins with is what the one before ended with."""
    from gru_training.forecasting import backtest

    begun, ended, epochs = [forecasting_run.load_model().get_weights()], [], []
    refit = backtest.refit

    def watched(plan, weights, count, console, initial):
        ended.append(initial.get_weights())
        epochs.append(count)
        model = refit(plan, weights, count, console, initial)
        begun.append(model.get_weights())
        return model

    monkeypatch.setattr(backtest, "refit", watched)
    config = BacktestConfig(
        forecasting_run.path, folds=2, refit=True, warm_start=True, step=9, name="warm"
    )
    folder = run_backtest(config)
    for before, start in zip(begun, ended, strict=False):
        for one, other in zip(before, start, strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(ended) == 2
    assert epochs == [math.ceil(forecasting_run.metrics["best_epoch"] / 2)] * 2
    assert "beginning with the weights of the fold before" in (folder / "backtest.md").read_text()
    with pytest.raises(ConfigError, match="--warm-start needs --refit"):
        BacktestConfig(forecasting_run.path, warm_start=True)
