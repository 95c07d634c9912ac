"""Self-training on IMDB's reviews without labels, beside the runs that teach: accuracy.

    python -m benchmarks.self_training --seeds 0 1 2 --generations 2 --runs-dir runs/self-training

The teacher of each seed is a run of the preset, GRU and n-grams. It scores the reviews without
labels that are in no part of the labelled data, each once; the student has the same settings and
also learns these probabilities. Of one seed that is

    gru-train sentiment --preset imdb-pretrained --seed 0 --name imdb-pretrained-s0
    gru-train predict runs/imdb-pretrained-s0 --data unlabelled.jsonl --output s0.parquet
    gru-train sentiment --preset imdb-pretrained --seed 0 --soft-data s0.parquet

With `--generations 2` the student teaches another one, and the table has that. What is there
already is not made again, so that a table that was interrupted goes on.

A row is the accuracy on the test rows, of the GRU alone and of GRU and n-grams together. The last
one has all seeds, and how many more of the test rows the students' GRUs alone get right, in points
with a 95 % interval (paired by row, normal).
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
from rich.console import Console

from gru_training.config import preset
from gru_training.predict import PredictConfig, predict_file
from gru_training.sentiment.config import PRESETS, SentimentConfig, SoftConfig
from gru_training.sentiment.corpora import read_unlabelled
from gru_training.sentiment.data import load_data
from gru_training.sentiment.network.model import predict_logits
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.rows import text_key
from gru_training.sentiment.run import SentimentRun
from gru_training.words.vocabulary import token_ids

_HEAD = (
    "| preset | seed | test rows | teacher, GRU alone | student | teacher, with n-grams | student "
    "| students' GRU minus teachers', points |"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Make what is missing and print the table, a row a seed; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.self_training",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--preset", default="imdb-pretrained", help="one with --unlabelled")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--generations", type=int, default=1, help="of students (default: 1)")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), metavar="FOLDER")
    arguments = parser.parse_args(argv)
    if arguments.generations < 1:
        parser.error(f"--generations: expected at least 1, got {arguments.generations}")
    name, folder = arguments.preset, arguments.runs_dir
    config = preset(name, PRESETS)
    if config.pretraining.unlabelled is None:
        parser.error(f"--preset: expected one with --unlabelled, got {name}")
    print(f"{_HEAD}\n|---|{'---:|' * (_HEAD.count('|') - 2)}", flush=True)
    right: list[np.ndarray] = []
    for seed in arguments.seeds:
        teacher, *_, student = _generations(config, seed, folder, arguments.generations)
        right.append(_right(teacher, student))
        print(f"| {name} | {seed} {_cells(right[-1])}", flush=True)
    print(f"| {name} | all {_cells(np.concatenate(right, axis=1))}", flush=True)
    return 0


def _generations(
    config: SentimentConfig, seed: int, folder: Path, generations: int
) -> list[SentimentRun]:
    """The teacher and each generation of students."""
    config = replace(config, training=replace(config.training, seed=seed))
    console = Console(stderr=True, soft_wrap=True)
    runs: list[SentimentRun] = []
    soft = SoftConfig()
    for generation in range(generations + 1):
        path = folder / f"{config.preset}-s{seed}-g{generation}"
        if runs:
            scored = folder / f"{path.name}.parquet"
            if not scored.exists():
                texts = write_texts(config, folder / f"{path.name}.jsonl")
                predict_file(PredictConfig(runs[-1].path, texts, scored, keep="text"), console)
            soft = SoftConfig(soft_data=scored)
        if not path.exists():
            run = replace(config.run, runs_dir=folder, name=path.name)
            train_sentiment(replace(config, run=run, soft=soft), console, resume=True)
        runs.append(SentimentRun.open(path))
    return runs


def write_texts(config: SentimentConfig, path: Path) -> Path:
    """Write the unlabelled texts that are in no part of the data, each once, as JSON lines."""
    assert config.pretraining.unlabelled is not None
    seen = {text_key(text) for part in load_data(config).parts().values() for text in part.texts}
    lines = []
    for text in read_unlabelled(config.pretraining.unlabelled):
        key = text_key(text)
        if key not in seen:
            seen.add(key)
            lines.append(json.dumps({"text": text}, ensure_ascii=False) + "\n")
    path.write_text("".join(lines), "utf-8")
    return path


def _right(teacher: SentimentRun, student: SentimentRun) -> np.ndarray:
    """Which test rows are right, (4, N): the teacher's GRU, the student's; both with n-grams."""
    test = load_data(teacher.config).test
    rows = []
    for layer in ("logits", None):  # of the GRU alone, then of the whole model
        for run in (teacher, student):
            model, ids = run.load_model(), token_ids(run.preprocessor(), test.texts)
            if layer is not None:
                model = keras.Model(model.input, model.get_layer(layer).output)
            rows.append(predict_logits(model, ids).argmax(axis=1) == test.labels)
    return np.array(rows)


def _cells(right: np.ndarray) -> str:
    """The end of a row of the table."""
    shares = " | ".join(f"{share:.2%}" for share in right.mean(axis=1))
    gained = right[1].astype(float) - right[0]
    half = 1.96 * gained.std() / len(gained) ** 0.5
    return f"| {right.shape[1]:,} | {shares} | {100 * gained.mean():+.2f} ± {100 * half:.2f} |"


if __name__ == "__main__":
    raise SystemExit(main())
