import json
import shutil

import numpy as np
import pytest
from matplotlib.image import imread

from gru_training.config import to_dict
from gru_training.errors import RunDirectoryError
from gru_training.forecasting.config import ForecastShape
from gru_training.forecasting.intervals import LEVELS, quantiles
from gru_training.forecasting.run import ForecastingRun, SeriesDescription, evenly


@pytest.fixture
def copied_run(forecasting_run, tmp_path):
    return ForecastingRun.open(shutil.copytree(forecasting_run.path, tmp_path / "copy"))


def test_holds_what_it_promises(forecasting_run):
    names = {path.name for path in forecasting_run.path.iterdir()}
    pictures = {
        "forecasts.png", "errors_by_horizon.png", "errors_by_column.png", "coverage.png",
        "residuals.png", "curves.png", "future.png", "test_part.png",
    }  # fmt: skip
    assert names == pictures | {
        "config.json", "settings.toml", "series.json", "scaler.json", "calibration.npz",
        "test_windows.npz",
        "last_window.npz", "forecast.onnx",
        "test_errors.npz", "model.keras", "metrics.json", "history.json", "report.md",
        "report.html", "manifest.json",
    }  # fmt: skip
    run = ForecastingRun.open(str(forecasting_run.path))
    assert run.shape == ForecastShape(24, 6, 2, (0, 1))
    assert (run.columns, run.frequency, run.levels) == (("up", "down"), "h", LEVELS)
    assert run.offsets.shape == (6, 2, 5)
    assert (run.offsets[..., LEVELS.index(0.5)] == 0).all()
    assert len(run.history) == 2
    for name in pictures:
        assert imread(run.path / name).std() > 0.03  # not blank


def test_the_loaded_model_repeats_the_stored_answers(forecasting_run):
    run = forecasting_run
    histories = run.test_windows(7)
    assert histories.shape == (7, 24, 2)
    answers = run.load_model()(run.preprocessor().standardise(histories))
    expected = run.preprocessor().restore(quantiles(answers, run.offsets, run.levels))
    forecasts, bounds = run.test_answers(7)
    np.testing.assert_allclose(bounds, expected, rtol=1e-5)
    np.testing.assert_array_equal(forecasts, bounds[..., LEVELS.index(0.5)])
    assert len(run.test_windows(10_000)) == len(run.test_answers(10_000)[0])


def test_evenly():
    assert evenly(10, 3).tolist() == [0, 4, 9]
    assert evenly(3, 10).tolist() == [0, 1, 2]
    assert evenly(1, 5).tolist() == [0]


@pytest.mark.parametrize(
    ("name", "read", "message"),
    [
        ("calibration.npz", lambda run: run.offsets, r"cannot read .*calibration\.npz"),
        ("test_windows.npz", lambda run: run.test_windows(1), r"cannot read .*test_windows\.npz"),
        ("scaler.json", lambda run: run.preprocessor(), r"cannot read .*scaler\.json"),
        ("series.json", lambda run: run.series, r"cannot read .*series\.json"),
        ("model.keras", lambda run: run.load_model(), r"cannot load .*model\.keras"),
    ],
)
def test_damaged_files_are_named(copied_run, name, read, message):
    path = copied_run.path / name
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(RunDirectoryError, match=message):
        read(ForecastingRun.open(copied_run.path))


def test_a_model_that_does_not_fit_the_series(copied_run):
    path = copied_run.path / "series.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, "horizon": 7}))
    with pytest.raises(RunDirectoryError, match=r"expected a model from \(24, 2\) to \(7, 2\)"):
        ForecastingRun(copied_run.path).load_model()
    path.write_text(json.dumps({"name": "x"}))
    with pytest.raises(RunDirectoryError, match=r"series\.json: .*missing"):
        _ = ForecastingRun(copied_run.path).series


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"target_columns": ["moon"]}, r"expected targets among the columns \[.*got \['moon'\]"),
        ({"target_columns": []}, "targets must be one or more different columns"),
        ({"lookback": 0}, "lookback must be at least 1, got 0"),
    ],
)
def test_a_series_without_a_shape_is_refused(tmp_path, changed, said):
    series = SeriesDescription(
        "s", ("a",), ("a",), "h", 24, 2, 1, (3, 4, 5), "2024-01-01", "2024-01-02", False
    )
    (tmp_path / "series.json").write_text(json.dumps({**to_dict(series), **changed}))
    with pytest.raises(RunDirectoryError, match=rf"series\.json: {said}"):
        _ = ForecastingRun(tmp_path).shape


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({}, r"expected an array 'levels', got \[\]"),
        ({"levels": np.zeros((2, 2))}, "expected 'levels' to have 1 dimensions of floats, got 2"),
        ({"levels": np.array(["a"])}, "expected 'levels' to have 1 dimensions of floats, got 1 of"),
    ],
)
def test_arrays_of_another_form_are_refused(tmp_path, arrays, said):
    np.savez(tmp_path / "calibration.npz", **arrays)
    with pytest.raises(RunDirectoryError, match=rf"calibration\.npz: {said}"):
        _ = ForecastingRun(tmp_path).levels


def test_a_run_of_another_task(tiny_run):
    with pytest.raises(RunDirectoryError, match="expected a forecasting run, got task 'sentiment'"):
        _ = ForecastingRun.open(tiny_run.path).config
