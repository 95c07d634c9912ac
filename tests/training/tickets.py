"""Made-up tickets of several classes, in files, and tiny runs that learned them."""

import csv
from dataclasses import replace

import numpy as np

from gru_training.sentiment.config import SentimentDataConfig
from gru_training.sentiment.pipeline import train_sentiment
from tests.training.conftest import tiny_config

WORDS = {
    "billing": "invoice charged refund card",
    "bug": "crash error broken freezes",
    "delivery": "parcel late courier lost",
}
NEW_WORDS = {**WORDS, "billing": "voucher iban", "login": "password locked signin code"}
FILL = ["the", "my", "please", "is", "was", "again", "today", "order"]


def tickets(rows, seed, words=WORDS):
    """Texts with their class, all different."""
    rng = np.random.default_rng(seed)
    names = sorted(words)
    made = []
    for number in range(rows):
        name = names[number % len(names)]
        drawn = [*rng.choice(words[name].split(), 2), *rng.choice(FILL, 3), f"{seed}x{number}"]
        made.append((" ".join(rng.permutation(drawn)), name))
    return made


def write(path, rows, head=("text", "label")):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def config(folder, name, data, **model):
    made = replace(tiny_config(folder, name), data=data)
    training = replace(made.training, epochs=3, batch_size=16, learning_rate=0.02)
    # One direction takes half the time to trace.
    settings = {"bidirectional": False, **model}
    return replace(made, training=training, model=replace(made.model, **settings))


def first_run(folder, name="old", data=None, **model):
    """A run on old.csv, which is written."""
    data = data or SentimentDataConfig(data=write(folder / "old.csv", tickets(240, 0)))
    return train_sentiment(config(folder, name, data, **model))
