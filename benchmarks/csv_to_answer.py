"""Time of each step from a CSV file of 6,000 texts to the first answer of a server.

    python -m benchmarks.csv_to_answer --data ../shared/data

The texts are real ones, of four sources, each positive or negative: eight classes. Every step is
the command that a user would type, with its default settings: `gru-train sentiment`, `gru-serve
export`, `gru-serve serve`, a request over gRPC. XLA's compilations are counted while training.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.server_process import NAME, running_server
from benchmarks.texts_of_ones_own.sets import sentences
from gru_serving.client import connect
from keras_gru.compilations import run_counting

_ROWS = {"critics": 3000, "yelp": 1000, "amazon": 1000, "films": 1000}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.csv_to_answer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_rows(arguments.data, folder / "texts.csv")
        began = time.perf_counter()
        status, compiled = run_counting(
            [
                *("-m", "gru_training", "sentiment", "--data", str(folder / "texts.csv")),
                *("--runs-dir", str(folder / "runs"), "--name", "texts"),
            ]
        )
        if status:
            return status
        trained = time.perf_counter()
        subprocess.run(
            [
                *(sys.executable, "-m", "gru_serving", "export", str(folder / "runs" / "texts")),
                *("--to", str(folder / "models")),
            ],
            check=True,
        )
        exported = time.perf_counter()
        with running_server(folder / NAME, folder / "models" / "1", warmup=True) as server:
            with connect(server.url) as client:
                client.predict(["The plot is thin, but the phone is great."], NAME)
            answered = time.perf_counter()
        steps = {
            "`gru-train sentiment`, evaluation and report included": trained - began,
            f"of it compiling ({len(compiled)} programs)": sum(one.seconds for one in compiled),
            "`gru-serve export`, checks included": exported - trained,
            "`gru-serve serve` until the first answer": answered - exported,
            "together": answered - began,
        }
    print("| step | seconds |\n|---|---:|")
    for step, seconds in steps.items():
        print(f"| {step} | {seconds:.1f} |")
    return 0


def _write_rows(data: Path, path: Path) -> None:
    found = sentences(data)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("text", "label"))
        for source, count in _ROWS.items():
            table.writerows((text, f"{source} {sign}") for text, sign in found[source][:count])


if __name__ == "__main__":
    raise SystemExit(main())
