"""A panel whose series have known inputs of their own, from the table to a forecast."""

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from gru_training import errors
from gru_training.__main__ import main
from gru_training.data.long_form import LongColumns
from gru_training.data.problems import Problems
from gru_training.data.series_file import read_series
from gru_training.data.series_frame import series_of_frame
from gru_training.estimators.forecaster import Forecaster
from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.known import KnownEffect, common_scale, fit_effect, knots_of
from gru_training.forecasting.run import ForecastingRun
from tests.known_panel import HORIZON, KNOWN_AHEAD, PROMOTED, SERIES, train_sales, write_sales
from tests.made_once import made_once
from tests.training.forecasting.reading import load_forecasting_data

pytestmark = pytest.mark.long

INPUTS = ("promo", "price")


@pytest.fixture(scope="module")
def made():
    def make(folder):
        write_sales(folder / "sales.csv")
        train_sales(folder / "sales.csv", folder / "runs", "with")
        train_sales(folder / "sales.csv", folder / "runs", "without", future=())

    return made_once("known_panel", make)


@pytest.fixture(scope="module")
def table(made):
    return pd.read_csv(made / "sales.csv", parse_dates=["ds"])


@pytest.fixture(scope="module")
def runs(made):
    return {name: ForecastingRun.open(made / "runs" / name) for name in ("with", "without")}


def test_each_series_has_its_inputs_beside_it(made, table):
    series = read_series(made / "sales.csv", long=LongColumns(inputs=INPUTS))
    again = series_of_frame(table, None, None, Problems("t"), long=LongColumns(inputs=INPUTS))
    ids = [f"p{number}" for number in range(SERIES)]
    assert series.columns == (*ids, *(f"{name}[{of}]" for of in ids for name in INPUTS))
    assert series.inputs == INPUTS
    assert series.input_columns == set(series.columns) - set(ids)
    for value, name in (("y", "{}"), ("promo", "promo[{}]"), ("price", "price[{}]")):
        wide = table.pivot(index="ds", columns="unique_id", values=value)
        for of in ids:
            for each in (series, again):
                column = each.values[:, each.column(name.format(of))]
                np.testing.assert_array_equal(column, wide[of])


def test_known_inputs_lower_the_error(runs):
    found = {name: run.metrics["model"]["test"]["mse"] for name, run in runs.items()}
    assert found["with"] < 0.3 * found["without"]
    assert runs["with"].metrics["known_inputs"] == list(INPUTS)
    assert imread(runs["with"].path / "known_inputs.png").std() > 0.03
    assert len(runs["with"].series.future_columns) == 2 * SERIES
    assert runs["with"].target_columns == runs["without"].target_columns


def forecast(run, folder, *options):
    path = folder / "out.csv"
    command = ["forecast", str(run.path), "--output", str(path), "--overwrite", *options]
    assert main(command) == 0
    return pd.read_csv(path, parse_dates=["ds"])


def test_rows_after_the_last_sale_are_what_is_forecast(runs, table, tmp_path):
    found = forecast(runs["with"], tmp_path)
    assert found.groupby("unique_id").size().to_dict() == {
        f"p{number}": HORIZON for number in range(SERIES) if number != 2
    }
    ahead = table[table["ds"] > table.loc[table["y"].notna(), "ds"].max()]
    file = tmp_path / "future.csv"
    ahead[["price", "ds", "unique_id", "promo"]].sample(frac=1, random_state=0).to_csv(
        file, index=False
    )
    pd.testing.assert_frame_equal(forecast(runs["with"], tmp_path, "--future", str(file)), found)
    data = tmp_path / "data.csv"
    table.to_csv(data, index=False)
    again = forecast(runs["with"], tmp_path, "--data", str(data))
    pd.testing.assert_frame_equal(again, found, rtol=1e-5)
    forecaster = Forecaster.load(runs["with"].path)
    again = forecaster.predict(future=ahead.drop(columns="y"))
    pd.testing.assert_frame_equal(again, found, check_dtype=False, rtol=1e-5)


def test_a_promotion_of_one_product_changes_its_forecast_alone(runs, table, tmp_path):
    """By about what the data were made with."""
    times = table["ds"].max() - pd.to_timedelta(np.arange(KNOWN_AHEAD)[::-1], "D")
    rows = [
        {"unique_id": f"p{number}", "ds": time, "promo": 0, "price": 2.0 * (number + 1)}
        for number in range(SERIES)
        for time in times
    ]
    ahead = pd.DataFrame(rows)
    forecaster = Forecaster.load(runs["with"].path)
    before = forecaster.predict(future=ahead).set_index(["unique_id", "ds"])["forecast"]
    promoted = ahead.assign(promo=(ahead["unique_id"] == "p4").astype(int))
    after = forecaster.predict(future=promoted).set_index(["unique_id", "ds"])["forecast"]
    added = (after - before).groupby("unique_id").mean()
    assert added["p4"] == pytest.approx(PROMOTED * 100, rel=0.1)
    np.testing.assert_allclose(added.drop("p4"), 0, atol=1e-3)
    cheaper = ahead.assign(price=ahead["price"] * 0.9)
    after = forecaster.predict(future=cheaper).set_index(["unique_id", "ds"])["forecast"]
    share = (after - before).groupby("unique_id").mean()
    for number in (0, 1, 3, 4, 5):
        assert share[f"p{number}"] == pytest.approx(0.2 * 20 * (number + 1), rel=0.25)


def test_what_is_missing_is_named(made, runs, table, tmp_path, capsys):
    late = table[table["y"].notna()]
    file = tmp_path / "sales.csv"
    late.to_csv(file, index=False)
    assert main(["forecast", str(runs["with"].path), "--data", str(file)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "reads promo, price of the steps that it forecasts, from 2024-08-08" in said
    table.drop(columns=["y", "price"]).to_csv(file, index=False)
    assert main(["forecast", str(runs["with"].path), "--future", str(file)]) == 2
    assert "has no column 'price'" in " ".join(capsys.readouterr().err.split())
    table.drop(columns=["y", "unique_id"]).to_csv(file, index=False)
    assert main(["forecast", str(runs["with"].path), "--future", str(file)]) == 2
    assert "expected a column with the name of the series" in " ".join(
        capsys.readouterr().err.split()
    )
    with pytest.raises(errors.DataError, match=r"--future: .* no column 'rain'"):
        load_forecasting_data(SeriesConfig(data=made / "sales.csv", future=("rain",)))
    with pytest.raises(errors.DataError, match=r"--past: .* row for each series and time"):
        load_forecasting_data(SeriesConfig(data=made / "sales.csv", past=("price",)))


def test_an_input_is_put_on_one_scale():
    rng = np.random.default_rng(0)
    price = np.array([2.0, 50.0]) * rng.uniform(0.8, 1.2, (400, 2))
    mean, deviation = common_scale(price)
    np.testing.assert_allclose(mean, price.mean(axis=0))
    relative = (price / price.mean(axis=0)).std()
    np.testing.assert_allclose(deviation, mean * relative)
    promo = (rng.random((400, 2)) < [0.1, 0.4]).astype(float)
    promo[:, 1][:100] = np.nan
    mean, deviation = common_scale(promo)
    np.testing.assert_allclose(mean, np.nanmean(promo))
    np.testing.assert_allclose(deviation, np.nanstd(promo))
    for empty in (np.full((5, 2), np.nan), np.ones((5, 2))):
        assert (common_scale(empty)[1] == 1).all()


def panel(coefficients, rows=300, seed=0):
    """Targets that are noise, a walk and an effect of two inputs, of (2, K) coefficients."""
    rng = np.random.default_rng(seed)
    K = coefficients.shape[1]
    inputs = rng.normal(size=(rows, K, 2))
    targets = 0.05 * rng.normal(size=(rows, K)).cumsum(axis=0)
    targets += np.einsum("nkf,fk->nk", inputs, coefficients)
    return targets, inputs


def test_coefficients_are_those_of_least_squares_on_all_series():
    """Against NumPy: one regression of all differences, with the features of two linear inputs."""
    targets, inputs = panel(np.tile([[0.8], [-0.3]], (1, 5)))
    targets[:40, 1] = np.nan
    effect, (without, with_them) = fit_effect(targets, inputs, range(5, 15), 240, 7, 3)
    assert with_them < 0.2 * without
    assert effect.by_series
    shared = effect.coefficients[:, 0]
    np.testing.assert_allclose(effect.coefficients, shared[:, np.newaxis] * np.ones(5), atol=0.15)
    x = np.linspace(-1, 1, 9)
    for place, slope in ((0, 0.8), (1, -0.3)):
        made = np.zeros((9, 5, 2))
        made[..., place] = x[:, np.newaxis]
        added = np.asarray(effect(made.reshape(9, -1)))
        np.testing.assert_allclose(
            added - added[4], slope * x[:, np.newaxis] * np.ones(5), atol=0.1
        )


def test_series_that_differ_have_coefficients_of_their_own():
    slopes = np.stack([np.array([1.5, -1.5, 1.0, -1.0]), np.zeros(4)])
    targets, inputs = panel(slopes, seed=1)
    effect, (without, with_them) = fit_effect(targets, inputs, range(4, 12), 240, 7, 3)
    assert with_them < 0.2 * without
    made = np.zeros((2, 4, 2))
    made[1, :, 0] = 1.0
    added = np.diff(np.asarray(effect(made.reshape(2, -1))), axis=0)[0]
    np.testing.assert_allclose(added, slopes[0], atol=0.25)
    one = effect.of_targets([2])
    np.testing.assert_allclose(np.asarray(one(made[:, 2]))[1, 0], np.asarray(
        effect(made.reshape(2, -1))
    )[1, 2])  # fmt: skip
    again = KnownEffect.from_json(json.loads(json.dumps(effect.to_json())))
    assert again.by_series


def test_moments_in_pieces_are_those_of_all_rows(monkeypatch):
    from gru_training.forecasting import known as moments

    targets, inputs = panel(np.ones((2, 3)))
    targets[5:50, 0] = np.nan
    knots = [knots_of(inputs[..., place].ravel()) for place in range(2)]
    parts = targets, inputs, knots, True, 7, 7, 300
    whole = moments.difference_moments(*parts)
    monkeypatch.setattr(moments, "_MOST_FEATURES", 64 * 80)
    pieces = moments.difference_moments(*parts)
    np.testing.assert_allclose(pieces.gram, whole.gram, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(pieces.cross, whole.cross, rtol=1e-10, atol=1e-8)
    b = np.random.default_rng(2).normal(size=(whole.cross.shape[1], 3))
    effect = KnownEffect(range(6), knots, b, True)
    rest = targets - np.asarray(effect(inputs.reshape(300, -1)))
    expected = np.nanmean((rest[7:] - rest[:-7]) ** 2)
    assert whole.squared_error(b) == pytest.approx(expected, rel=1e-9)


def test_effects_may_follow_what_is_known_of_series():
    """Twelve series: those of one kind answer to the input, and the more the larger they are."""
    rng = np.random.default_rng(4)
    traits = np.column_stack([np.tile([0.5, -0.5], 6), rng.normal(size=12)])
    slopes = np.stack([0.3 + 1.2 * traits[:, 0] + 0.4 * traits[:, 1], np.zeros(12)])
    targets, inputs = panel(slopes, rows=60, seed=5)
    parts = targets, inputs, range(12, 36), 45, 7, 3
    effect, (_, known) = fit_effect(*parts, traits)
    assert "static covariates" in effect.whose
    made = np.zeros((2, 12, 2))
    made[1, :, 0] = 1.0
    added = np.diff(np.asarray(effect(made.reshape(2, -1))), axis=0)[0]
    np.testing.assert_allclose(added, slopes[0], atol=0.3)
    _, (_, unknown) = fit_effect(*parts)
    assert known <= unknown


def test_static_covariates_come_from_a_file(made, tmp_path):
    path = tmp_path / "products.csv"
    path.write_text("unique_id,kind,size\np0,a,1\np1,b,2\np2,a,3\np3,b,4\np4,a,5\n", "utf-8")
    settings = {"horizon": HORIZON, "lookback": 14, "static": path}
    config = SeriesConfig(data=made / "sales.csv", future=INPUTS, **settings)
    data = load_forecasting_data(config)
    note = next(note for note in data.series.notes if "known inputs" in note)
    assert "static covariates: kind, size, not known of 1 series, as 'p5'" in note
    assert data.preprocessor.known.whose in note
    wide = tmp_path / "wide.csv"
    series = read_series(made / "sales.csv")
    frame = pd.DataFrame(series.values[:180, :2], columns=["load", "price"])
    frame.insert(0, "time", series.times[:180])
    frame.ffill().bfill().to_csv(wide, index=False)
    config = SeriesConfig(data=wide, future=("price",), **settings)
    with pytest.raises(errors.DataError, match=r"--static: .* has no column with the names"):
        load_forecasting_data(config)
