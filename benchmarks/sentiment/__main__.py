"""How good the classifiers are: rows of the results table; what is missing is trained.

    python -m benchmarks.sentiment mr mr-pretrained --runs-dir runs/table

Each preset is trained with each seed, and where its data set is split into ten folds, on each fold.
What is there already is not trained again, so that a table that was interrupted goes on. A row is
the accuracy on all test rows, of all folds together: mean and standard deviation (ddof 1) over the
seeds.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from gru_training.config import preset
from gru_training.errors import TrainingError
from gru_training.sentiment.config import PRESETS, SentimentConfig
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.rows import FOLDS
from gru_training.sentiment.run import SentimentRun


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing, and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sentiment",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("presets", nargs="+", metavar="PRESET", help=", ".join(PRESETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="SEED")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), metavar="FOLDER")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    arguments = parser.parse_args(argv)
    console = Console(stderr=True, soft_wrap=True)
    rows = []
    try:
        settings = {name: preset(name, PRESETS) for name in arguments.presets}
        for config in settings.values():
            runs = train(config, arguments.seeds, arguments.runs_dir, console)
            rows.append(row(config, runs))
    except TrainingError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        console.print("interrupted; the same command goes on with what is missing")
        return 130
    print(markdown(rows))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return 0


def train(
    config: SentimentConfig, seeds: Sequence[int], runs_dir: Path, console: Console
) -> list[SentimentRun]:
    """The runs of a preset; those that are missing are trained."""
    folds = [None] if config.data.fold is None else list(range(FOLDS))
    runs = []
    for seed in seeds:
        for fold in folds:
            name = f"{config.preset}-s{seed}" + ("" if fold is None else f"-f{fold}")
            one = replace(
                config,
                data=replace(config.data, fold=fold),
                training=replace(config.training, seed=seed),
                run=replace(config.run, runs_dir=runs_dir, name=name, ngram_baseline=True),
            )
            if (runs_dir / name).exists():
                run = SentimentRun.open(runs_dir / name)
            else:
                run = train_sentiment(one, resume=True)
            runs.append(run)
            metrics = run.metrics
            console.print(
                f"{name}: validation {metrics['model']['validation']['accuracy']:.2%}, test "
                f"{metrics['model']['test']['accuracy']:.2%}, {metrics['seconds']:.0f} s",
                highlight=False,
            )
            if metrics["interrupted"]:
                raise KeyboardInterrupt
    return runs


def row(config: SentimentConfig, runs: Sequence[SentimentRun]) -> dict[str, Any]:
    """The accuracies of a preset by seed, over all of its test rows."""
    metrics = [run.metrics for run in runs]
    seeds = sorted({one["seed"] for one in metrics})

    def by_seed(accuracy: Callable[[Mapping[str, Any]], float]) -> list[float]:
        means = []
        for seed in seeds:
            of = [one for one in metrics if one["seed"] == seed]
            right = [accuracy(one) * one["data"]["rows"]["test"] for one in of]
            means.append(sum(right) / sum(one["data"]["rows"]["test"] for one in of))
        return means

    accuracies = {"model": by_seed(lambda one: one["model"]["test"]["accuracy"])}
    if "gru_alone" in metrics[0]:
        accuracies["gru_alone"] = by_seed(lambda one: one["gru_alone"]["test"]["accuracy"])
    for name in metrics[0]["baselines"]:
        accuracies[name] = by_seed(lambda one, name=name: one["baselines"][name]["test_accuracy"])
    return {
        "preset": config.preset,
        "data": metrics[0]["data"]["name"],
        "seeds": seeds,
        "runs": len(runs),
        "test_rows": sum(one["data"]["rows"]["test"] for one in metrics) // len(seeds),
        "test": accuracies,
        "validation": by_seed(lambda one: one["model"]["validation"]["accuracy"]),
        "seconds": [one["seconds"] for one in metrics],
    }


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a Markdown table."""
    head = ["preset", "seeds", "test rows", "GRU alone", "with n-grams", "validation"]
    head += ["NB-weighted n-grams", "bag of words", "time of a run"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for one in rows:
        test = one["test"]
        together = "gru_alone" in test
        weighted = next(name for name in test if name.startswith("NB-weighted"))
        cells = [
            f"`{one['preset']}`",
            str(len(one["seeds"])),
            f"{one['test_rows']:,}",
            _spread(test["gru_alone"] if together else test["model"]),
            _spread(test["model"]) if together else "",
            _spread(one["validation"]),
            _spread(test[weighted]),
            _spread(test["bag of words, logistic regression"]),
            f"{statistics.mean(one['seconds']):.0f} s",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _spread(accuracies: Sequence[float]) -> str:
    mean = 100 * statistics.mean(accuracies)
    if len(set(accuracies)) == 1:
        return f"{mean:.2f}"
    return f"{mean:.2f} ± {100 * statistics.stdev(accuracies):.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
