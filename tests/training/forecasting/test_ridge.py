import numpy as np
import pytest
from sklearn.linear_model import Ridge

from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.linear import PENALTY, filled, fit_ridge, window_gram
from tests.training.forecasting.reading import load_forecasting_data


def walk(rows, columns=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)).cumsum(axis=0) + np.sin(np.arange(rows))[:, np.newaxis]


@pytest.mark.parametrize(("rows", "width"), [(50, 7), (9, 9), (30, 1)])
def test_the_gram_matrix_is_that_of_the_windows(rows, width):
    column = walk(rows, 1)[:, 0]
    windows = np.lib.stride_tricks.sliding_window_view(column, width)
    np.testing.assert_allclose(window_gram(column, width), windows.T @ windows, rtol=1e-9)


def stacked(rows, lookback, horizon):
    inputs, outputs = [], []
    for column in rows.T:
        for start in range(len(column) - lookback - horizon + 1):
            window = column[start : start + lookback + horizon]
            if np.isfinite(window).all():
                window = window - window[lookback - 1]
                inputs.append(window[:lookback])
                outputs.append(window[lookback:])
    return np.array(inputs), np.array(outputs)


@pytest.mark.parametrize("missing", [(), (40, 41, 90)])
def test_the_solution_is_that_of_scikit_learn(missing):
    rows = walk(160)
    rows[list(missing), 1] = np.nan
    inputs, outputs = stacked(rows, 12, 5)
    reference = Ridge(alpha=3.0, fit_intercept=False).fit(inputs, outputs)
    ridge = fit_ridge(rows, 12, 5, penalty=3.0)
    np.testing.assert_allclose(ridge.kernel, reference.coef_.T, rtol=1e-7, atol=1e-10)


def test_forecasts_undo_the_subtraction():
    ridge = fit_ridge(walk(200), 10, 4)
    histories = np.random.default_rng(1).normal(size=(6, 10, 2))
    forecasts = ridge(histories)
    assert forecasts.shape == (6, 4, 2)
    for k in range(2):
        last = histories[:, -1:, k]
        expected = (histories[..., k] - last) @ ridge.kernel + last
        np.testing.assert_allclose(forecasts[..., k], expected)
    np.testing.assert_allclose(ridge(histories + 5), forecasts + 5)


def test_a_column_full_of_holes_is_filled():
    rows = walk(100)
    rows[::5, 1] = np.nan  # there are never 14 rows in a row
    together = fit_ridge(rows, 10, 4).kernel
    repaired = np.column_stack([rows[:, 0], filled(rows[:, 1])])
    np.testing.assert_allclose(together, fit_ridge(repaired, 10, 4).kernel)
    np.testing.assert_array_equal(
        filled(np.array([np.nan, 1, np.nan, np.nan, 2, np.nan])), [1, 1, 1, 1, 2, 2]
    )


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "lookback", "published"),
    [("ETTh1", 336, 0.3701), ("ETTh1", 720, 0.3745), ("ETTh2", 336, 0.2725),
     ("ETTh2", 720, 0.2696)],
)  # fmt: skip
def test_the_known_floors_of_the_public_sets(real_data, name, lookback, published):
    config = SeriesConfig(real_data / "ett" / f"{name}.csv", lookback=lookback, horizon=96)
    data = load_forecasting_data(config)
    rows = data.standardised_targets.astype(np.float64)
    coefficients = fit_ridge(rows[:8640], lookback, 96).kernel
    squared = []
    for column in rows[11_520 - lookback : 14_400].T:
        windows = np.lib.stride_tricks.sliding_window_view(column, lookback + 96)
        windows = windows - windows[:, lookback - 1 : lookback]
        squared.append(np.mean((windows[:, :lookback] @ coefficients - windows[:, lookback:]) ** 2))
        assert len(windows) == 2785
    assert np.mean(squared) == pytest.approx(published, abs=5e-4)
    assert PENALTY == 100
