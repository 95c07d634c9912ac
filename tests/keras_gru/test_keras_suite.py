"""Keras' own recurrent tests, run with our classes instead of Keras'."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FILES = ("gru", "bidirectional", "stacked_rnn_cells", "rnn", "dropout_rnn_cell", "time_distributed")
# It asserts isinstance(layer, keras GRU), for a cuDNN path that the TensorFlow backend never takes.
ASKS_FOR_KERAS_CLASS = "test_fused_gru_eligibility"


@pytest.mark.slow
def test_keras_own_tests_pass_with_our_classes(tmp_path):
    here = Path(__file__).parent
    root = here.parent.parent
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "keras_suite_plugin", "-c", os.devnull),
            *("-p", "no:cacheprovider", "-k", f"not {ASKS_FOR_KERAS_CLASS}", "--pyargs"),
            *(f"keras.src.layers.rnn.{name}_test" for name in FILES),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (here, root)))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    passed = int(re.search(r"(\d+) passed", run.stdout)[1])
    assert passed >= 40, run.stdout[-2000:]
