"""A run that goes on with 10 % new texts, beside a training anew on all: seconds and accuracy.

    python -m benchmarks.continuing --data ../shared/data --sets mr uci --seeds 0 1 2

Each seed deals the texts of a set into training, validation and test rows (80, 10 and 10 %), and
each part into old rows (90 %) and new ones (10 %). One run learns the old rows, with the default
settings; `gru-train continue` goes on from it with the new ones; another run learns all rows anew.
Both are tested on the same rows. All is done in one process, one after the other, so that seconds
compare; "network" is the time to find the network's weights, compiling included, and "in all" also
the n-grams, baselines, figures and the report.

Few test rows tell two accuracies apart badly. So each row has the difference between going on and
training anew on the same test rows with its 95 % interval (paired, normal), and at the end that of
all seeds of a set together.
"""

import argparse
import csv
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.texts_of_ones_own.sets import sentences
from gru_training.continuing.config import ContinueConfig
from gru_training.sentiment.config import (
    SentimentConfig,
    SentimentDataConfig,
    SentimentRunConfig,
    SentimentTrainingConfig,
)
from gru_training.sentiment.continuing.settings import continuation
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.rows import text_key
from gru_training.sentiment.run import SentimentRun

SOURCES = {"mr": ("critics",), "uci": ("amazon", "films", "yelp"), "sst2": ("stsa",)}
_PARTS = np.array(["train"] * 8 + ["validation", "test"])
_HEAD = (
    "| set | seed | network anew, s | continued, s | ratio | in all anew, s | continued, s | ratio "
    "| test rows | accuracy before | continued | anew | continued minus anew, points |"
)


class Trained(NamedTuple):
    """A run, and how long it took."""

    run: SentimentRun
    seconds: float
    """In all."""

    @property
    def network(self) -> float:
        """Seconds to find the network's weights."""
        return sum(float(epoch["seconds"]) for epoch in self.run.history)

    @property
    def accuracy(self) -> float:
        """On the test rows."""
        return float(self.run.metrics["model"]["test"]["accuracy"])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the table, a row for each seed; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.continuing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    parser.add_argument("--sets", nargs="+", choices=sorted(SOURCES), default=sorted(SOURCES))
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    arguments = parser.parse_args(argv)
    found = {**sentences(arguments.data), "stsa": _sentences_of_sst2(arguments.data)}
    print(f"{_HEAD}\n|---|{'---:|' * (_HEAD.count('|') - 2)}", flush=True)
    for name in arguments.sets:
        texts = [row for source in SOURCES[name] for row in found[source]]
        differences = []
        for seed in arguments.seeds:
            with tempfile.TemporaryDirectory() as folder:
                line, difference = _measured(name, texts, seed, Path(folder))
            differences.append(difference)
            print(f"{line} {_interval(difference)} |", flush=True)
        whole = np.concatenate(differences)
        print(f"| {name} | all |{' |' * 6} {len(whole):,} | | | | {_interval(whole)} |", flush=True)
    return 0


def _interval(difference: np.ndarray) -> str:
    """The mean of a difference of right answers, (N,), with its 95 % interval, in points."""
    half = 1.96 * difference.std() / len(difference) ** 0.5
    return f"{100 * difference.mean():+.2f} ± {100 * half:.2f}"


def _sentences_of_sst2(data: Path) -> list[tuple[str, str]]:
    """All of SST-2's sentences, with their sign."""
    rows = []
    for part in ("train", "dev", "test"):
        lines = (data / "sst2" / f"stsa.binary.{part}.txt").read_text("utf-8").splitlines()
        for sign, text in (line.split(" ", 1) for line in lines):
            rows.append((text, ("negative", "positive")[int(sign)]))
    return rows


def _measured(
    name: str, texts: Sequence[tuple[str, str]], seed: int, folder: Path
) -> tuple[str, np.ndarray]:
    """A row of the table but for its end, and by how much more answers are right, (N,)."""
    new = _write_rows(texts, seed, folder)
    old = _trained(_config(folder, "old", seed))
    # The network of each is compiled on its own, so that none finds what the other has compiled.
    continued = _trained(continuation(old.run, ContinueConfig(old.run.path, new, name="continued")))
    anew = _trained(_config(folder, "all", seed))
    rows = anew.run.metrics["data"]["rows"]["test"]
    assert rows == continued.run.metrics["data"]["rows"]["test"]
    before = continued.run.metrics["continued"]["parts"]["all test rows"]["before"]
    seconds = [
        f"{a:.1f} | {c:.1f} | {c / a:.2f}"
        for a, c in ((anew.network, continued.network), (anew.seconds, continued.seconds))
    ]
    shares = " | ".join(f"{value:.2%}" for value in (before, continued.accuracy, anew.accuracy))
    line = f"| {name} | {seed} | {' | '.join(seconds)} | {rows:,} | {shares} |"
    right = [
        {row.text: row.label == row.predicted for row in each.run.test_predictions()}
        for each in (continued, anew)
    ]
    assert right[0].keys() == right[1].keys()
    return line, np.array([int(right[0][text]) - right[1][text] for text in right[1]])


def _write_rows(texts: Sequence[tuple[str, str]], seed: int, folder: Path) -> Path:
    """Write old.csv, new.csv, and all.csv, which has the rows of both; the path of new.csv."""
    once = list({text_key(text): (text, label) for text, label in texts}.values())
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(once))
    parts = _PARTS[np.arange(len(once)) % len(_PARTS)]
    rows = [(*once[row], part) for row, part in zip(order, parts, strict=True)]
    border = round(0.9 * len(rows))
    for name, chosen in (("old", rows[:border]), ("new", rows[border:]), ("all", rows)):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "label", "part"), *chosen])
    return folder / "new.csv"


def _config(folder: Path, name: str, seed: int) -> SentimentConfig:
    return SentimentConfig(
        data=SentimentDataConfig(data=folder / f"{name}.csv", part_column="part"),
        training=SentimentTrainingConfig(seed=seed),
        run=SentimentRunConfig(folder, name),
    )


def _trained(config: SentimentConfig) -> Trained:
    began = time.perf_counter()
    run = train_sentiment(config)
    return Trained(run, time.perf_counter() - began)


if __name__ == "__main__":
    raise SystemExit(main())
