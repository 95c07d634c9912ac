"""The files, runs and exports that the how-to guides speak of, tiny.

`docs/sphinx/pages/how_to.md` says what they are. All processes of a test run share them.
"""

import shutil

import numpy as np
import pandas as pd

from gru_serving.__main__ import main as gru_serve
from gru_training.__main__ import main as gru_train

WORDS = {
    "billing": "charged refund invoice card twice",
    "bug": "crashes app error screen freezes",
    "delivery": "parcel courier late lost box",
}
_TRAIN = """import numpy as np
import tensorflow as tf

from keras_gru import GRU

layer = GRU(4)
tf.function(layer)(np.zeros((2, 5, 3), "float32"))
"""
CLASSIFIER = ["--epochs", "1", "--units", "4", "--set", "embedding_size=4", "--no-bidirectional"]
FORECASTER = ["--epochs", "1", "--units", "4"]


def make(folder):
    """Everything in a folder that exists; the working directory must be that folder."""
    (folder / "train.py").write_text(_TRAIN)
    _write_texts(folder)
    _write_series(folder)
    train = ["sentiment", "--data", "tickets.csv", *CLASSIFIER]
    _done(gru_train([*train, "--name", "tickets"]))
    _done(gru_train([*train, "--name", "tickets-forward", "--no-bidirectional"]))
    series = ["forecasting", "--data", "load.csv", "--target", "load", "--horizon", "24"]
    _done(gru_train([*series, "--name", "load", *FORECASTER]))
    _done(gru_serve(["export", "runs/tickets", "--to", "models/tickets"]))
    _done(gru_serve(["export", "runs/load", "--to", "models/load"]))
    shutil.copytree("models/tickets/1", "staging/tickets/1")


def tickets(rows, seed):
    """Texts of three classes; each is recognised by its words."""
    rng = np.random.default_rng(seed)
    names = list(WORDS)
    labels = [names[0 if n % 10 < 5 else 1 if n % 10 < 8 else 2] for n in range(rows)]
    texts = [
        f"{' '.join(rng.choice(WORDS[label].split(), 4))} no {seed}{number}"
        for number, label in enumerate(labels)
    ]
    return pd.DataFrame(
        {
            "text": texts,
            "label": labels,
            "customer": [f"c{n}" for n in rng.integers(40, size=rows)],
            "created": pd.date_range("2024-01-01", periods=rows).strftime("%Y-%m-%d"),
        }
    )


def _write_texts(folder):
    table = tickets(200, seed=1)
    table.to_csv(folder / "tickets.csv", index=False)
    for seed, name in enumerate(("may", "june", "july", "corrected"), 2):
        tickets(40, seed).to_csv(folder / f"{name}.csv", index=False)
    both = table["label"].where(np.arange(len(table)) % 3 > 0, table["label"] + ";urgent")
    table.assign(label=both).to_csv(folder / "mails.csv", index=False)
    urgent = (np.arange(len(table)) % 3 == 0).astype(int)
    billing = (table["label"] == "billing").astype(int)
    table.assign(urgent=urgent, billing=billing).drop(columns="label").to_csv(
        folder / "flags.csv", index=False
    )
    stars = table["label"].map({"billing": 1, "bug": 3, "delivery": 5}) + urgent
    reviews = table.assign(stars=stars).drop(columns="label")
    reviews.to_csv(folder / "reviews.csv", index=False)
    (folder / "costs.json").write_text('{"bug": {"billing": 50}}')
    more = tickets(80, seed=9)["text"]
    (folder / "more_texts.txt").write_text("".join(f"{text}\n" for text in more))
    rng = np.random.default_rng(0)
    words = sorted({word for text in table["text"] for word in text.split()})
    vectors = [f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=5))}\n" for word in words]
    (folder / "glove.txt").write_text("".join(vectors))


def _write_series(folder):
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-03-04", periods=30 * 24 + 24, freq="h")
    hour = np.arange(len(times))
    temperature = 10 + 8 * np.sin(2 * np.pi * hour / 24) + np.cumsum(rng.normal(0, 0.1, len(hour)))
    price = 40 + 10 * rng.random(len(hour))
    load = 500 + 60 * np.sin(2 * np.pi * (hour - 6) / 24) + 5 * temperature
    table = pd.DataFrame(
        {"time": times, "load": load + rng.normal(0, 5, len(hour)), "temperature": temperature,
         "price": price}
    )  # fmt: skip
    known = table.copy()
    known.loc[known.index[-24:], "load"] = np.nan
    table[:-48].to_csv(folder / "load.csv", index=False)
    known.to_csv(folder / "load-until-today.csv", index=False)
    table[-48:-24].drop(columns="load").to_csv(folder / "weather-forecast.csv", index=False)
    days = pd.date_range("2024-01-01", periods=127)
    sales = []
    for number in range(4):
        promo = (rng.random(len(days)) < 0.2).astype(int)
        week = 1 + 0.4 * np.sin(2 * np.pi * np.arange(len(days)) / 7)
        sales.append(
            pd.DataFrame(
                {
                    "unique_id": f"P{number}",
                    "ds": days,
                    "y": rng.poisson(8 * (1 + number) * week * (1 + promo)),
                    "promo": promo,
                    "price": 4.0 + number - promo,
                }
            )
        )
    table = pd.concat(sales, ignore_index=True)
    first = days[-7]
    table[table["ds"] < first].to_csv(folder / "sales.csv", index=False)
    table[table["ds"] >= first].drop(columns="y").to_csv(folder / "plans.csv", index=False)


def _done(status):
    if status:
        raise AssertionError(f"a command of the materials ended with {status}")
