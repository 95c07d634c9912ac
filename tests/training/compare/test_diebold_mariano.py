import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.datasets import nile

from gru_training.compare.diebold_mariano import MANY_WINDOWS, diebold_mariano

# forecast::dm.test (version 8.20, R 4.2.2) of the flow of the Nile, the value h years before and
# the mean of the five until then: y <- as.numeric(Nile); o <- 5:(100 - h); e1 <- y[o + h] - y[o];
# e2 <- y[o + h] - sapply(o, function(i) mean(y[(i - 4):i])); dm.test(e1, e2, h = h, power = power)
FROM_R = [
    (1, 1, 1.4628820407, 0.146835331815),
    (1, 2, 1.1954289972, 0.234926590650),
    (3, 1, 1.2748134814, 0.205585515019),
    (3, 2, 1.6191972528, 0.108828007456),
]


def nile_losses(steps, power):
    flow = nile.load_pandas().data["volume"].to_numpy()
    origins = np.arange(4, len(flow) - steps)
    last = flow[origins + steps] - flow[origins]
    mean = flow[origins + steps] - np.array([flow[i - 4 : i + 1].mean() for i in origins])
    return np.abs(last) ** power - np.abs(mean) ** power


@pytest.mark.parametrize(("steps", "power", "statistic", "p_value"), FROM_R)
def test_equals_r(steps, power, statistic, p_value):
    test = diebold_mariano(nile_losses(steps, power), steps)
    assert test.mean / test.error == pytest.approx(statistic, rel=1e-9)
    assert test.p_value == pytest.approx(p_value, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_equals_a_regression_on_a_constant_with_robust_errors(steps):
    """Compared with statsmodels, which has Diebold and Mariano's variance but no correction."""
    rng = np.random.default_rng(steps)
    noise = rng.normal(size=400)
    values = np.convolve(noise, np.ones(steps), "valid") + 0.2
    count = len(values)
    robust = {"maxlags": steps - 1, "kernel": "uniform", "use_correction": False}
    fitted = sm.OLS(values, np.ones(count)).fit(cov_type="HAC", cov_kwds=robust, use_t=True)
    test = diebold_mariano(values, steps)
    corrected = (count + 1 - 2 * steps + steps * (steps - 1) / count) / count
    assert test.mean == pytest.approx(fitted.params[0])
    assert test.error * corrected**0.5 == pytest.approx(fitted.bse[0], rel=1e-9)


def test_few_windows_count_their_lowest_waves():
    """Compared with the definition of Lazarus et al. (2018) in plain loops."""
    rng = np.random.default_rng(3)
    steps, count = 6, 60
    values = np.convolve(rng.normal(size=count + steps - 1), np.ones(steps), "valid")
    waves = count // (2 * steps)
    power = 0.0
    for wave in range(1, waves + 1):
        cosine = sum(values[t] * np.cos(np.pi * wave * (t + 0.5) / count) for t in range(count))
        power += (np.sqrt(2 / count) * cosine) ** 2 / waves
    test = diebold_mariano(values, steps)
    assert test.degrees == waves == 5
    assert test.error == pytest.approx(np.sqrt(power / count), rel=1e-9)


def test_too_few_windows_say_nothing():
    assert diebold_mariano(np.arange(17.0), 6) is None
    assert diebold_mariano(np.arange(18.0), 6) is not None


def test_a_variance_below_zero_is_replaced():
    steps = 2
    values = np.tile([1.0, -1.0], 40) + 0.01
    centred = values - values.mean()
    assert centred @ centred + 2 * centred[1:] @ centred[:-1] < 0
    test = diebold_mariano(values, steps)
    assert len(values) >= MANY_WINDOWS * steps
    assert test.degrees == 20
    assert 0 < test.p_value < 1


@pytest.mark.parametrize("steps", [1, 7])
def test_no_difference_and_the_same_difference_everywhere(steps):
    same, higher = (diebold_mariano(np.full(200, value), steps) for value in (0.0, 0.5))
    assert (same.p_value, same.interval()) == (1.0, (0.0, 0.0))
    assert higher.p_value < 1e-9


def test_the_interval_holds_zero_where_the_test_does_not_reject():
    rng = np.random.default_rng(5)
    for _ in range(50):
        test = diebold_mariano(rng.normal(0.1, 1, 90), 3)
        low, high = test.interval()
        assert (low <= 0 <= high) == (test.p_value >= 0.05)


@pytest.mark.parametrize(("steps", "windows"), [(1, 20), (1, 200), (12, 36), (12, 120), (12, 480)])
def test_holds_its_level(steps, windows):
    """Two equally good forecasters whose windows share what cannot be known."""
    rng = np.random.default_rng((steps, windows))
    tries, rejected = 600, 0
    for _ in range(tries):
        truth, *own = rng.normal(size=(3, windows + steps - 1))
        losses = ((truth + one / 2) ** 2 for one in own)
        by_window = (np.convolve(loss, np.ones(steps), "valid") for loss in losses)
        first, second = by_window
        rejected += diebold_mariano(first - second, steps).p_value < 0.05
    assert 0.02 < rejected / tries < 0.095


def test_finds_a_worse_forecaster():
    rng = np.random.default_rng(0)
    truth, one, other = rng.normal(size=(3, 600))
    losses = (truth + 0.2 * one) ** 2 - (truth + 1.0 * other) ** 2
    test = diebold_mariano(np.convolve(losses, np.ones(12), "valid"), 12)
    assert test.mean < 0
    assert test.p_value < 1e-6
