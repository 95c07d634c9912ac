import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from gru_training.errors import DataError
from gru_training.forecasting.preprocessor import SeriesPreprocessor

MEAN, DEVIATION = np.array([1.0, -20.0, 300.0]), np.array([2.0, 0.5, 40.0])


@pytest.fixture
def preprocessor():
    return SeriesPreprocessor(MEAN, DEVIATION, (2, 0))


def windows(share, seed=0, steps=30):
    rng = np.random.default_rng(seed)
    x = MEAN + DEVIATION * rng.normal(size=(6, steps, 3))
    x[rng.random(x.shape) < share] = np.nan
    x[1, :, 1] = np.nan  # a column without any value
    x[2, : steps // 2, 0] = np.nan
    x[3, steps // 2 :, 2] = np.nan
    return x.astype(np.float32)


def by_pandas(window):
    filled = pd.DataFrame(window.astype(np.float64)).ffill().bfill()
    return ((filled - MEAN) / DEVIATION).fillna(0.0).to_numpy()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("steps", [1, 30])
def test_fills_and_scales_as_pandas_does(preprocessor, share, steps):
    x = windows(share, steps=steps)
    got = preprocessor.standardise(x).numpy()
    np.testing.assert_allclose(got, np.stack([by_pandas(row) for row in x]), atol=2e-5)


def test_rows_do_not_depend_on_each_other(preprocessor):
    x = windows(0.3)
    alone = [preprocessor.standardise(x[i : i + 1]).numpy() for i in range(len(x))]
    np.testing.assert_array_equal(preprocessor.standardise(x).numpy(), np.concatenate(alone))


def test_works_in_a_graph_of_any_length(preprocessor):
    graph = tf.function(
        preprocessor.standardise, input_signature=[tf.TensorSpec((None, None, 3), tf.float32)]
    )
    for steps in (2, 17):
        x = windows(0.4, steps=steps)
        np.testing.assert_allclose(graph(x), preprocessor.standardise(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("trailing", [(), (5,)])
def test_restore_is_the_inverse_for_the_targets(preprocessor, trailing):
    raw = np.random.default_rng(1).normal(100, 50, (4, 7, 2))
    scaled = preprocessor.standardise_targets(raw)
    np.testing.assert_allclose(scaled, (raw - MEAN[[2, 0]]) / DEVIATION[[2, 0]])
    scaled = np.broadcast_to(scaled.reshape(4, 7, 2, *[1] * len(trailing)), (4, 7, 2, *trailing))
    restored = preprocessor.restore(scaled).numpy()
    expected = np.broadcast_to(raw.reshape(4, 7, 2, *[1] * len(trailing)), restored.shape)
    np.testing.assert_allclose(restored, expected, rtol=1e-5)


def test_fit_reads_the_values_that_are_there():
    rows = np.array([[1.0, np.nan], [3.0, 10.0], [np.nan, 20.0]])
    fitted = SeriesPreprocessor.fit(rows, (0, 1))
    np.testing.assert_allclose(fitted.mean, [2, 15])
    np.testing.assert_allclose(fitted.deviation, [1, 5])


def test_json_round_trip_is_exact(preprocessor, tmp_path):
    path = tmp_path / "scaler.json"
    scaler = SeriesPreprocessor(MEAN / 3, DEVIATION / 7, (1,))
    scaler.save(path)
    again = SeriesPreprocessor.load(path)
    np.testing.assert_array_equal(again.mean, scaler.mean)
    np.testing.assert_array_equal(again.deviation, scaler.deviation)
    assert again.targets == (1,)
    for content in (
        "{",
        "{}",
        '{"mean": [1], "deviation": [0], "targets": [0]}',
        "[]",
        f'{{"mean": [{10**400}], "deviation": [1], "targets": [0]}}',
    ):
        path.write_text(content)
        with pytest.raises(DataError, match=r"cannot read .*scaler\.json"):
            SeriesPreprocessor.load(path)
