"""Nothing of TensorFlow reaches the terminal."""

import os
import subprocess
import sys

import pytest

from gru_training.quiet import quiet

FITS = """
import numpy as np
from gru_training import TextClassifier

texts = [f"{word} number {row}" for row in range(20) for word in ("good", "bad")]
labels = ["yes", "no"] * 20
for seed in range(2):
    settings = {"epochs": 1, "units": 3, "embedding_size": 4, "seed": seed}
    fitted = TextClassifier(runs_dir=FOLDER, name=f"run{seed}", **settings).fit(texts, labels)
    fitted.predict(texts[:3])

import keras
import keras_gru

x = np.zeros((4, 9, 3), "float32")
model = keras.Sequential([keras.Input((None, 3)), keras_gru.GRU(5), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, x[:, 0, :1], verbose=0)
"""


@pytest.mark.slow
def test_fits_answers_and_the_layer_print_nothing(tmp_path):
    kept = ("TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES", "PYTHONWARNINGS")
    done = subprocess.run(
        [sys.executable, "-c", FITS.replace("FOLDER", repr(str(tmp_path)))],
        env={name: value for name, value in os.environ.items() if name not in kept},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


LINES = """
E0000 00:00:1795890381.461744   28364 cuda_platform.cc:52] failed call to cuInit
2026-11-28 18:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow
"""


def test_lines_of_others_are_passed_on(capfd):
    with quiet():
        os.write(2, LINES.lstrip().encode() + b"a line of the user's thread\n")
        assert capfd.readouterr().err == ""
    assert capfd.readouterr().err == "a line of the user's thread\n"


def test_on_failure_everything_is_shown(capfd):
    def load():
        os.write(2, LINES.lstrip().encode())
        raise ImportError

    with pytest.raises(ImportError), quiet():
        load()
    assert capfd.readouterr().err == LINES.lstrip()


def test_the_users_own_level_stays(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    with quiet():
        pass
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
