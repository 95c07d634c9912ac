import numpy as np
import pytest

from gru_training.forecasting.intervals import LEVELS
from gru_training.forecasting.losses import forecast_loss, point_metrics


def case(outputs, missing, seed=0):
    rng = np.random.default_rng(seed)
    targets = 1.5 * rng.normal(size=(5, 4, 3))
    if missing:
        targets[rng.random(targets.shape) < 0.4] = np.nan
        targets[2] = np.nan
    return targets.astype(np.float32), rng.normal(size=(5, 4, 3, outputs)).astype(np.float32)


def by_hand(kind, targets, answers):
    rows = []
    for truth, answer in zip(targets.astype(float), answers.astype(float), strict=True):
        cells = []
        for place in np.ndindex(truth.shape):
            if np.isnan(truth[place]):
                continue
            r = truth[place] - answer[place]
            if kind == "quantile":
                cells.append(np.mean([p * e if e > 0 else (p - 1) * e
                                      for p, e in zip(LEVELS, r, strict=True)]))  # fmt: skip
            elif kind == "huber":
                cells.append(r[0] ** 2 / 2 if abs(r[0]) <= 1 else abs(r[0]) - 0.5)
            else:
                cells.append(r[0] ** 2 if kind == "mse" else abs(r[0]))
        rows.append(np.mean(cells) if cells else 0.0)
    return rows


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["mse", "mae", "huber", "quantile"])
def test_losses_are_means_over_what_is_there(kind, missing):
    targets, answers = case(len(LEVELS) if kind == "quantile" else 1, missing)
    loss = forecast_loss(kind, LEVELS)(targets, answers)
    np.testing.assert_allclose(loss, by_hand(kind, targets, answers), rtol=1e-5)


def test_metrics_are_of_the_middle_level():
    targets, answers = case(len(LEVELS), True)
    metrics = point_metrics("quantile", LEVELS)
    middle = answers[..., LEVELS.index(0.5) :][..., :1]
    np.testing.assert_allclose(
        metrics["mse"](targets, answers), by_hand("mse", targets, middle), rtol=1e-5
    )
    np.testing.assert_allclose(
        metrics["mae"](targets, answers), by_hand("mae", targets, middle), rtol=1e-5
    )


@pytest.mark.parametrize("loss", ["mse", "mae", "huber"])
def test_metrics_of_a_forecaster_of_points(loss):
    targets, answers = case(1, True)
    for kind, metric in point_metrics(loss, LEVELS).items():
        np.testing.assert_allclose(
            metric(targets, answers), by_hand(kind, targets, answers), rtol=1e-5
        )


def test_the_pinball_loss_is_least_at_the_quantiles():
    """Gneiting (2011): the quantile minimises the expected pinball loss."""
    truth = np.random.default_rng(3).normal(size=(20_000, 1, 1)).astype(np.float32)
    loss = forecast_loss("quantile", LEVELS)

    def mean(answer):
        return float(np.mean(loss(truth, np.broadcast_to(answer, (20_000, 1, 1, 5)))))

    quantiles = np.quantile(truth, LEVELS).astype(np.float32)
    best = mean(quantiles)
    for q in range(5):
        for shift in (-0.1, 0.1):
            assert mean(quantiles + shift * np.eye(5, dtype=np.float32)[q]) > best
