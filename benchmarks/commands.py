"""Processor time of commands until they have answered.

    python -m benchmarks.commands
    python -m benchmarks.commands --run runs/new --other ../earlier --other-run runs/earlier

Each command runs in a process of its own, which may use what is in the file cache and compiled; the
first round is not counted. Processor time, of all cores, depends less than seconds on what else the
machine does. With `--other`, another checkout takes turns with this one. The table has the median
and, in brackets, the least.
"""

import argparse
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMPORTS = {
    "python": "pass",
    "import of tyro and rich": "import tyro, rich.console",
    "... and of NumPy": "import tyro, rich.console, numpy",
    "import of ONNX Runtime": "import onnxruntime",
    "... and of PyArrow, tyro and rich": (
        "import onnxruntime, pyarrow, pyarrow.compute, pyarrow.parquet, tyro, rich.progress"
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.commands",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=5, help="processes per figure")
    parser.add_argument("--run", type=Path, help="run of a text classifier, to predict with")
    parser.add_argument("--other", type=Path, help="another checkout, to compare with")
    parser.add_argument("--other-run", type=Path, help="run that the other checkout predicts with")
    arguments = parser.parse_args(argv)
    checkouts = {ROOT: arguments.run}
    if arguments.other is not None:
        checkouts[arguments.other.resolve()] = arguments.other_run or arguments.run
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(checkouts, Path(folder), arguments.rounds)
    heads = ["other", "this"] if len(checkouts) > 1 else ["seconds"]
    print(f"| command | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}")
    for name, times in rows.items():
        cells = [f"{statistics.median(one):.2f} ({min(one):.2f})" for one in times[::-1]]
        print(f"| {name} | {' | '.join(cells)} |")
    return 0


def measure(
    checkouts: dict[Path, Path | None], folder: Path, rounds: int
) -> dict[str, list[list[float]]]:
    """Processor seconds by command: for each checkout, those of each round.

    Args:
        checkouts: Folders of the project, each with the run to predict with.
        folder: An empty folder for files.
        rounds: Processes per figure.
    """
    told: dict[str, list[list[float]]] = {}
    for number in range(rounds + 1):
        for place, (checkout, run) in enumerate(checkouts.items()):
            for name, command in commands(folder, run).items():
                times = told.setdefault(name, [[] for _ in checkouts])[place]
                seconds = processor_seconds(command, checkout)
                if number:  # the first may have to compile
                    times.append(seconds)
    return told


def commands(folder: Path, run: Path | None) -> dict[str, list[str]]:
    """Arguments of Python by the names of what they measure."""
    good, bad, waves, five = (
        folder / name for name in ("good.csv", "bad.csv", "waves.csv", "5.csv")
    )
    rows = "".join(f"good {number},x\nbad -{number},y\n" for number in range(60))
    good.write_text(f"text,label\n{rows}")
    bad.write_text(f"text,label\n{rows},x\nno label,\n")
    five.write_text("text\na fine film\nnot bad\ndull\ngood if long\nnever again\n")
    steps = (
        f"2024-01-{1 + hour // 24:02d} {hour % 24:02d}:00,{math.sin(hour / 4):.4f}\n"
        for hour in range(400)
    )
    waves.write_text(f"time,up\n{''.join(steps)}")
    train, serve = ["-m", "gru_training"], ["-m", "gru_serving"]
    found = {name: ["-c", program] for name, program in IMPORTS.items()}
    found |= {
        "gru-train --help": [*train, "--help"],
        "gru-train sentiment --help": [*train, "sentiment", "--help"],
        "gru-train sentiment --dat x.csv": [*train, "sentiment", "--dat", "x.csv"],
        "gru-train check, texts": [*train, "check", str(good)],
        "gru-train check, a series": [*train, "check", str(waves)],
        "gru-train sentiment, an error in the data": [*train, "sentiment", "--data", str(bad)],
        "gru-serve --help": [*serve, "--help"],
        "gru-serve serve --help": [*serve, "serve", "--help"],
        "gru-serve predict --help": [*serve, "predict", "--help"],
    }
    if run is not None:
        output = ["--output", str(folder / "out.csv"), "--overwrite"]
        found["gru-train predict, five rows"] = [
            *(*train, "predict", str(run.resolve()), "--data", str(five), *output)
        ]
    return found


def processor_seconds(command: Sequence[str], checkout: Path) -> float:
    """Measure the user and system time of a Python process with the packages of a checkout.

    Raises:
        RuntimeError: A prediction failed, whose time would say nothing.
    """
    roots = [checkout, checkout / "training", checkout / "serving"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *command],
        env=environment,
        cwd=checkout,
        check=False,
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode and "predict" in command and "--data" in command:
        raise RuntimeError(done.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
