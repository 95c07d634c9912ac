"""Keras' own check of a layer's contract (build, config, shapes, fit, dtypes), per option."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from keras.src.testing import TestCase

from keras_gru import GRU

OPTIONS = [
    ({}, 3),
    ({"reset_after": False, "use_bias": False}, 2),
    ({"update_gate": "replace", "dropout": 0.2, "recurrent_dropout": 0.3}, 3),
    ({"zoneout": 0.2, "dropconnect": 0.2}, 3),
    ({"layer_norm": True}, 4),
    ({"learn_initial_state": True}, 4),
    ({"activation": "softsign", "return_sequences": True}, 3),
    ({"unroll": True, "go_backwards": True}, 3),
]


@pytest.mark.slow_cases
@pytest.mark.parametrize(("options", "weights"), OPTIONS, ids=str)
def test_run_layer_test(options, weights):
    shape = (2, 3, 4) if options.get("return_sequences") else (2, 4)
    with warnings.catch_warnings():
        # run_layer_test feeds fit() from a generator, which Keras itself warns about.
        warnings.filterwarnings("ignore", message="`shuffle=True` was passed")
        TestCase().run_layer_test(
            GRU,
            init_kwargs={"units": 4, **options},
            input_shape=(2, 3, 5),
            call_kwargs={"training": True},
            expected_output_shape=shape,
            expected_num_trainable_weights=weights,
            expected_num_non_trainable_weights=0,
            expected_num_seed_generators=1,
            supports_masking=True,
        )


def test_another_backend_is_refused():
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-c", "import keras_gru"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "ImportError: keras_gru needs Keras' TensorFlow backend" in done.stderr
    assert "got 'torch'" in done.stderr
