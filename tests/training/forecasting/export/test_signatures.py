"""The signatures in raw units, compared with NumPy and with the Keras model behind them."""

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.engine.portability import portability_faults
from gru_training.forecasting.network import ForecasterSteps
from tests.training.forecasting.export.answering import (
    DEVIATION,
    KINDS,
    MEAN,
    OFFSETS,
    RAW,
    SHAPE,
    STREAMS,
    forecaster_with,
)


@pytest.mark.slow_cases
@pytest.mark.parametrize("options", KINDS)
def test_answers_are_the_models_in_raw_units(options):
    forecaster = forecaster_with(**options)
    standardised = ((RAW - MEAN) / DEVIATION).astype(np.float32)
    answers = forecaster.model(standardised).numpy().astype(np.float64)
    columns = list(SHAPE.targets)
    served = answers + OFFSETS
    forecast = served[..., 2]
    for q in (0, 1):
        served[..., q] = np.minimum(served[..., q], forecast)
        served[..., 4 - q] = np.maximum(served[..., 4 - q], forecast)
    served[..., 0] = served[..., :2].min(axis=-1)  # the outer interval contains the inner one
    served[..., 4] = served[..., 3:].max(axis=-1)
    raw = served * DEVIATION[columns, None] + MEAN[columns, None]
    got = forecaster.ask(RAW)
    assert got["quantiles"].dtype == got["forecast"].dtype == np.float32
    np.testing.assert_allclose(got["quantiles"], raw, rtol=2e-6, atol=2e-4)
    np.testing.assert_array_equal(got["forecast"], got["quantiles"][..., 2])


def test_missing_values_count_as_the_last_seen_and_older_steps_are_not_read():
    forecaster = forecaster_with()
    holed, filled = RAW.copy(), RAW.copy()
    holed[0, 3:6, 0] = np.nan
    filled[0, 3:6, 0] = RAW[0, 2, 0]
    holed[1, :2, 2] = np.nan
    filled[1, :2, 2] = RAW[1, 2, 2]
    np.testing.assert_array_equal(
        forecaster.ask(holed)["quantiles"], forecaster.ask(filled)["quantiles"]
    )
    older = np.concatenate([RAW[:, :4] * 3, holed], axis=1)
    np.testing.assert_array_equal(
        forecaster.ask(older)["forecast"], forecaster.ask(holed)["forecast"]
    )


def test_bad_histories_are_refused_with_what_is_needed():
    forecaster = forecaster_with()
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="history: expected at least 12 steps, got 11"
    ):
        forecaster.ask(RAW[:, 1:])
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least 12 steps, got 0"):
        forecaster.ask(RAW[:, :0])
    empty = RAW.copy()
    empty[2, :, 2] = np.nan
    message = "history: row 2 has no value of column price in the steps read, the last 12"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        forecaster.ask(empty)
    long = np.concatenate([RAW, empty], axis=1)  # the values come before the steps that are read
    with pytest.raises(tf.errors.InvalidArgumentError, match="row 2"):
        forecaster.ask(long)
    unread = RAW.copy()
    unread[:, :, 1] = np.nan  # an input column that an independent network does not read
    np.testing.assert_array_equal(
        forecaster.ask(unread)["forecast"], forecaster.ask(RAW)["forecast"]
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="no value of column wind"):
        forecaster_with(channel_independent=False).ask(unread)
    infinite = RAW.copy()
    infinite[0, 0, 1] = np.inf
    with pytest.raises(tf.errors.InvalidArgumentError, match="got infinity"):
        forecaster.ask(infinite)


def test_a_row_does_not_depend_on_its_neighbours():
    forecaster = forecaster_with()
    holed = RAW.copy()
    holed[1, 4:, 0] = np.nan
    alone = [forecaster.ask(holed[i : i + 1])["quantiles"][0] for i in range(4)]
    np.testing.assert_allclose(forecaster.ask(holed)["quantiles"], alone, rtol=1e-6)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "options",
    [
        {"normalisation": normalisation, "channel_independent": independent}
        for normalisation in ("none", "difference")
        for independent in (True, False)
    ]
    + [{"normalisation": "difference", "layers": 3}],
    ids=str,
)
def test_steps_equal_the_sequence_on_the_same_ticks(options):
    forecaster = forecaster_with(architecture="one_shot", **options)
    ticks = np.concatenate([RAW, RAW[:, ::-1] + 1], axis=1)  # more than the look-back
    ticks[0, 4:7, 0] = np.nan
    ticks[1, -1] = np.nan
    steps = forecaster.stream(ticks)
    for t, step in enumerate(steps):
        whole = forecaster.ask(ticks[:, : t + 1])
        np.testing.assert_allclose(step["quantiles"], whole["quantiles"], rtol=1e-6)
    # At the look-back the Keras model itself answers.
    read = forecaster.preprocessor.standardise(ticks[:, :12])
    answer = forecaster.preprocessor.restore(forecaster.model(read))[..., 0]
    np.testing.assert_allclose(steps[11]["forecast"], answer, rtol=1e-6)


def test_a_stream_of_differences_waits_for_the_first_value():
    forecaster = forecaster_with(**STREAMS)
    late = RAW.copy()
    late[:, :3, 0] = np.nan
    whole = forecaster.ask(late)["quantiles"]
    np.testing.assert_allclose(forecaster.stream(late)[-1]["quantiles"], whole, rtol=1e-6)


def by_name(forecaster, history, columns):
    names = tf.constant([columns] * len(history))
    answer = forecaster.signatures["by_name"](history=tf.constant(history), columns=names)
    return {name: value.numpy() for name, value in answer.items()}


def test_columns_are_found_by_their_names_in_any_order():
    forecaster = forecaster_with()
    wanted = forecaster.ask(RAW)
    extra = np.full((*RAW.shape[:2], 1), np.inf, np.float32)
    turned = np.concatenate([RAW[..., [2, 1]], extra, RAW[..., [0]]], axis=-1)
    for name, value in by_name(forecaster, turned, ["price", "wind", "rain", "load"]).items():
        np.testing.assert_array_equal(value, wanted[name])
    # Which of the rows has which order is its own affair.
    mixed = np.stack([RAW[0], RAW[1][:, [1, 2, 0]]])
    names = tf.constant([["load", "wind", "price"], ["wind", "price", "load"]])
    answer = forecaster.signatures["by_name"](history=tf.constant(mixed), columns=names)
    np.testing.assert_allclose(answer["forecast"], wanted["forecast"][:2], rtol=1e-6)


def test_a_column_that_is_not_read_may_be_missing_and_no_other():
    forecaster = forecaster_with()  # forecasts price and load, each from its own past
    few = by_name(forecaster, RAW[..., [0, 2]], ["load", "price"])
    np.testing.assert_array_equal(few["forecast"], forecaster.ask(RAW)["forecast"])
    errors = tf.errors.InvalidArgumentError
    missing = r"columns: row 0 has no column price; expected load, price, got load, wind"
    with pytest.raises(errors, match=missing):
        by_name(forecaster, RAW[..., :2], ["load", "wind"])
    with pytest.raises(errors, match="has no column wind"):
        by_name(forecaster_with(channel_independent=False), RAW[..., [0, 2]], ["load", "price"])
    with pytest.raises(errors, match="expected each name once, got load again"):
        by_name(forecaster, RAW, ["load", "load", "price"])
    with pytest.raises(errors, match="a name for each of the 3 columns of history, got 2"):
        by_name(forecaster, RAW, ["load", "price"])


def test_a_model_says_where_its_columns_stand():
    told = forecaster_with().signatures["columns"](names=tf.constant([["price", "rain", "load"]]))
    assert told["columns"].numpy().tolist() == [[b"load", b"wind", b"price"]]
    assert told["forecast_columns"].numpy().tolist() == [[b"price", b"load"]]
    assert told["place"].numpy().tolist() == [[2, -1, 0]]
    assert told["needed"].numpy().tolist() == [[1, 0, 1]]


@pytest.mark.slow
def test_which_models_have_which_signatures():
    every = {"serving_default", "by_name", "columns"}
    assert set(forecaster_with().signatures) == every | {"gates"}
    assert set(forecaster_with(**STREAMS).signatures) == every | {"gates", "step"}
    quantile = forecaster_with(**STREAMS, loss="quantile")
    assert quantile.signatures["gates"](history=tf.constant(RAW))["forecast"].shape == (4, 12, 5, 2)
    steps = ForecasterSteps(quantile.model, quantile.config, SHAPE)
    assert quantile.module.state_size == steps.state_size == 2 * 6 + 2 * 3


@pytest.mark.slow_cases
@pytest.mark.parametrize("options", KINDS)
def test_exports_are_portable_and_answer_alike(tmp_path, options):
    forecaster = forecaster_with(**options)
    tf.saved_model.save(forecaster.module, str(tmp_path), signatures=forecaster.signatures)
    assert portability_faults(tmp_path) == []
    loaded = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    many = np.concatenate([RAW, RAW + 1] * 8)  # 64 rows: the product of so many needs its memory
    for name, value in forecaster.ask(many).items():
        np.testing.assert_allclose(loaded(history=tf.constant(many))[name], value, rtol=1e-6)
        np.testing.assert_allclose(value[:4], forecaster.ask(RAW)[name], rtol=2e-6, atol=2e-4)
