"""Fits of small data in one process, beside Keras' own `fit` of the same network.

    python -m benchmarks.fits_in_a_row
    python -m benchmarks.fits_in_a_row --fits 8 --rows 120

Each fit has data of its own. "TextClassifier" is `TextClassifier(epochs=1).fit`: reading, words,
training, n-gram regression, report. "Keras" builds the same network with `keras.layers.GRU`,
compiles it and fits it for as many steps of as many rows, validation included. They take turns in
one process; the first of each is left out. Processor seconds of all threads, medians.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

WORDS, LEAST, MOST = 300, 5, 40
SHARES = (0.7, 0.15)
"""Of the rows for training and validation."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fits_in_a_row",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--fits", type=int, default=6, help="of each, the first included")
    parser.add_argument("--rows", type=int, default=120)
    arguments = parser.parse_args(argv)
    kinds = {"TextClassifier": _classifier, "Keras": _keras}
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(arguments.fits):
        for name, fit in kinds.items():
            seconds[name].append(_processor_seconds(fit, number, arguments.rows))
    print("| | first fit (s) | later fits (s) |\n|---|---:|---:|")
    later = {name: statistics.median(each[1:]) for name, each in seconds.items()}
    for name, each in seconds.items():
        print(f"| {name} | {each[0]:.2f} | {later[name]:.2f} |")
    print(f"\nlater fits: {later['TextClassifier'] / later['Keras']:.2f} × Keras")
    return 0


def _processor_seconds(fit: Callable[[int, int], None], number: int, rows: int) -> float:
    begin = time.process_time()
    fit(number, rows)
    return time.process_time() - begin


def _texts(number: int, rows: int) -> tuple[list[str], list[str]]:
    """Texts of made-up words, two of which tell the class."""
    rng = np.random.default_rng(number)
    labels = ["good" if row % 2 else "bad" for row in range(rows)]
    texts = []
    for label in labels:
        words = [f"w{word}" for word in rng.integers(0, WORDS, rng.integers(LEAST, MOST))]
        texts.append(" ".join([*words, f"{label}{rng.integers(3)}"]))
    return texts, labels


def _classifier(number: int, rows: int) -> None:
    from gru_training import TextClassifier

    with tempfile.TemporaryDirectory() as folder:
        TextClassifier(epochs=1, runs_dir=Path(folder)).fit(*_texts(number, rows))


def _keras(number: int, rows: int) -> None:
    import keras

    rng = np.random.default_rng(number)
    train, validation = (round(share * rows) for share in SHARES)
    ids = rng.integers(1, WORDS, (train + validation, MOST)).astype("int32")
    labels = rng.integers(0, 2, len(ids))
    token_ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(WORDS + number, 64, mask_zero=True)(token_ids)
    x = keras.layers.Dropout(0.5)(x)
    x = keras.layers.Bidirectional(keras.layers.GRU(64, return_sequences=True))(x)
    x = keras.layers.Dropout(0.5)(keras.ops.max(x, axis=1))
    model = keras.Model(token_ids, keras.layers.Dense(2)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(2e-3, global_clipnorm=1.0), loss, metrics=["accuracy"])
    held_out = ids[train:], labels[train:]
    model.fit(ids[:train], labels[:train], 64, epochs=1, verbose=0, validation_data=held_out)


if __name__ == "__main__":
    sys.exit(main())
