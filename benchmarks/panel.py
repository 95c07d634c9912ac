"""A panel of daily series of unequal length beside NHITS and the GRU of neuralforecast.

    python -m benchmarks.panel --seeds 0 1 2 --rivals-python ~/neuralforecast/bin/python

The panel is the one of `benchmarks.forecasting_defaults`: 174 made series of daily sales. All
models read the series alone, learn from the same training rows, choose on the same validation rows
and forecast the same test windows, each series of each. This project is trained first, by default
settings and with `--loss mae`, whose error the MASE is; then each rival as long as the longer of
these took, once for each look-back, of which the one that validates best counts (so the rivals have
twice the time). Rivals have their default settings but for the look-back, the robust scaler for
windows and short series; their loss is the absolute error.
"""

import argparse
import json
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.forecasting_defaults.sets import SETS
from benchmarks.own_process import train
from gru_training.forecasting.run import ForecastingRun

OWN = {"defaults": (), "--loss mae": ("--loss", "mae")}
RIVALS = ("NHITS", "GRU")
_WORKER = Path(__file__).parent / "rivals" / "neuralforecast_panel.py"


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.panel",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--runs-dir", type=Path, default=Path("runs/panel"))
    parser.add_argument("--rivals-python", type=Path, help="of an environment with neuralforecast")
    parser.add_argument("--lookbacks", nargs="+", default=["56", "112"], help="tried of rivals")
    parser.add_argument("--rivals", nargs="+", choices=RIVALS, default=RIVALS)
    parser.add_argument("--step", default="1", help="rivals forecast every n-th test window only")
    arguments = parser.parse_args(argv)
    arguments.runs_dir.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[dict[str, float]]] = {}
    for seed in arguments.seeds:
        runs = {name: own(name, seed, arguments.runs_dir) for name in OWN}
        for name, run in runs.items():
            test = run.metrics["model"]["test"]
            found.setdefault(f"this project, {name}", []).append(
                {"mase": test["mase"], "seconds": run.metrics["seconds"]}
            )
        if arguments.rivals_python is not None:
            run = max(runs.values(), key=lambda each: each.metrics["seconds"])
            for name in arguments.rivals:
                found.setdefault(f"neuralforecast, {name}", []).append(
                    rival(name, seed, run, arguments)
                )
    naive = run.metrics["baselines"]["seasonal naive"]["test"]["mase"]
    print(markdown(found, naive))
    return 0


def own(name: str, seed: int, folder: Path) -> ForecastingRun:
    """The run with these settings, trained if it is not there yet."""
    called = f"{name.strip('-').replace(' ', '-')}-s{seed}"
    sales = next(each for each in SETS if each.name == "sales")
    words = ["forecasting", *sales.arguments(folder), *OWN[name]]
    train(folder / called, [*words, "--seed", str(seed), "--no-refit"])
    return ForecastingRun.open(folder / called)


def rival(
    name: str, seed: int, run: ForecastingRun, arguments: argparse.Namespace
) -> dict[str, Any]:
    """The errors of a rival on the windows of a run, trained as long."""
    folder = arguments.runs_dir
    kept = folder / f"{name}-s{seed}.json"
    if not kept.exists():
        series = run.series
        command = [
            str(arguments.rivals_python),
            str(_WORKER),
            str(folder / "sales.csv"),
            "--model",
            name,
        ]
        command += ["--train", str(series.borders[0]), "--validation", str(series.borders[1])]
        command += ["--horizon", str(series.horizon), "--season", str(series.season)]
        command += ["--seconds", str(run.metrics["seconds"]), "--seed", str(seed)]
        command += ["--step", arguments.step, "--lookbacks", *arguments.lookbacks]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        kept.write_text(done.stdout.strip().split("\n")[-1] + "\n", "utf-8")
    return dict(json.loads(kept.read_text("utf-8")))


def markdown(found: dict[str, list[dict[str, float]]], naive: float) -> str:
    """The table."""
    lines = ["| | MASE, all test windows | time of a training |", "|---|---:|---:|"]
    for name, results in found.items():
        errors = [each["mase"] for each in results]
        spread = f" ± {statistics.stdev(errors):.4f}" if len(errors) > 1 else ""
        seconds = statistics.mean(each["seconds"] for each in results)
        lines.append(f"| {name} | {statistics.mean(errors):.4f}{spread} | {seconds:.0f} s |")
    lines.append(f"| seasonal naive | {naive:.4f} | |")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
