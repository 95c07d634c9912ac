"""Default settings on data sets that no preset knows, beside simple models: a table.

    python -m benchmarks.texts_of_ones_own --data ../shared/data --runs-dir runs/own
    python -m benchmarks.texts_of_ones_own --sets drugs tweets --packages packages

Each set is written as a file, trained on with each seed as `gru-train sentiment --data FILE` would
do it, and given to TF-IDF with a logistic regression and to the fastText package (pip install
fasttext-wheel; left out without it) in the same parts. These have their settings chosen on the
validation rows by macro F1; ours are the defaults. What is there already is not trained again.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy.stats import rankdata

from benchmarks.texts_of_ones_own.packages import PUBLISHED
from benchmarks.texts_of_ones_own.rivals import fasttext_averages, tfidf
from benchmarks.texts_of_ones_own.sets import BUNDLED, SETS, write_set
from gru_training.sentiment.class_weights import for_unequal_classes
from gru_training.sentiment.config import SentimentConfig, SentimentDataConfig
from gru_training.sentiment.data import SentimentData, load_data
from gru_training.sentiment.evaluation.baselines import ngram_regression
from gru_training.sentiment.initial_weights import InitialWeights
from gru_training.sentiment.measures import f1, micro_f1
from gru_training.sentiment.pipeline import prepare, train_sentiment
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.targets import make_target

_WHO = ("ours", "tfidf", "fasttext")


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing, print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.texts_of_ones_own",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="files of packages")
    parser.add_argument("--sets", nargs="+", choices=SETS, help="default: all that can be made")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="SEED")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs/own"), metavar="FOLDER")
    parser.add_argument(
        "--without-network",
        action="store_true",
        help="measure the n-gram regression alone, which takes seconds, and its processor time",
    )
    arguments = parser.parse_args(argv)
    console = Console(stderr=True, soft_wrap=True)
    rows = []
    for name in arguments.sets or (BUNDLED if arguments.packages is None else SETS):
        packages = arguments.packages or Path()
        path = write_set(name, arguments.data, packages, arguments.runs_dir / "data")
        measured = [
            _seed(name, path, seed, arguments.runs_dir, arguments.without_network, console)
            for seed in arguments.seeds
        ]
        rows.append({"set": name, "seeds": measured})
    print(markdown(rows))
    print(f"\n{summary(rows)}")
    return 0


def _seed(
    name: str, path: Path, seed: int, runs_dir: Path, without_network: bool, console: Console
) -> dict[str, Any]:
    """Measure everybody on one set with one seed; the results are kept beside the runs."""
    part_column = "part" if name in PUBLISHED else None
    config = SentimentConfig(
        data=SentimentDataConfig(data=path, part_column=part_column, drop_bad=True)
    )
    place = runs_dir / f"{name}-s{seed}"
    config = replace(
        config,
        training=replace(config.training, seed=seed),
        run=replace(config.run, runs_dir=runs_dir, name=place.name),
    )
    data = load_data(config)
    if without_network:
        ours = _kept(place, "regression", lambda: _regression(config, data, runs_dir))
    else:
        run = SentimentRun.open(place) if place.exists() else train_sentiment(config, resume=True)
        ours = {**_ours(run), "seconds": run.metrics["seconds"]}
    rivals = _kept(
        place, "rivals", lambda: {"tfidf": tfidf(data), "fasttext": fasttext_averages(data, seed)}
    )
    found = {
        "ours": ours,
        **rivals,
        "seconds": ours["seconds"],
        "rows": {part: len(rows) for part, rows in data.parts().items()},
        "classes": len(data.classes),
    }
    console.print(
        f"{name}, seed {seed}: "
        + ", ".join(
            f"{who} {found[who]['micro_f1']:.2%} {found[who]['macro_f1']:.2%}"
            for who in _WHO
            if found[who]
        )
        + f", {found['seconds']:.0f} s",
        highlight=False,
    )
    return found


def _kept(place: Path, kind: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Measure, or read what was measured before."""
    path = place.with_name(f"{place.name}-{kind}.json")
    if path.is_file():
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return found
    found = measure()
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return found


def _regression(config: SentimentConfig, data: SentimentData, folder: Path) -> dict[str, float]:
    """F1 of the n-gram regression alone, and the processor time of its fit."""
    config, data = for_unequal_classes(config, data)
    texts, target = prepare(data, config, InitialWeights(config), folder), make_target(data, config)
    begun = time.process_time()
    fitted = target.fit_ngrams(
        texts.rows["train"], texts.rows["validation"], texts.words.vocabulary.tokens
    )
    seconds = time.process_time() - begun
    found = ngram_regression(target, fitted, texts.rows["validation"], texts.rows["test"])
    said = found.test_predictions
    if said.ndim == 1:
        said = said[:, np.newaxis] == np.arange(len(data.classes))
    truth = target.members(texts.rows["test"].labels)
    return {
        "macro_f1": float(f1(truth, said).mean()),
        "micro_f1": micro_f1(truth, said),
        "seconds": seconds,
    }


def _ours(run: SentimentRun) -> dict[str, float]:
    """F1 of what the run answered to its test rows."""

    def held(answers: Sequence[Any]) -> np.ndarray:
        names = [answer if isinstance(answer, list) else [answer] for answer in answers]
        return np.array([[name in row for name in run.classes] for row in names])

    rows = list(run.test_predictions())
    truth, said = held([row.label for row in rows]), held([row.predicted for row in rows])
    return {"macro_f1": float(f1(truth, said).mean()), "micro_f1": micro_f1(truth, said)}


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a Markdown table; the micro F1 of one class for each text is the accuracy."""
    lines = [
        "| set | classes | training rows | measure | defaults | TF-IDF | fastText | a run |",
        "|---|---:|---:|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        seeds = row["seeds"]
        for key, name in (("micro_f1", "micro F1"), ("macro_f1", "macro F1")):
            cells = [
                _spread([seed[who][key] for seed in seeds]) if seeds[0][who] else "" for who in _WHO
            ]
            seconds = statistics.mean(seed["seconds"] for seed in seeds)
            lines.append(
                f"| {row['set']} | {seeds[0]['classes']} | {seeds[0]['rows']['train']:,} | {name} "
                f"| {' | '.join(cells)} | {seconds:.0f} s |"
            )
    return "\n".join(lines)


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Mean rank by micro F1, and our lead: over the best rival, and over TF-IDF in macro F1."""

    def of(row: Mapping[str, Any], key: str) -> dict[str, float]:
        return {
            who: statistics.mean(seed[who][key] for seed in row["seeds"])
            for who in _WHO
            if row["seeds"][0][who]
        }

    micro = [of(row, "micro_f1") for row in rows]
    macro = [of(row, "macro_f1") for row in rows]
    ranks = [rankdata([-value for value in values.values()])[0] for values in micro]
    leads = {
        row["set"]: 100 * (values["ours"] - max(values[who] for who in values if who != "ours"))
        for row, values in zip(rows, micro, strict=True)
    }
    behind = ", ".join(f"{name} {lead:+.2f}" for name, lead in leads.items() if lead < 0)
    ahead = 100 * statistics.mean(values["ours"] - values["tfidf"] for values in macro)
    return (
        f"Mean rank by micro F1: {statistics.mean(ranks):.2f}. Macro F1 over TF-IDF, mean: "
        f"{ahead:+.2f} points. Behind the best rival in micro F1, in points: {behind or 'nowhere'}."
    )


def _spread(values: Sequence[float]) -> str:
    mean = f"{100 * statistics.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {100 * statistics.stdev(values):.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
