"""Scores a table with Dask: each process of the cluster loads the model once.

python docs/examples/score_with_dask.py runs/tickets tickets.parquet scored
"""

import sys

import dask.dataframe as dd

from gru_training.predict import RunScorer


def main(run: str, source: str, target: str) -> None:
    """Read Parquet, adds the answers, writes a folder of Parquet files."""
    tickets = dd.read_parquet(source)
    scorer = RunScorer(run)  # where the column is not called text: RunScorer(run, text="body")
    empty = scorer(tickets.head(0))  # the columns and types of the answers
    tickets.map_partitions(scorer, meta=empty).to_parquet(target, write_index=False)
    print(dd.read_parquet(target)["label"].value_counts().compute().sort_index())


if __name__ == "__main__":
    main(*sys.argv[1:])
