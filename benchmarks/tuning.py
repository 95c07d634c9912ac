"""What a search gains over the default settings, on three sets of texts and three of series.

    python -m benchmarks.tuning --minutes 20
    python -m benchmarks.tuning --sets uci sunspots --minutes 8

For each set: `gru-train TASK` with default settings, `gru-train tune TASK --minutes M`, which ends
with a training by the best settings it found, and both runs' metric on validation and test rows:
accuracy of texts, mean squared error of standardised series. As few rows tell accuracies apart
badly, also a finer measure: the log loss of texts and the mean absolute error of series. The search
sees no test row. What is in the folder already is not done again, and a study that was cut short
goes on, so that the whole can be done in pieces. Besides the table, `results.json` in the folder
has all figures.

The gain on validation rows flatters a search, which chose among its trials by them; the gain on
test rows does not.
"""

import argparse
import csv
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.forecasting_defaults.sets import SETS as SERIES
from benchmarks.own_process import train
from benchmarks.texts_of_ones_own.sets import write_set
from gru_training.runs.directory import write_whole
from gru_training.task import find_task

_SST2_ROWS = 5000
_TITLES = "default", "best"
_SERIES = {each.name: each for each in SERIES}


@dataclass(frozen=True)
class TunedSet:
    """A set, and what is measured of it."""

    task: str
    arguments: Callable[[Path, Path], list[str]]
    """Those of the training: from the folder of the data, and one to write to."""
    metric: str
    higher_is_better: bool
    style: str
    finer: str
    """A measure that tells apart what the metric does not; less is better."""

    def gain(self, before: float, after: float) -> float:
        """Above 0 for better: points of accuracy, percent of the error."""
        return 100 * (after - before if self.higher_is_better else 1 - after / before)


def _texts(name: str) -> TunedSet:
    def arguments(data: Path, folder: Path) -> list[str]:
        if name == "mr":
            return ["--data", str(data / "mr")]
        if name == "sst2":
            return ["--data", str(_write_sst2(data, folder))]
        return ["--data", str(write_set(name, data, folder))]

    return TunedSet("sentiment", arguments, "accuracy", True, ".2%", "loss")


def _series(name: str) -> TunedSet:
    def arguments(data: Path, folder: Path) -> list[str]:  # noqa: ARG001  theirs is ../shared/data
        # A second training on all rows would change no figure, and double the time.
        return [*_SERIES[name].arguments(folder), "--no-refit"]

    return TunedSet("forecasting", arguments, "mse", False, ".4f", "mae")


SETS: Mapping[str, TunedSet] = {
    **{name: _texts(name) for name in ("uci", "mr", "sst2")},
    **{name: _series(name) for name in _SERIES},
}
DEFAULT = ("uci", "sunspots", "mr", "minima", "sst2", "airline")


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tuning",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=DEFAULT, metavar="NAME")
    parser.add_argument("--minutes", type=float, default=20.0, help="of each search")
    parser.add_argument("--parallel", type=int, default=1, help="trials at the same time")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs/tuning"))
    arguments = parser.parse_args(argv)
    folder: Path = arguments.runs_dir
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    for name in arguments.sets:
        found[name] = measured(name, arguments)
        print(markdown({name: found[name]}), file=sys.stderr, flush=True)
        write_whole(folder / "results.json", json.dumps(found, indent=2) + "\n")
    print(markdown(found))
    return 0


def measured(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Figures of a set: of the default run, the best, and the study between them."""
    folder: Path = arguments.runs_dir
    of = SETS[name]
    default, best, study = folder / f"{name}-default", folder / f"{name}-best", folder / name
    flags = of.arguments(arguments.data, folder)
    train(default, [of.task, *flags])
    options = ["--minutes", str(arguments.minutes), "--parallel", str(arguments.parallel)]
    train(best, ["tune", of.task, *flags, *options, "--study", str(study)])
    task = find_task(of.task)
    figures = {}
    for title, path in (("default", default), ("best", best)):
        metrics = task.open_run(path).metrics["model"]
        figures[title] = {
            part: {name: metrics[part][name] for name in (of.metric, of.finer)}
            for part in ("validation", "test")
        }
    with (study / "trials.csv").open(encoding="utf-8", newline="") as file:
        trials = [row["state"] for row in csv.DictReader(file)]
    gains = {
        part: of.gain(*(figures[title][part][of.metric] for title in _TITLES))
        for part in ("validation", "test")
    }
    return {
        "minutes": arguments.minutes,
        "trials": {state: trials.count(state) for state in sorted(set(trials))},
        "metric": of.metric,
        "finer": of.finer,
        **figures,
        "gain": gains,
    }


def _write_sst2(data: Path, folder: Path) -> Path:
    """Sentences of SST-2's training part, as many of each class as come by chance."""
    path = folder / "sst2.csv"
    lines = (data / "sst2" / "stsa.binary.train.txt").read_text("utf-8").splitlines()
    chosen = np.random.default_rng(0).permutation(len(lines))[:_SST2_ROWS]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        for row in chosen:
            sign, text = lines[row].split(" ", 1)
            writer.writerow((text, ("negative", "positive")[int(sign)]))
    return path


def markdown(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The table, and the gains over all sets."""
    head = ["set", "metric", "trials", "validation, defaults", "best", "gain",
            "test, defaults", "best", "gain", "test, finer: defaults", "best"]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    for name, one in found.items():
        of = SETS[name]
        cells = [name, of.metric.replace("mse", "MSE"), str(sum(one["trials"].values()))]
        for part in ("validation", "test"):
            cells += [format(one[title][part][of.metric], of.style) for title in _TITLES]
            unit = "points" if of.higher_is_better else "%"
            cells.append(f"{one['gain'][part]:+.2f} {unit}")
        cells += [format(one[title]["test"][of.finer], ".4f") for title in _TITLES]
        lines.append("| " + " | ".join(cells) + " |")
    if len(found) > 1:
        for part in ("validation", "test"):
            gains = [one["gain"][part] for one in found.values()]
            better = sum(gain > 0 for gain in gains)
            lines += ["", f"On {part} rows better on {better} of {len(gains)} sets, "
                      f"{statistics.mean(gains):+.2f} on average."]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
