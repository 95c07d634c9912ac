"""Scores a table with Ray Data: each worker of the cluster loads the model once.

RAY_ADDRESS=head:6379 python docs/examples/score_with_ray.py runs/tickets tickets.parquet scored
"""

import sys

import ray

from gru_training.predict import RunScorer


def main(run: str, source: str, target: str) -> None:
    """Read Parquet, adds the answers, writes a folder of Parquet files."""
    ray.init()  # the cluster of RAY_ADDRESS, or this machine
    tickets = ray.data.read_parquet(source)
    scorer = RunScorer(run)  # where the column is not called text: RunScorer(run, text="body")
    scored = tickets.map_batches(scorer, batch_format="pandas", batch_size=8192)
    scored.write_parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
