"""Settings beside the defaults, on texts that no preset knows: a table.

    python -m benchmarks.texts_of_ones_own.settings --sets uci origin --seeds 0 1 2 \
        --try="--set spacing=no"

For each set and seed a network is trained with the settings of `--base` (none by default) and with
these and those of each `--try`, one after the other in one process, so that their times can be
compared on a machine that does other work, too. Measured are macro F1 on the test rows, of the GRU
alone and with the n-gram regression, and the time of an epoch, validation included, as a share of
the first one's. What one process has measured is kept in `--kept` and not measured again.
"""

import argparse
import json
import shlex
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
from rich.console import Console

from benchmarks.texts_of_ones_own.sets import BUNDLED, write_set
from gru_training.command_settings import task_settings
from gru_training.sentiment.class_weights import for_unequal_classes
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import load_data
from gru_training.sentiment.initial_weights import InitialWeights
from gru_training.sentiment.measures import f1
from gru_training.sentiment.network.model import predict_logits
from gru_training.sentiment.pipeline import fit_network, fitted_shares, prepare
from gru_training.sentiment.targets import make_target, training_rows
from gru_training.sentiment.task import TASK


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.texts_of_ones_own.settings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [name for name in (*BUNDLED, "long") if name != "labels"]
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    parser.add_argument("--sets", nargs="+", choices=names, default=["uci", "origin"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="SEED")
    parser.add_argument("--base", default="", metavar="SETTINGS")
    parser.add_argument("--try", action="append", default=[], dest="tries", metavar="SETTINGS")
    parser.add_argument("--kept", type=Path, default=Path("runs/own/settings"), metavar="FOLDER")
    arguments = parser.parse_args(argv)
    tries = [arguments.base, *(f"{arguments.base} {each}".strip() for each in arguments.tries)]
    console = Console(stderr=True, soft_wrap=True)
    print("| set | settings | GRU alone | with n-grams | epoch |\n|---|---|---:|---:|---:|")
    for name in arguments.sets:
        path = write_set(name, arguments.data, Path(), arguments.kept)
        found = [_measured(path, seed, tries, arguments.kept, console) for seed in arguments.seeds]
        for number, settings in enumerate(tries):
            rows = [each[number] for each in found]
            cells = [_spread([row[key] for row in rows]) for key in ("gru", "combined")]
            ratio = statistics.median(
                row["epoch"] / each[0]["epoch"] for row, each in zip(rows, found, strict=True)
            )
            shown = f"`{settings}`" if settings else "defaults"
            print(f"| {name} | {shown} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)
    return 0


def _measured(
    path: Path, seed: int, tries: Sequence[str], folder: Path, console: Console
) -> list[dict[str, float]]:
    """Measure each of the settings with one seed."""
    kept = folder / f"{path.stem}-s{seed}.json"
    known: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}
    for settings in tries:
        if settings not in known:
            known[settings] = _train(path, seed, settings, folder)
            kept.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
            console.print(
                f"{path.stem}, seed {seed}: {settings} {known[settings]}", highlight=False
            )
    return [known[settings] for settings in tries]


def _train(path: Path, seed: int, settings: str, folder: Path) -> dict[str, float]:
    words = ["--data", str(path), "--seed", str(seed), *shlex.split(settings)]
    config: SentimentConfig = task_settings(TASK, words, "gru-train sentiment")
    keras.utils.set_random_seed(seed)
    config = replace(config, run=replace(config.run, runs_dir=folder))
    config, data = for_unequal_classes(config, load_data(config))
    initial = InitialWeights(config)
    texts = prepare(data, config, initial, folder)
    target, rows = make_target(data, config), texts.rows
    learned = training_rows(target, rows["train"], rows["validation"], None, config.soft)
    model, result = fit_network(learned, texts, config, initial, Console(quiet=True))
    ngrams = target.fit_ngrams(
        rows["train"],
        rows["validation"],
        texts.words.vocabulary.tokens,
        config.model.ngram_order,
    )
    alone = {part: predict_logits(model, rows[part].ids) for part in ("validation", "test")}
    counted = {
        "validation": ngrams.trained.logits(rows["validation"].ids),
        "test": ngrams.final.logits(rows["test"].ids),
    }
    gru, share = fitted_shares(
        rows["validation"], alone["validation"], counted["validation"], target, config
    )

    def macro_f1(logits: np.ndarray) -> float:
        classes = np.arange(len(data.classes))
        members = rows["test"].labels[:, np.newaxis] == classes
        return float(f1(members, logits.argmax(axis=1)[:, np.newaxis] == classes).mean())

    seconds = [epoch.seconds for epoch in result.epochs[1:] or result.epochs]  # XLA compiles first
    return {
        "gru": macro_f1(alone["test"]),
        "combined": macro_f1(gru * alone["test"] + share * counted["test"]),
        "epoch": statistics.median(seconds),
        "epochs": len(result.epochs),
        "tokens": float(np.mean([len(ids) for ids in rows["train"].ids])),
    }


def _spread(values: Sequence[float]) -> str:
    mean = f"{100 * statistics.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {100 * statistics.stdev(values):.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
