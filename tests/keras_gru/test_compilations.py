"""`python -m keras_gru compilations` counts what XLA really compiles."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
import numpy as np, tensorflow as tf
from keras_gru import GRU

layer, plain = GRU(3), GRU(3, path="plain")

@tf.function(input_signature=[tf.TensorSpec((2, None, 4))])
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x, training=True)) + tf.reduce_sum(plain(x, training=True))
    return tape.gradient(loss, layer.trainable_variables)

for steps in (5, 9, 30):
    train(tf.ones((2, steps, 4)))
tf.function(lambda x: x * 2, jit_compile=True)(tf.ones(3))
print("trained", *sys.argv[1:])
print("a complaint", file=sys.stderr)
sys.exit(3)
"""


@pytest.mark.slow
def test_lengths_share_a_program_and_other_functions_are_told_apart(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT, "utf-8")
    command = [sys.executable, "-m", "keras_gru", "compilations", "train.py", "--epochs", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stdout == "trained --epochs 2\n"
    assert "a complaint\n" in done.stderr
    table = done.stderr.splitlines()[-5:]
    assert [line[:18].strip() for line in table] == [
        *("compiled by XLA", "GRU, forward", "GRU, backward", "other functions", "together")
    ]
    numbers, seconds = zip(*(line[18:].split() for line in table[1:]), strict=True)
    assert numbers == ("1", "1", "1", "3")
    assert all(float(took) >= 0 for took in seconds)
    assert float(seconds[3]) > 0
