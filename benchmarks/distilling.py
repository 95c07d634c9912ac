"""What a network learns from the probabilities of a teacher that is better than itself: accuracy.

    python -m benchmarks.distilling --runs-dir runs/distilling

The sentences of MR's first fold are split into few labelled ones and many that the student sees
only as probabilities (`--soft-data`). The teacher is made: it knows their labels. At the strength p
it gives the true class p in a share p of the rows, and 1 - p in the others, so that it is right as
often as it says. Beside its students stand a network with the labelled rows alone, and one that has
the labels of all rows. All read the same held-out rows. What is there already is not trained again.
"""

import argparse
import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

from gru_training.sentiment.config import (
    ClassifierConfig,
    SentimentConfig,
    SentimentDataConfig,
    SentimentRunConfig,
    SentimentTrainingConfig,
    SoftConfig,
)
from gru_training.sentiment.data import SentimentData, load_data
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.run import SentimentRun


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing and print the table, a row a network; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.distilling",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data/mr"), metavar="FOLDER")
    parser.add_argument("--labelled", type=int, default=1000, help="rows (default: 1000)")
    parser.add_argument("--strengths", nargs="+", type=float, default=[0.6, 0.7, 0.8, 0.9, 1.0])
    parser.add_argument("--temperatures", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), metavar="FOLDER")
    arguments = parser.parse_args(argv)
    folder, seed = arguments.runs_dir, arguments.seed
    folder.mkdir(parents=True, exist_ok=True)
    data = load_data(SentimentConfig(data=SentimentDataConfig(data=arguments.data, fold=0)))
    order = np.random.default_rng(seed).permutation(len(data.train))
    few, rest = order[: arguments.labelled], order[arguments.labelled :]
    some = _write_rows(folder / "labelled.csv", data, few)
    every = _write_rows(folder / "all.csv", data, order)
    settings = {"labelled rows alone": (some, SoftConfig())}
    for strength in arguments.strengths:
        soft = _write_answers(folder / f"answers-{strength}.jsonl", data, rest, strength, seed)
        for degrees in arguments.temperatures:
            shown = f"a teacher right in {strength:.0%}"
            if len(arguments.temperatures) > 1:
                shown += f", temperature {degrees:g}"
            chosen = SoftConfig(soft_data=soft, soft_rows=len(rest), soft_temperature=degrees)
            settings[shown] = some, chosen
    settings["the labels of all rows"] = every, SoftConfig()
    print(f"| {len(few):,} labelled rows, {len(rest):,} others | validation | test |")
    print("|---|---:|---:|", flush=True)
    for shown, (rows, soft) in settings.items():
        run = _trained(folder / f"{_plain(shown)}-s{seed}", rows, soft, seed)
        model = run.metrics["model"]
        accuracies = (model[part]["accuracy"] for part in ("validation", "test"))
        print(f"| {shown} | {' | '.join(f'{share:.2%}' for share in accuracies)} |", flush=True)
    return 0


def _trained(path: Path, rows: Path, soft: SoftConfig, seed: int) -> SentimentRun:
    """A GRU alone with these rows, which is trained if it is not there."""
    if not path.exists():
        config = SentimentConfig(
            data=SentimentDataConfig(data=rows, part_column="part"),
            model=ClassifierConfig(ngrams=False),
            training=SentimentTrainingConfig(
                epochs=8, learning_rate=1e-3, schedule="cosine", seed=seed
            ),
            run=SentimentRunConfig(runs_dir=path.parent, name=path.name),
        )
        train_sentiment(replace(config, soft=soft), Console(stderr=True, soft_wrap=True))
    return SentimentRun.open(path)


def _write_rows(path: Path, data: SentimentData, train: np.ndarray) -> Path:
    """Write some of the training rows, and all that are held out, with the part of each."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("text", "label", "part"))
        for name, part in data.parts().items():
            for row in train if name == "train" else range(len(part)):
                table.writerow((part.texts[row], data.classes[part.labels[row]], name))
    return path


def _write_answers(
    path: Path, data: SentimentData, rows: np.ndarray, strength: float, seed: int
) -> Path:
    """Write what a made teacher says of training rows, as JSON lines."""
    rng = np.random.default_rng((seed, round(1000 * strength)))
    lines = []
    for row in rows:
        right = rng.random() < strength
        share = strength if right else 1 - strength
        true = int(data.train.labels[row])
        said = {
            name: share if number == true else 1 - share for number, name in enumerate(data.classes)
        }
        line = {"text": data.train.texts[row], "probabilities": said}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    path.write_text("".join(lines), "utf-8")
    return path


def _plain(text: str) -> str:
    return "-".join("".join(c if c.isalnum() or c == "." else " " for c in text).split())


if __name__ == "__main__":
    raise SystemExit(main())
