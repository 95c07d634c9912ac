"""Errors of the public functions name the argument."""

import numpy as np
import pytest

from keras_gru import functional
from keras_gru.functional import Convention, Gates
from tests.keras_gru.functional_problem import B, D, T, U, arrays


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros((B, D - 1))}, r"`kernel` must be float64 of shape \(3, 18\).*\(4, 18\)"),
        ({"x": np.zeros((B, D), int)}, r"`x` must hold floating-point numbers.*int64"),
        ({"x": np.float64(1)}, r"`x` must hold floating-point numbers.*\(\)"),
        ({"x": np.zeros((B + 1, D))}, r"`x` and `h` must broadcast.*\(4, 4\) and \(3, 6\)"),
        ({"h": np.zeros((B, U + 1))}, r"`h` must be float64 of shape \(3, 6\).*\(3, 7\)"),
        ({"h": np.zeros((B, U), "float32")}, r"`h` must be float64.*float32"),
        ({"kernel": np.zeros((D, U))}, r"`kernel` must be .* \(4, 18\).*\(4, 6\)"),
        ({"recurrent_kernel": np.zeros((U, U))}, r"`recurrent_kernel` must be .* \(6, 18\)"),
        ({"recurrent_kernel": np.zeros(U)}, r"`recurrent_kernel` must be .*\(6,\)"),
        ({"bias": np.zeros(3 * U)}, r"`bias` must be .* \(2, 18\).*\(18,\)"),
        ({"convention": Convention(False)}, r"`bias` must be .* \(18,\).*\(2, 18\)"),
        ({"layer_norm_gain": np.zeros(3 * U)}, r"`layer_norm_gain` must be .* \(2, 18\)"),
        ({"recurrent_mask": np.ones((B, U))}, r"`recurrent_mask` must be a Gates of 3 masks"),
        (
            {"recurrent_mask": Gates(*np.ones((3, B, 1)))},
            r"`recurrent_mask.z` must be .* \(3, 6\).*\(3, 1\)",
        ),
    ],
)
@pytest.mark.parametrize("function", [functional.step, functional.gates])
def test_errors_of_steps_name_the_argument(function, changes, message):
    values = arrays() | {"x": np.zeros((B, D))} | changes
    with pytest.raises(ValueError, match=message):
        function(**values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros((B, D))}, r"`x` must have shape \(batch, steps, features\).*\(3, 4\)"),
        ({"initial_state": np.zeros((1, U))}, r"`initial_state` must be .* \(3, 6\).*\(1, 6\)"),
        ({"bias": np.zeros(3 * U)}, r"`bias` must be .* \(2, 18\).*\(18,\)"),
        ({"mask": np.ones((B, T))}, r"`mask` must be boolean, of shape \(3, 5\).*float64"),
        ({"mask": np.ones((T, B), bool)}, r"`mask` must be boolean.*\(5, 3\)"),
        ({"zoneout": np.ones((B, U))}, r"`zoneout` must be .* \(3, 5, 6\).*\(3, 6\)"),
        ({"recurrent_mask": Gates(*np.ones((3, U)))}, r"`recurrent_mask.z` must be .*\(6,\)"),
        ({"convention": Convention(activation="gelu")}, r"`convention`.*linear.*gelu"),
        ({"path": "cudnn"}, r"`path` must be 'auto', 'xla' or 'plain'.*'cudnn'"),
    ],
)
def test_errors_of_sequences_name_the_argument(changes, message):
    values = arrays()
    values["initial_state"] = values.pop("h")
    with pytest.raises(ValueError, match=message):
        functional.sequence(**values | changes)
