import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

from gru_training.errors import RunDirectoryError
from gru_training.forecasting import pipeline
from gru_training.forecasting.pipeline import train_forecasting
from tests.training.conftest import tiny_forecasting_config, write_waves
from tests.training.forecasting.reading import load_forecasting_data


@pytest.mark.long
def test_the_same_seed_gives_the_same_weights(forecasting_run, tmp_path):
    config = tiny_forecasting_config(tmp_path, data=forecasting_run.config.data.data)
    again = train_forecasting(config)
    other = train_forecasting(
        replace(
            config,
            training=replace(config.training, seed=1),
            run=replace(config.run, name="other"),
        )
    )
    weights = forecasting_run.load_model().get_weights()
    for one, two in zip(weights, again.load_model().get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(weights[0], other.load_model().get_weights()[0])


@pytest.mark.slow
def test_reported_errors_are_those_of_the_stored_model(forecasting_run):
    """From the file's own values, window by window, with NumPy alone."""
    run = forecasting_run
    data = load_forecasting_data(run.config.data)
    preprocessor, model = run.preprocessor(), run.load_model()
    values, H, L = data.series.values, 6, 24
    scaled = (values - preprocessor.mean) / preprocessor.deviation
    squared, absolute, raw, percentages = [], [], [], []
    for origin in range(data.borders.validation, len(values) - H + 1):
        answer = model(scaled[np.newaxis, origin - L : origin].astype(np.float32)).numpy()
        residual = scaled[origin : origin + H] - answer[0, ..., 0]
        squared.append(residual**2)
        absolute.append(np.abs(residual))
        raw.append(np.abs(residual * preprocessor.deviation))
        truth = values[origin : origin + H]
        forecast = answer[0, ..., 0] * preprocessor.deviation + preprocessor.mean
        percentages.append(200 * np.abs(truth - forecast) / (np.abs(truth) + np.abs(forecast)))
    test = run.metrics["model"]["test"]
    assert len(squared) == run.metrics["data"]["windows"]["test"] == 64 - H + 1
    assert test["mse"] == pytest.approx(np.mean(squared), rel=1e-4)
    assert test["mae"] == pytest.approx(np.mean(absolute), rel=1e-4)
    np.testing.assert_allclose(test["by_horizon"]["mse"], np.mean(squared, axis=(0, 2)), rtol=1e-4)
    assert test["by_column"]["up"]["raw_mae"] == pytest.approx(np.mean(raw, axis=(0, 1))[0], 1e-4)
    train = scaled[: data.borders.train]
    last_day = train[24:] - train[:-24]
    mase = np.mean(absolute, axis=(0, 1)) / np.nanmean(np.abs(last_day), axis=0)
    rmsse = np.sqrt(np.mean(squared, axis=(0, 1)) / np.nanmean(last_day**2, axis=0))
    assert test["by_column"]["down"]["mase"] == pytest.approx(mase[1], rel=1e-4)
    assert test["mase"] == pytest.approx(mase.mean(), rel=1e-4)
    assert test["rmsse"] == pytest.approx(rmsse.mean(), rel=1e-4)
    assert test["smape"] == pytest.approx(np.mean(percentages), rel=1e-4)
    assert test["by_column"]["up"]["smape"] == pytest.approx(
        np.mean(percentages, axis=(0, 1))[0], rel=1e-4
    )


def test_reported_coverage_is_that_of_the_stored_offsets(forecasting_run):
    run = forecasting_run
    data = load_forecasting_data(run.config.data)
    windows = data.windows("test")
    answers = run.load_model()(run.preprocessor().standardise(windows.histories())).numpy()
    bounds = answers + run.offsets  # a point forecast: the offsets ascend around zero
    truth = windows.futures()
    for interval, (low, high) in zip(run.metrics["intervals"], ((0, -1), (1, -2)), strict=True):
        inside = (bounds[..., low] <= truth) & (truth <= bounds[..., high])
        assert interval["nominal"] == pytest.approx(run.levels[high] - run.levels[low])
        assert interval["coverage"] == pytest.approx(inside.mean())
        np.testing.assert_allclose(interval["by_horizon"], inside.mean(axis=(0, 2)))
        by_column = [interval["by_column"][name] for name in ("up", "down")]
        np.testing.assert_allclose(by_column, inside.mean(axis=(0, 1)))


def test_reported_pinball_losses_are_those_of_scikit_learn(forecasting_run):
    run = forecasting_run
    data = load_forecasting_data(run.config.data)
    windows = data.windows("test")
    answers = run.load_model()(run.preprocessor().standardise(windows.histories())).numpy()
    bounds, truth = answers + run.offsets, windows.futures()
    found, by_step = (
        place["pinball"]
        for place in (run.metrics["quantiles"], run.metrics["quantiles"]["by_horizon"])
    )
    losses = []
    for q, level in enumerate(run.levels):
        expected = mean_pinball_loss(truth.ravel(), bounds[..., q].ravel(), alpha=level)
        assert found[f"{level:g}"] == pytest.approx(expected, rel=1e-4)
        third = mean_pinball_loss(truth[:, 2].ravel(), bounds[:, 2, :, q].ravel(), alpha=level)
        assert by_step[f"{level:g}"][2] == pytest.approx(third, rel=1e-4)
        losses.append(
            mean_pinball_loss(truth[..., 1].ravel(), bounds[..., 1, q].ravel(), alpha=level)
        )
    ends = [0, *run.levels, 1]
    crps = 2 * np.trapezoid([losses[0], *losses, losses[-1]], ends)
    of_column = run.metrics["quantiles"]["by_column"]["down"]
    assert of_column["crps"] == pytest.approx(crps, rel=1e-4)
    assert of_column["raw_crps"] == pytest.approx(crps * run.preprocessor().deviation[1], rel=1e-4)
    outer, median = found["0.025"] + found["0.975"], found["0.5"]
    assert outer < run.metrics["quantiles"]["crps"] < 2 * median


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        {"architecture": "one_shot", "loss": "quantile", "units": 5},
        pytest.param(
            {"linear_skip": True, "loss": "huber", "channel_independent": False},
            marks=pytest.mark.long,
        ),
    ],
)
def test_other_networks_and_targets(tmp_path, model):
    data = write_waves(tmp_path / "waves.csv")
    config = tiny_forecasting_config(tmp_path, data=data, **model)
    run = train_forecasting(replace(config, data=replace(config.data, target=("down",))))
    assert run.target_columns == ("down",)
    assert run.columns == ("up", "down")
    forecasts, quantiles = run.test_answers(5)
    assert (forecasts.shape, quantiles.shape) == ((5, 6, 1), (5, 6, 1, 5))
    assert (np.diff(quantiles, axis=-1) >= 0).all()
    if model.get("linear_skip"):  # starts from a ridge regression on the whole look-back
        ridge = run.metrics["ridge_by_lookback"]["24"]["validation"]["mse"]
        assert run.history[0]["validation"]["mse"] < 1.2 * ridge


@pytest.mark.slow
def test_a_crash_while_writing_leaves_no_run(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pipeline, "draw_all", full)
    data = write_waves(tmp_path / "waves.csv")
    with pytest.raises(RunDirectoryError, match="No space left"):
        train_forecasting(tiny_forecasting_config(tmp_path / "runs", data=data))
    # The training is not lost: `gru-train resume` only needs to write.
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [".waves.checkpoint"]


@pytest.mark.slow
def test_intervals_where_a_step_has_no_validation_value(tmp_path):
    """Few windows: intervals come from all steps and columns together."""
    data = write_waves(tmp_path / "waves.csv")
    lines = data.read_text().split("\n")
    for row in range(1 + 176, 1 + 256):  # the validation part
        time, _, down = lines[row].split(",")
        if row != 1 + 176:
            lines[row] = f"{time},,{down}"
    data.write_text("\n".join(lines))
    run = train_forecasting(tiny_forecasting_config(tmp_path / "runs", data=data))
    assert np.isfinite(run.offsets).all()
    assert (np.diff(run.offsets, axis=-1) > 0).all()


@pytest.mark.long
def test_co2_beats_every_baseline(tmp_path):
    from gru_training.config import RunConfig
    from gru_training.forecasting.presets import PRESETS

    run = train_forecasting(replace(PRESETS["co2"], run=RunConfig(tmp_path, "co2")))
    model = run.metrics["model"]
    for floor in run.metrics["baselines"].values():
        assert model["validation"]["mse"] < floor["validation"]["mse"]
    assert run.metrics["beats_seasonal_naive"]
    assert json.loads((run.path / "metrics.json").read_text()) == run.metrics
