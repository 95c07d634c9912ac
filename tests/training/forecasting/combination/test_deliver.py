"""`--deliver`: one kind of what is compared, in place of the weighted mean."""

import numpy as np
import pandas as pd
import pytest

from gru_training import Forecaster
from gru_training.__main__ import main
from gru_training.data.series import Series
from gru_training.errors import ConfigError
from gru_training.forecasting.config import CombinationConfig, ForecastingConfig, SeriesConfig
from gru_training.forecasting.plan import InitialWeights, make_plan

SEASON, HORIZON = 12, 6
KINDS = {
    "ridge": {"ridge"},
    "smoothing": {"exponential smoothing"},
    "ets": {"ETS"},
    "theta": {"theta"},
    "seasonal-naive": {"seasonal naive"},
    "last-value": {"last value"},
}


def table(rows):
    steps, noise = np.arange(rows), np.random.default_rng(2).normal(size=rows)
    values = 50 + 0.2 * steps + 8 * np.sin(2 * np.pi * steps / SEASON) + noise
    times = pd.date_range("2001-01-01", periods=rows, freq="MS")
    return pd.DataFrame({"time": times, "sales": values})


def planned(rows, deliver):
    frame = table(rows)
    times = frame["time"].dt.as_unit("ns").to_numpy()
    series = Series("x", "x", ("sales",), frame[["sales"]].to_numpy(), times, "MS")
    config = ForecastingConfig(
        data=SeriesConfig(horizon=HORIZON), combination=CombinationConfig(deliver=deliver)
    )
    return make_plan(series, InitialWeights(config))


@pytest.mark.parametrize("deliver", KINDS)
def test_only_what_is_asked_for_has_a_weight(deliver):
    plan = planned(90, deliver)
    weighed = {
        each.name for each, weight in zip(plan.candidates, plan.weights, strict=True) if weight > 0
    }
    assert weighed == KINDS[deliver]
    assert sum(plan.weights) == pytest.approx(1)
    assert len(plan.candidates) > 1  # others that read no more are compared all the same


def test_what_is_not_compared_is_refused_with_a_list():
    with pytest.raises(
        ConfigError,
        match=r"one of combination, network, ridge, smoothing, seasonal-naive, last-value, which "
        r"are compared on this series, got theta",
    ):
        planned(1600, "theta")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--deliver", "ridge", "--no-combine"], "--deliver ridge needs --combine"),
        (["--deliver", "magic"], "invalid choice"),
        (
            ["--deliver", "ridge", "--architecture", "one_shot", "--normalisation", "none"],
            "leave out --architecture",
        ),
    ],
)
def test_what_cannot_be_delivered_is_refused(tmp_path, capsys, flags, message):
    table(90).to_csv(tmp_path / "sales.csv", index=False)
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main(["forecasting", "--data", str(tmp_path / "sales.csv"), *flags]))
    assert ended.value.code
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.slow
def test_the_last_season_is_delivered_with_its_intervals(tmp_path):
    frame = table(90)
    forecaster = Forecaster(
        deliver="seasonal-naive", horizon=HORIZON, epochs=1, units=4, transform="none"
    ).fit(frame)
    found = forecaster.predict()
    expected = frame["sales"].to_numpy()[-SEASON:][:HORIZON]
    np.testing.assert_allclose(found["forecast"], expected, rtol=1e-5)
    assert (found["lo-80"] < found["forecast"]).all()
    assert (found["forecast"] < found["hi-80"]).all()
    report = str(forecaster.report())
    assert "Delivered is seasonal naive alone, as `--deliver seasonal-naive` asks." in report
    assert "**seasonal-naive, delivered**" in report
    assert "| ridge" in report.split("What the forecast is made of")[1]
    assert "DOES NOT BEAT" not in report
    folds = forecaster.cross_validation(folds=1)
    errors = folds.set_index("model")["mse"]
    assert errors["seasonal-naive, delivered"] == pytest.approx(errors["seasonal naive"])


@pytest.mark.slow
def test_a_network_is_delivered_where_it_has_no_weight_by_default():
    forecaster = Forecaster(deliver="network", horizon=HORIZON, epochs=1, units=4).fit(table(90))
    combination = forecaster.run_.combination
    assert combination["few_windows"]
    weights = {share["name"]: share["weight"] for share in combination["shares"]}
    assert weights["GRU"] + weights["GRU on ridge"] == pytest.approx(1)
    assert len(forecaster.predict()) == HORIZON
