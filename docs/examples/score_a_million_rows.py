"""Scores a million rows, from Parquet to Parquet, with bounded memory.

gru-train sentiment --name reviews
python docs/examples/score_a_million_rows.py runs/reviews million.parquet scored.parquet

Killed at any moment, the same command goes on where it stopped. On a command line it is
gru-train predict runs/reviews --data million.parquet --output scored.parquet --keep id
"""

import random
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from gru_training.predict import PredictConfig, predict_file
from gru_training.sentiment.grammar import generate_reviews


def main(run: str, source: str, target: str, rows: int = 1_000_000) -> None:
    """Make up the rows unless they are there, and scores them."""
    if not Path(source).exists():
        texts, rng = [review.text for review in generate_reviews(2000, 0)], random.Random(0)
        with pq.ParquetWriter(
            source, pa.schema([("id", pa.int64()), ("text", pa.string())])
        ) as out:
            for start in range(0, rows, 10_000):
                ids = range(start, min(rows, start + 10_000))
                out.write_table(pa.table({"id": ids, "text": [rng.choice(texts) for _ in ids]}))
    config = PredictConfig(Path(run), Path(source), Path(target), keep="id")
    predict_file(config, Console())


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))
