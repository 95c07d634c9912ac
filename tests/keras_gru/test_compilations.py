"""`python -m keras_gru compilations` counts what XLA really compiles."""

import os
import subprocess
import sys

import pytest

from keras_gru.compilations import Compilation, summary

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
    flags = f"--tf_xla_persistent_cache_directory={tmp_path / 'programs'}"
    for kept in (False, True):
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "TF_XLA_FLAGS": flags},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 3
        assert done.stdout == "trained --epochs 2\n"
        assert "a complaint\n" in done.stderr
        head, *rows, total = done.stderr.splitlines()[-5:]
        assert head.split() == ["compiled", "by", "XLA", "rows", "steps", "features", "units", "s"]
        assert [row[:18].strip() for row in rows] == [
            *("GRU, forward", "GRU, backward", "other functions")
        ]
        # The three lengths are in one capacity, and the inputs projected before.
        assert [row[18:48].split() for row in rows] == [["2", "128", "3"], ["2", "128", "3"], []]
        assert all(("kept by an earlier process" in row) is kept for row in rows)
        seconds = [float(row[48:56]) for row in rows]
        assert total.split()[:3] == ["together", "3", "programs"]
        assert float(total.split()[-1]) == pytest.approx(sum(seconds), abs=0.02)
        assert total.split()[-1] != "0.00"


def test_what_is_advised_follows_from_what_was_compiled():
    def compiled(rows, steps):
        return Compilation("forward", 0.5, ((rows, steps, 32), (rows, 64)))

    few = [compiled(16, 128), compiled(16, 256), compiled(10, 128)]
    assert summary(few).splitlines()[-1].split() == ["together", "3", "programs", "1.50"]
    rows = summary([compiled(size, 128) for size in (8, 10, 12, 14)])
    assert "drop_remainder" in rows
    assert "similar length" not in rows
    assert "keep_programs" in rows
    steps = summary([compiled(8, size) for size in (128, 256, 512, 768)])
    assert "drop_remainder" not in steps
    assert "similar length" in steps
    kept = summary([compiled(8, size)._replace(kept=True) for size in (128, 256, 512, 768)])
    assert "keep_programs" not in kept
