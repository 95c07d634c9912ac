"""Rows per second from file to file, beside a client call in file order and the bare model.

    gru-train sentiment --name reviews
    python -m benchmarks.scoring runs/reviews                 # on 50,000 made-up texts
    python -m benchmarks.scoring runs/reviews --data mails.csv --text-column body

Every round takes each way in turn. A command's time is that of the whole process, TensorFlow
and all; "while scoring" leaves out its start and the first look at the file.
"""

import argparse
import contextlib
import csv
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from gru_serving.client import connect
from gru_training.sentiment.grammar import generate_reviews
from gru_training.tables.table_file import open_table
from tests.ports import free_ports

ROOT = Path(__file__).parents[2]
OLD_BATCH = 256
SUMMARY = re.compile(r"rows; [0-9.,]+ s, ([0-9,]+) rows/s")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print a Markdown table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scoring",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="run of a text classifier")
    parser.add_argument("--data", type=Path, metavar="FILE", help="texts (default: made up)")
    parser.add_argument("--text-column", default="text", metavar="NAME")
    parser.add_argument("--rows", type=int, default=50_000, help="made-up texts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--sample", type=int, default=8192, help="rows for the old way and for the bare model"
    )
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = arguments.data or make_up(folder / "texts.csv", arguments.rows)
        print(markdown(measure(arguments, folder, data), open_table(data).rows))
    return 0


def make_up(path: Path, rows: int) -> Path:
    """Write texts of very different lengths: one to forty generated reviews in a row."""
    rng = np.random.default_rng(0)
    reviews = [review.text for review in generate_reviews(6000, 0)]
    counts = np.minimum(rng.geometric(0.25, rows), 40)
    with path.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow(["id", "text"])
        for number, count in enumerate(counts):
            writer.writerow([number, " ".join(rng.choice(reviews, count))])
    return path


def measure(
    arguments: argparse.Namespace, folder: Path, data: Path
) -> dict[str, list[tuple[float, float]]]:
    """Rows per second of each way in each round: for the whole command, and while it scores."""
    column, run = arguments.text_column, arguments.run
    models = folder / "models"
    _python("-m", "gru_serving", "export", str(run), "--to", str(models))
    table = open_table(data)
    rates: dict[str, list[tuple[float, float]]] = defaultdict(list)
    options = ["--data", str(data), "--text-column", column, "--overwrite", "--output"]
    with server(models, folder) as (rest, grpc):
        ways = {
            "`gru-train predict`": ["gru_training", "predict", str(run)],
            "`gru-serve predict --data`, REST": ["gru_serving", "predict", "--url", rest],
            "`gru-serve predict --data`, gRPC": ["gru_serving", "predict", "--url", grpc],
        }
        for _ in range(arguments.rounds):
            rate = in_file_order(rest, data, column, arguments.sample)
            rates["client call in file order, batches of 256, REST"].append((rate, rate))
            for name, command in ways.items():
                output = folder / "out.parquet"
                started = time.perf_counter()
                said = _python("-m", *command, *options, str(output), "--keep", "id")
                whole = table.rows / (time.perf_counter() - started)
                found = SUMMARY.search(said)
                if found is None:
                    raise RuntimeError(said)
                rates[name].append((whole, float(found[1].replace(",", ""))))
            bare = ["-m", "benchmarks.scoring.bare_model", str(models / "1"), str(data), column]
            rate = json.loads(_python(*bare, str(arguments.sample)).splitlines()[-1])
            rates["bare model, sorted texts, best batch size and threads"].append(
                (rate["rate"], rate["rate"])
            )
    return rates


def in_file_order(url: str, data: Path, column: str, rows: int) -> float:
    """Rows per second of one client call with the texts in file order."""
    texts: list[str] = []
    for piece in open_table(data).pieces([column]):
        texts += piece.column(column).to_pylist()
        if len(texts) >= rows:
            break
    with connect(url, max_batch_size=OLD_BATCH, timeout=600) as client:
        client.predict(texts[:OLD_BATCH])
        started = time.perf_counter()
        client.predict(texts[:rows])
        return len(texts[:rows]) / (time.perf_counter() - started)


@contextlib.contextmanager
def server(models: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """A server of the model; its REST and gRPC addresses."""
    port, rest_port = free_ports(2)
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gru_serving", "serve", f"--port={port}",
             f"--rest_api_port={rest_port}", "--model_name=default",
             f"--model_base_path={models}"],
            cwd=ROOT, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        rest = f"http://localhost:{rest_port}"
        with connect(rest, timeout=300, retries=1000) as client:
            client.predict(["ready?"])
        yield rest, f"localhost:{port}"
    finally:
        process.terminate()
        process.wait(90)


def markdown(rates: dict[str, list[tuple[float, float]]], rows: int) -> str:
    """A table of medians over the rounds."""
    medians = {
        name: [statistics.median(column) for column in zip(*rounds, strict=True)]
        for name, rounds in rates.items()
    }
    first, *_, last = medians.values()
    lines = [
        f"{rows:,} rows, medians of {len(next(iter(rates.values())))} rounds",
        "",
        "| way | rows/s, whole command | while scoring | over file order | of the bare model |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, (whole, scoring) in medians.items():
        lines.append(
            f"| {name} | {whole:,.0f} | {scoring:,.0f} | {scoring / first[1]:.1f} × | "
            f"{scoring / last[1]:.0%} |"
        )
    return "\n".join(lines)


def _python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
