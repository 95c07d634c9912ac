from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gru_training.data.series import Series
from gru_training.errors import DataError
from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.data import prepare
from gru_training.forecasting.sets import PARTS, Borders
from gru_training.forecasting.windows import WindowBatches, Windows
from tests.training.forecasting.reading import load_forecasting_data

CONFIG = SeriesConfig(lookback=12, horizon=4)


def series(rows=200, columns=("a", "b", "c"), seed=0):
    values = np.random.default_rng(seed).normal(size=(rows, len(columns))).cumsum(axis=0)
    times = pd.date_range("2020-01-01", periods=rows, freq="h")
    return Series("made-up", "made-up.csv", columns, values, times.to_numpy(), "h")


def test_the_split_is_by_time_and_every_window_is_counted():
    data = prepare(series(), CONFIG)
    assert data.borders == Borders(140, 160, 200)
    counts = {part: len(data.windows(part)) for part in PARTS}
    assert counts == {"train": 140 - 12 - 4 + 1, "validation": 20 - 4 + 1, "test": 40 - 4 + 1}
    assert len(data.windows("test", lookback=100)) == counts["test"]
    assert data.windows("train").origins.max() + 4 == 140  # the last training step


def test_windows_are_what_precedes_and_what_follows():
    data = prepare(series(), replace(CONFIG, target=("c", "a")))
    scale = data.series.values[:140].mean(axis=0), data.series.values[:140].std(axis=0)
    scaled = (data.series.values - scale[0]) / scale[1]
    windows = data.windows("validation")
    assert windows.origins[0] == 140
    for row in (0, 5, len(windows) - 1):
        origin = 140 + row
        np.testing.assert_array_equal(
            windows.histories(np.array([row]))[0],
            data.series.values[origin - 12 : origin].astype(np.float32),
        )
        np.testing.assert_allclose(
            windows.futures(np.array([row]))[0], scaled[origin : origin + 4][:, [2, 0]], rtol=1e-5
        )


def test_an_epoch_has_every_window_once_in_an_order_of_its_own():
    data = prepare(series(), CONFIG)
    windows = data.windows("train")
    batches = WindowBatches(windows, data.preprocessor, 32, seed=3)
    first = {(row.tobytes()) for row in windows.futures()}

    def order(epoch, source=batches):
        return [row.tobytes() for _, targets in source.epoch(epoch) for row in targets]

    assert len(batches) == 4
    assert len(order(1)) == len(windows)
    assert set(order(1)) == first
    assert order(1) == order(1) != order(2)
    assert order(1) != order(1, WindowBatches(windows, data.preprocessor, 32, seed=4))
    thinned = WindowBatches(windows, data.preprocessor, 32, seed=3, stride=4)
    assert len(order(1, thinned)) == len(windows) // 4
    assert set(order(1, thinned)) != set(order(2, thinned))
    in_order = [row for _, targets in batches.in_order() for row in targets]
    np.testing.assert_array_equal(in_order, windows.futures())


def test_batches_hold_standardised_histories_without_nan():
    table = series()
    table.values[5:9, 1] = np.nan
    data = prepare(table, CONFIG)
    histories, _ = next(WindowBatches(data.windows("train"), data.preprocessor, 8).in_order())
    filled = pd.DataFrame(table.values).ffill().to_numpy()  # no window begins inside the gap
    expected = (filled[:12] - data.preprocessor.mean) / data.preprocessor.deviation
    np.testing.assert_allclose(histories[0], expected, atol=1e-5)


def test_windows_without_any_target_are_left_out():
    table = series(columns=("a",))
    table.values[170:180] = np.nan
    data = prepare(table, CONFIG)
    origins = data.windows("test").origins
    assert set(range(160, 197)) - set(origins) == set(range(170, 177))
    assert isinstance(data.windows("test"), Windows)


def test_defaults_come_from_the_season_and_all_columns_are_forecast():
    data = prepare(series(400), SeriesConfig())
    assert (data.shape.lookback, data.shape.horizon, data.season) == (72, 24, 24)
    assert data.shape.targets == (0, 1, 2)
    assert not data.published


def test_calendar_columns_are_inputs_only(tmp_path):
    path = tmp_path / "x.csv"
    table = series(300)
    frame = pd.DataFrame(table.values, columns=table.columns)
    frame.insert(0, "date", table.times)
    frame.to_csv(path, index=False)
    data = load_forecasting_data(SeriesConfig(path, calendar=("auto",), lookback=5, horizon=2))
    assert data.target_columns == ("a", "b", "c")
    assert data.series.columns[3:] == ("day_sin", "day_cos", "weekday", "year_sin", "year_cos")
    frame["day_sin"] = 0.0
    frame.to_csv(path, index=False)
    with pytest.raises(DataError, match="already has a column 'day_sin'"):
        load_forecasting_data(SeriesConfig(path, calendar=("hour",)))


def test_too_few_rows():
    tenth = replace(CONFIG, validation_fraction=0.1)
    for rows, part, config in ((18, "train", CONFIG), (30, "validation", tenth)):
        with pytest.raises(DataError, match=rf"made-up\.csv: the {part} part has \d+ of {rows}"):
            prepare(series(rows), config)


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_constant_columns_are_kept_apart(value):
    """Beside others; where there is no other, a model has them to forecast."""
    table = series()
    table.values[:, 1] = value
    table.values[30:33, 1] = np.nan
    data = prepare(table, CONFIG)
    assert data.target_columns == ("a", "c")
    assert data.series.constants == (("b", value),)
    assert f"constant, and forecast as they are: b ({value:g})" in data.series.notes
    table.values[:] = value
    data = prepare(table, CONFIG)
    assert data.target_columns == ("a", "b", "c")
    assert (data.standardised_targets == 0).all()


def test_columns_that_say_nothing_are_named():
    table = series()
    table.values[:150, 1] = 7.0
    with pytest.raises(DataError, match=r"made-up\.csv, column 'b': .*that vary, got 7 in all"):
        prepare(table, CONFIG)
    table.values[:150, 1] = np.nan
    with pytest.raises(DataError, match="column 'b': expected values in the training rows"):
        prepare(table, CONFIG)
    table = series()
    table.values[140:160, 2] = np.nan
    with pytest.raises(DataError, match=r"'c': expected values in the validation rows \(141 to"):
        prepare(table, CONFIG)


@pytest.mark.parametrize(
    ("scale", "offset", "message"),
    [
        (1e300, 0.0, "expected values up to 1e[+]30, got one of .*e[+]30[01]; models read"),
        (1e-300, 0.0, "expected values whose standard deviation is above 1e-30 .*multiply"),
        (1e-40, 0.0, "expected values whose standard deviation is above 1e-30 .*multiply"),
        (1.0, 1e16, "expected .* neighbouring float32 .* size, 1.07374e[+]09, .*subtract"),
    ],
)
def test_numbers_that_float32_cannot_tell_apart_are_refused(scale, offset, message):
    """Models would read the same number everywhere, and could not beat the mean."""
    table = series()
    table.values[:, 1] = offset + scale * table.values[:, 1]
    with pytest.raises(DataError, match=r"made-up\.csv, column 'b': " + message):
        prepare(table, CONFIG)


def test_numbers_that_float32_tells_apart_coarsely_are_noted():
    table = series()
    table.values[:, 1] += 3e7
    (note,) = prepare(table, CONFIG).series.notes
    read = table.values[:140, 1].astype(np.float32)
    apart = np.diff(np.unique(read)).min()
    assert note.startswith("column 'b': models read numbers as float32")
    assert f"{apart:g} apart, {apart / table.values[:140, 1].std():.0%} of its standard" in note
    assert not prepare(series(), CONFIG).series.notes


@pytest.mark.parametrize("row", [150, 199])
def test_codes_for_missing_values_are_found_where_they_would_ruin_the_errors(row):
    table = series()
    table.values[row, 2] = 1e20
    message = f"column 'c': .*got 1e[+]20 in row {row + 1}; if that means a missing value, leave"
    with pytest.raises(DataError, match=message):
        prepare(table, CONFIG)
    table.values[row, 2] = -9999.0
    prepare(table, CONFIG)


def test_a_training_part_whose_values_are_all_read_and_none_forecast():
    table = series(columns=("a",))
    table.values[12:140] = np.nan
    with pytest.raises(DataError, match="no window of the train part has a value to forecast"):
        prepare(table, CONFIG)


def test_a_season_longer_than_the_training_part():
    with pytest.raises(DataError, match="a season of at most the 140 training rows, got 141"):
        prepare(series(), replace(CONFIG, season=141))


def test_unknown_target():
    with pytest.raises(DataError, match="--target: the built-in CO2 series has no column 'x'"):
        load_forecasting_data(SeriesConfig(target=("x",)))


DAYS = [f"2020-01-{day:02}" for day in range(1, 31) if day != 9]


@pytest.mark.parametrize(
    ("times", "settings", "message"),
    [
        (DAYS * 2, {"past": ("b",)}, "--past: .* has a row for each series and time"),
        (range(30), {"calendar": ("auto",)}, "--calendar, --holidays: .* has numbers of steps in"),
    ],
)
def test_settings_that_a_series_cannot_have(tmp_path, times, settings, message):
    rows = [f"s{k // len(DAYS)},{time},{k % 7},{k % 5}\n" for k, time in enumerate(times)]
    path = tmp_path / "own.csv"
    path.write_text("unique_id,ds,y,b\n" + "".join(rows))
    with pytest.raises(DataError, match=message):
        load_forecasting_data(SeriesConfig(path, **settings))


def test_a_file_that_is_only_called_like_a_public_set(tmp_path):
    """Its rows are put on an even axis, as those of any file."""
    path = tmp_path / "ETTh1.csv"
    path.write_text("ds,y\n" + "".join(f"{day},{k % 7}\n" for k, day in enumerate(DAYS)))
    data = load_forecasting_data(SeriesConfig(path))
    assert len(data.series) == len(DAYS) + 1
    assert not data.published


def test_the_built_in_series():
    data = load_forecasting_data(SeriesConfig())
    assert data.series.values.shape == (2284, 1)
    assert int(np.isnan(data.series.values).sum()) == 59
    assert (data.series.frequency, data.season) == ("W-SAT", 52)


@pytest.mark.slow_cases
@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("ett/ETTh1.csv", (2785, 2785)),
        ("weather/weather.csv", (5175, 10444)),
        ("exchange_rate/exchange_rate.csv", (665, 1422)),
    ],
)
def test_published_borders(real_data, file, counts):
    data = load_forecasting_data(SeriesConfig(real_data / file, lookback=336, horizon=96))
    assert data.published
    assert tuple(len(data.windows(part)) for part in PARTS[1:]) == counts
    own = load_forecasting_data(
        SeriesConfig(real_data / file, lookback=336, horizon=96, test_fraction=0.1)
    )
    assert not own.published


def test_the_digest_tells_what_changed():
    def digest(table):
        return prepare(table, CONFIG).digest

    table = series()
    first, values = digest(table), table.values.copy()
    assert digest(series()) == first
    values[7, 1] = np.nextafter(values[7, 1], np.inf)
    assert digest(replace(table, values=values)) != first
    assert digest(replace(table, times=table.times + np.timedelta64(7, "D"))) != first
    assert digest(replace(table, columns=("a", "c", "b"))) != first
