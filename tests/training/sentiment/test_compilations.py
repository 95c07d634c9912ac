"""Texts of any length share the programs that XLA compiles."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
TRAIN = """
import sys
from gru_training.__main__ import main

sys.exit(main(sys.argv[1:]))
"""
MOST = 12
"""There were 9."""


def write_texts(path, rows):
    """Of 1 to 300 words, drawn evenly, so that hardly two batches are of the same length."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for row in range(rows):
            words = [f"w{n}" for n in rng.integers(0, 50, rng.integers(1, 300))]
            writer.writerow([" ".join([f"row{row}", *words]), ("no", "yes")[row % 2]])


@pytest.mark.long
def test_random_lengths_are_compiled_for_a_few_times(tmp_path):
    write_texts(tmp_path / "texts.csv", 700)
    (tmp_path / "train.py").write_text(TRAIN, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "keras_gru", "compilations", tmp_path / "train.py", "sentiment",
         "--data", tmp_path / "texts.csv", "--runs-dir", tmp_path, "--name", "run",
         "--no-ngrams", "--epochs", "3", "--units", "8", "--set", "embedding_size=8",
         "--batch-size", "16"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = {line[:18].strip(): line[18:].split() for line in done.stderr.splitlines()[-5:]}
    assert int(table["together"][0]) <= MOST, done.stderr
