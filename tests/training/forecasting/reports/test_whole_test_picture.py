"""Forecasts that follow each other over the whole test part."""

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.image import imread

from gru_training.forecasting.pictures import draw_test_part, one_after_another
from gru_training.forecasting.preprocessor import make_predictor
from tests.training.forecasting.reading import load_forecasting_data


def test_every_step_of_the_test_part_is_forecast_once(forecasting_run, tmp_path):
    run = forecasting_run
    data = load_forecasting_data(run.config.data)
    predict = make_predictor(run.load_model(), data.preprocessor)
    parts = data, predict, run.offsets, run.levels, [1, 0]
    steps, bounds = one_after_another(*parts)
    begin, end = data.borders.part("test")
    np.testing.assert_array_equal(steps, np.arange(begin, end))
    assert np.isfinite(bounds).all()
    _, stored = run.test_answers(10_000)  # of every window; they begin one step apart
    whole = (end - begin) // 6
    for number in range(whole):
        rows = slice(6 * number, 6 * number + 6)
        np.testing.assert_allclose(
            bounds[rows], stored[6 * number][:, [1, 0]], rtol=1e-4, atol=1e-5
        )
    left = (end - begin) % 6
    assert left
    np.testing.assert_allclose(bounds[-left:], stored[-1][-left:, [1, 0]], rtol=1e-4, atol=1e-5)
    draw_test_part(*parts, tmp_path / "test_part.png")
    assert imread(tmp_path / "test_part.png").std() > 0.03


def test_a_time_that_is_there_twice(forecasting_run, tmp_path):
    """As in the published weather.csv, whose rows count as they are."""
    run = forecasting_run
    data = load_forecasting_data(run.config.data)
    predict = make_predictor(run.load_model(), data.preprocessor)
    begin, _ = data.borders.part("test")
    times = np.array(data.series.times)
    times[begin + 3] = times[begin + 2]
    twice = replace(data, series=replace(data.series, times=pd.DatetimeIndex(times)))
    draw_test_part(twice, predict, run.offsets, run.levels, [0], tmp_path / "test_part.png")
    assert imread(tmp_path / "test_part.png").std() > 0.03


def test_a_long_part_is_drawn_by_means(forecasting_run, tmp_path, monkeypatch):
    from gru_training.forecasting import pictures as whole_test_picture

    monkeypatch.setattr(whole_test_picture, "_MOST_POINTS", 7)
    data = load_forecasting_data(forecasting_run.config.data)
    predict = make_predictor(forecasting_run.load_model(), data.preprocessor)
    drawn = []
    monkeypatch.setattr(whole_test_picture, "save_figure", lambda figure, _: drawn.append(figure))
    draw_test_part(
        data, predict, forecasting_run.offsets, forecasting_run.levels, [0], tmp_path / "x.png"
    )
    begin, end = data.borders.part("test")
    step = -(-(end - begin) // 7)
    truth = data.series.values[begin:end, 0]
    expected = [truth[at : at + step].mean() for at in range(0, end - begin, step)]
    axes = drawn[0].axes[0]
    line = next(each for each in axes.lines if each.get_label() == "measured")
    np.testing.assert_allclose(line.get_ydata(), expected)
    assert f"means of {step} steps" in axes.get_title(loc="left")
