"""Small runs that answer several labels, and numbers."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd

from gru_training.sentiment.config import SentimentDataConfig
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.run import SentimentRun
from tests.made_once import made_once
from tests.training.conftest import tiny_config

WORDS = {
    "billing": "invoice charged refund card",
    "bug": "crash error broken freezes",
    "delivery": "parcel late courier lost",
}
FILL = ["the", "my", "please", "is", "was", "again", "today", "order"]


def text(rng, words, number):
    drawn = [*words, *rng.choice(FILL, 3), f"n{number}"]
    return " ".join(rng.permutation(drawn))


def labelled(rows=240, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for number in range(rows):
        names = sorted(rng.choice(list(WORDS), rng.integers(0, 3), replace=False))
        words = [word for name in names for word in rng.choice(WORDS[name].split(), 2)]
        made.append({"text": text(rng, words, number), "label": [str(name) for name in names]})
    return made


def rated(rows=240, seed=0):
    rng = np.random.default_rng(seed)
    stars = rng.integers(1, 6, rows)
    texts = [text(rng, ["good"] * n + ["bad"] * (5 - n), i) for i, n in enumerate(stars)]
    return pd.DataFrame({"text": texts, "stars": 10.0 * stars})


def config(folder, name, data, **further):
    made = replace(tiny_config(folder, name), data=data)
    training = replace(made.training, epochs=3, batch_size=16, learning_rate=0.02)
    return replace(made, training=replace(training, **further.pop("training", {})), **further)


def train_labels(folder):
    path = folder / "tickets.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in labelled()))
    return train_sentiment(config(folder, "labels", SentimentDataConfig(data=path)))


def train_number(folder):
    rated().to_csv(folder / "stars.csv", index=False)
    data = SentimentDataConfig(
        data=folder / "stars.csv", label_column="stars", target_type="number"
    )
    return train_sentiment(config(folder, "number", data))


TRAINED = {"labels": train_labels, "number": train_number}


def target_run(name):
    """The run of `train_labels` or `train_number`, which is made once."""
    return SentimentRun.open(made_once(f"target_{name}", TRAINED[name]) / name)
