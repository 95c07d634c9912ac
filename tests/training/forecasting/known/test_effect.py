"""What known inputs add to a series, against an independent calculation."""

import json

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.preprocessing.operations import tensors
from gru_training.forecasting.known import KnownEffect, fit_effect, knots_of
from gru_training.forecasting.preprocessor import SeriesPreprocessor

SEASON, HORIZON = 12, 6


def by_hand(inputs, knots, coefficients, pairs):
    """The sum of all features, one at a time."""
    inputs = np.clip(inputs, -4, 4)
    made = []
    for number, of in enumerate(knots):
        x = inputs[..., number]
        made.append([x, *(np.where(x > knot, x - knot, 0) for knot in of)])
    found = [feature for base in made for feature in base]
    if pairs:
        for i in range(len(made)):
            for j in range(i + 1, len(made)):
                found += [made[i][0] * feature for feature in made[j]]
                found += [made[j][0] * feature for feature in made[i][1:]]
    return sum(f[..., np.newaxis] * c for f, c in zip(found, coefficients, strict=True))


@pytest.mark.parametrize("pairs", [False, True])
def test_it_is_a_sum_of_piecewise_linear_functions(pairs):
    rng = np.random.default_rng(3)
    knots = [(-0.5, 0.75), (), (0.1,)]
    count = 6 + (3 + 4 + 2) * pairs
    coefficients = rng.normal(size=(count, 2))
    inputs = rng.normal(scale=3, size=(4, 5, 3))  # some beyond four deviations
    effect = KnownEffect((1, 2, 5), knots, coefficients, pairs)
    answer = effect(inputs)
    np.testing.assert_allclose(effect.effect.of(tf.constant(inputs), tensors()), answer, atol=1e-12)
    np.testing.assert_allclose(answer, by_hand(inputs, knots, coefficients, pairs), atol=1e-12)
    again = KnownEffect.from_json(json.loads(json.dumps(effect.to_json())))
    np.testing.assert_array_equal(again(inputs), answer)
    assert again.columns == (1, 2, 5)


def test_coefficients_of_another_number_are_refused():
    with pytest.raises(ValueError, match=r"coefficients of 3 features, got 1 and 2"):
        KnownEffect((0,), [(0.0, 1.0)], np.zeros((2, 1)), False)


def test_functions_bend_between_the_values_that_there_are():
    assert knots_of(np.array([0.0, 1.0, 1.0])) == ()
    assert knots_of(np.array([0.0, 2.0, 5.0, 2.0])) == (2.0,)
    many = knots_of(np.random.default_rng(0).normal(size=1000))
    assert len(many) == 7
    assert list(many) == sorted(many)


def wandering(rows=900, seed=0):
    """A season on a level that wanders, and two inputs; (rows,), (rows, 2)."""
    rng = np.random.default_rng(seed)
    level = np.cumsum(rng.normal(scale=0.15, size=rows))
    season = np.sin(2 * np.pi * np.arange(rows) / SEASON)
    temperature = np.convolve(rng.normal(size=rows + 4), np.ones(5) / 5**0.5, "valid")
    promoted = (rng.random(rows) < 0.2).astype(float)
    return level + season, np.column_stack([temperature, promoted])


def test_a_bent_effect_is_found_under_a_level_that_wanders():
    rest, inputs = wandering()
    true = 1.5 * np.maximum(inputs[:, 0] - 0.3, 0) + 0.8 * inputs[:, 1]
    series = rest + true
    series[100:110] = np.nan
    effect, errors = fit_effect(series[:, np.newaxis], inputs, (1, 2), 700, SEASON, HORIZON)
    assert effect is not None
    assert effect.columns == (1, 2)
    found = effect(inputs)[:, 0]
    found -= found.mean() - true.mean()  # a constant is no effect
    assert np.sqrt(((found - true) ** 2).mean()) < 0.12 * true.std()
    assert errors[1] < 0.7 * errors[0]


def test_an_effect_of_two_inputs_together_is_found():
    rest, inputs = wandering(seed=1)
    true = 2 * inputs[:, 0] * inputs[:, 1]
    effect, _ = fit_effect((rest + true)[:, np.newaxis], inputs, (0, 1), 700, SEASON, HORIZON)
    assert effect is not None
    assert effect.pairs
    found = effect(inputs)[:, 0]
    assert np.corrcoef(found, true)[0, 1] > 0.98


def test_inputs_that_tell_nothing_are_left_out():
    rest, inputs = wandering()
    effect, errors = fit_effect(rest[:, np.newaxis], inputs, (1, 2), 700, SEASON, HORIZON)
    assert effect is None
    assert errors[0] == errors[1]


def test_each_target_has_an_effect_of_its_own():
    first, inputs = wandering(seed=2)
    second, _ = wandering(seed=3)
    true = np.column_stack([2 * inputs[:, 0], -3 * inputs[:, 1]])
    series = np.column_stack([first, second]) + true
    series[:300, 1] = np.nan  # begins late
    effect, _ = fit_effect(series, inputs, (2, 3), 700, SEASON, HORIZON)
    assert effect is not None
    found = effect(inputs)
    for k in range(2):
        assert np.corrcoef(found[:, k], true[:, k])[0, 1] > 0.99


def test_a_preprocessor_takes_it_off_and_puts_it_on_again(tmp_path):
    rng = np.random.default_rng(4)
    rows = rng.normal(5, 2, (50, 3))
    effect = KnownEffect((2,), [(0.2,)], np.array([[1.0], [-2.0]]), False)
    whole = SeriesPreprocessor.fit(rows, (1,)).with_known(effect)
    whole.save(tmp_path / "scaler.json")
    preprocessor = SeriesPreprocessor.load(tmp_path / "scaler.json")
    assert preprocessor.future_columns == (2,)
    history = rows[:20].astype(np.float32)[np.newaxis]
    history[0, 3, 2] = np.nan
    future = rows[20:26, 2:].astype(np.float32)[np.newaxis]
    future[0, 0] = np.nan  # as in the last step known

    scaled = (rows - rows.mean(0)) / rows.std(0)
    x = scaled[:, 2].copy()
    x[3], x[20] = x[2], x[19]
    added = x - 2 * np.maximum(x - 0.2, 0)
    read = preprocessor.standardise(history).numpy()[0]
    np.testing.assert_allclose(read[:, 1], scaled[:20, 1] - added[:20], atol=1e-5)
    np.testing.assert_allclose(read[:, 2], x[:20], atol=1e-5)
    np.testing.assert_allclose(read[:, 0], scaled[:20, 0], atol=1e-5)

    effects = preprocessor.effects(history, future)
    np.testing.assert_allclose(effects.numpy()[0, :, 0], added[20:26], atol=1e-5)
    forecast = np.zeros((1, 6, 1, 5), np.float32)
    restored = preprocessor.restore(forecast, effects).numpy()[0, :, 0]
    expected = rows[:, 1].mean() + rows[:, 1].std() * added[20:26]
    np.testing.assert_allclose(restored, np.tile(expected[:, np.newaxis], 5), rtol=1e-5)
