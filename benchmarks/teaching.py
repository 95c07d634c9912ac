"""Self-training on film reviews without labels, beside the networks that teach: accuracy.

    python -m benchmarks.teaching --sets mr --folds 0 1 2 --runs-dir runs/teaching

The teacher of each fold and seed is a run of the preset with vectors from IMDB's reviews, GRU and
n-grams; the student a run of the same settings that also learns what its teacher answers to these
reviews or, where the labelled texts are sentences, to sentences of them of which the teacher is
sure (`--teach-sentences --teach-sure 0.7`). With `--generations 2` the student teaches another one,
and the table has that. Runs that are there already, such as the teachers of a table of
`python -m benchmarks.sentiment`, are not trained again.

A row is the accuracy on the test rows, of the GRU alone and of GRU and n-grams together. The last
ones are the means of all runs of a set, and how many more of the test rows the students' GRUs
alone get right, in points with a 95 % interval (paired by row, normal).
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
from rich.console import Console

from gru_training.presets import preset
from gru_training.sentiment.config import SentimentConfig, TeachingConfig
from gru_training.sentiment.data import load_data
from gru_training.sentiment.network.logits import predict_logits
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.presets import PRESETS
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.split import FOLDS
from gru_training.words.vocabulary import token_ids

_SENTENCES = TeachingConfig(Path(), teach_sentences=True, teach_sure=0.7)
SETS = {
    # One sentence for each labelled row: two are no better, and take longer.
    "mr": ("mr-pretrained", replace(_SENTENCES, teach_texts=8_528)),
    "sst2": ("sst2-pretrained", _SENTENCES),
    "imdb": ("imdb-pretrained", TeachingConfig(Path())),
}
_HEAD = (
    "| set | fold | seed | test rows | teacher, GRU alone | student | teacher, with n-grams "
    "| student | students' GRU minus teachers', points |"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing and print the table, a row a run; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.teaching",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", nargs="+", choices=sorted(SETS), default=sorted(SETS))
    parser.add_argument("--folds", nargs="+", type=int, default=range(FOLDS), help="of mr")
    parser.add_argument("--seeds", nargs="+", type=int, default=(0,))
    parser.add_argument("--generations", type=int, default=1, help="of students (default: 1)")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), metavar="FOLDER")
    arguments = parser.parse_args(argv)
    if arguments.generations < 1:
        parser.error(f"--generations: expected at least 1, got {arguments.generations}")
    print(f"{_HEAD}\n|---|{'---:|' * (_HEAD.count('|') - 2)}", flush=True)
    for name in arguments.sets:
        named, teaching = SETS[name]
        config = preset(named, PRESETS)
        folds = [None] if config.data.fold is None else arguments.folds
        right: list[np.ndarray] = []
        for seed in arguments.seeds:
            for fold in folds:
                teacher, *_, student = _trained(
                    config, teaching, fold, seed, arguments.runs_dir, arguments.generations
                )
                right.append(_right(teacher, student))
                print(f"| {name} | {'' if fold is None else fold} | {seed} {_cells(right[-1])}")
        print(f"| {name} | all | {_cells(np.concatenate(right, axis=1))}", flush=True)
    return 0


def _trained(
    config: SentimentConfig,
    teaching: TeachingConfig,
    fold: int | None,
    seed: int,
    folder: Path,
    generations: int,
) -> list[SentimentRun]:
    """The teacher and each generation of students; trained if they are not there."""
    end = f"s{seed}" + ("" if fold is None else f"-f{fold}")
    config = replace(
        config,
        data=replace(config.data, fold=fold),
        training=replace(config.training, seed=seed),
    )
    console = Console(stderr=True, soft_wrap=True)
    paths: list[Path] = []
    for kind in ("", "taught-", *(f"taught-{number}-" for number in range(2, generations + 1))):
        path = folder / f"{config.preset}-{kind}{end}"
        if not path.exists():
            run = replace(config.run, runs_dir=folder, name=path.name)
            taught = replace(teaching, teach=paths[-1]) if paths else config.teaching
            train_sentiment(replace(config, run=run, teaching=taught), console, resume=True)
        paths.append(path)
    return [SentimentRun.open(path) for path in paths]


def _right(teacher: SentimentRun, student: SentimentRun) -> np.ndarray:
    """Mark the right test rows, (4, N): teacher's GRU, student's GRU, and both with n-grams."""
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
