"""M4 files of the published form, and the measures of the competition."""

import numpy as np
import pytest
from statsmodels.tsa.seasonal import seasonal_decompose
from statsmodels.tsa.stattools import acf

from benchmarks.owa import (
    has_season,
    m4_scores,
    mase,
    naive2,
    seasonal_indices,
    smape,
)
from gru_training.data.problems import Problems
from gru_training.errors import DataError
from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.sets import KINDS, load_series, m4_kind, read_m4_rows, steps_of

FILE = (
    '"V1","V2","V3","V4","V5","V6"\n'
    '"H1",605,586,586,559,\n'
    '"H2",3124,2990,2862,2809,2544\n'
    '"H3",1828,1806.5,,,\n'
)


def hours(count, seed=0):
    rng = np.random.default_rng(seed)
    wave = 1 + 0.4 * np.sin(2 * np.pi * np.arange(count) / 24)
    return 50 * wave * np.exp(0.05 * rng.normal(size=count))


def test_rows_of_unequal_length_end_together(tmp_path):
    path = tmp_path / "Hourly-train.csv"
    path.write_text(FILE)
    rows = read_m4_rows(path)
    assert {name: values.tolist() for name, values in rows.items()} == {
        "H1": [605, 586, 586, 559], "H2": [3124, 2990, 2862, 2809, 2544], "H3": [1828, 1806.5],
    }  # fmt: skip
    config = SeriesConfig(path)
    series = load_series(config, Problems(str(path)))
    assert series.panel
    assert (series.frequency, series.columns) == ("h", ("H1", "H2", "H3"))
    nan = np.nan
    expected = [[nan, 605, 586, 586, 559], [3124, 2990, 2862, 2809, 2544],
                [nan, nan, nan, 1828, 1806.5]]  # fmt: skip
    np.testing.assert_array_equal(series.values.T, expected)
    assert steps_of(series, config)[1:] == (48, 24)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date,load\n1,2\n", "expected a header V1, V2, ... as of the M4 files"),
        ('"V1","V2"\n"H1",many\n', "line 2: expected numbers, got 'many'"),
        ('"V1","V2"\n"H1",1\n"H1",2\n', "line 3: expected a series with a name of its own"),
        ('"V1","V2"\n"H1",\n', "line 2: expected a series with at least one value"),
        ('"V1","V2"\n', "expected a row for each series, got none"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    path = tmp_path / "Weekly-train.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_m4_rows(path)


def test_files_are_known_by_their_names(tmp_path):
    assert m4_kind(tmp_path / "Hourly-test.csv") == KINDS["Hourly"] == ("h", 24, 48)
    assert m4_kind(tmp_path / "Weekly-train.csv.gz") == ("W-SUN", 1, 13)
    assert m4_kind(tmp_path / "hourly.csv") is None


def test_measures_by_hand():
    truth, forecasts = np.array([[100.0, 50.0], [0.0, 2.0]]), np.array([[110.0, 50.0], [0.0, 1.0]])
    np.testing.assert_allclose(smape(truth, forecasts), [100 * 10 / 210, 100 / 3])
    train = [np.array([1.0, 3.0, 2.0]), np.array([1.0, 1.0, 5.0, 5.0])]
    np.testing.assert_allclose(mase(train, truth, forecasts, 1), [5 / 1.5, 0.5 / (4 / 3)])
    np.testing.assert_allclose(mase(train[1:], truth[1:], forecasts[1:], 2), [0.5 / 4])


@pytest.mark.parametrize("season", [24, 7])
def test_seasonal_indices_are_those_of_the_classical_decomposition(season):
    series = hours(200) if season == 24 else np.random.default_rng(1).gamma(9, size=80)
    found = seasonal_decompose(series, "multiplicative", period=season).seasonal[:season]
    np.testing.assert_allclose(seasonal_indices(series, season), found, rtol=1e-10)


def test_a_season_is_found_where_its_autocorrelation_is_significant():
    series = hours(200)
    lags = acf(series, nlags=24, fft=False)[1:]
    limit = 1.645 * np.sqrt((1 + 2 * (lags[:-1] ** 2).sum()) / 200)
    assert has_season(series, 24)
    assert abs(lags[-1]) > limit
    assert not has_season(np.random.default_rng(2).normal(10, 1, 200), 24)
    assert not has_season(series[:71], 24)  # fewer than three seasons
    assert not has_season(np.ones(200), 24)


def test_naive_2_goes_on_with_the_season_and_scores_one():
    series = [hours(200, seed) for seed in range(3)]
    wave = 50 * (1 + 0.4 * np.sin(2 * np.pi * np.arange(200, 248) / 24))
    forecast = naive2(series[0], 48, 24)
    assert np.abs(forecast / wave - 1).mean() < 0.1
    np.testing.assert_array_equal(naive2(series[0], 5, 1), np.repeat(series[0][-1], 5))
    truth = np.stack([hours(248, seed)[200:] for seed in range(3)])
    naive = np.stack([naive2(each, 48, 24) for each in series])
    assert m4_scores(series, truth, naive, 24).owa == pytest.approx(1)
    half = (truth + naive) / 2
    assert m4_scores(series, truth, half, 24).mase == pytest.approx(
        m4_scores(series, truth, naive, 24).mase / 2
    )
