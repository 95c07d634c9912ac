"""The examples of docs/how_to/scoring.md in docs/examples run as they are."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gru_training.scoring.engine import score_table
from gru_training.sentiment.task import TASK
from tests.serving.ray.cluster import two_nodes
from tests.training.conftest import tiny_sentiment_run
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
ROWS = int(os.environ.get("KERAS_GRU_ROWS", "100_000"))
"""Rows of the tables that are scored while a node is killed."""


@pytest.fixture(scope="module")
def run():
    return tiny_sentiment_run()


@pytest.fixture
def tickets(run, tmp_path):
    texts = [row.text for row in run.test_predictions()] + ["", "never heard of"]
    path = tmp_path / "tickets.parquet"
    pq.write_table(pa.table({"id": range(len(texts)), "text": texts}), path)
    return path


def example(name, *arguments, environment=None):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(run, tickets, scored):
    frame = pd.read_parquet(scored).sort_values("id")
    source = pq.read_table(tickets)
    expected = score_table(TASK.scorer(run), source).to_pandas()
    assert list(frame.columns) == ["id", "text", *expected.columns]
    assert frame["text"].tolist() == source["text"].to_pylist()
    assert frame["label"].tolist() == expected["label"].tolist()
    for name in run.classes:
        assert abs(frame[name].to_numpy() - expected[name].to_numpy()).max() < 1e-6


def test_each_is_short():
    for path in EXAMPLES.glob("score_*.py"):
        assert path.read_text("utf-8").count("\n") < 40, path


@pytest.mark.long
def test_spark(run, tickets, tmp_path):
    """On a cluster of two workers with a process each; `make test-spark` installs what it needs."""
    pytest.importorskip("pyspark")
    environment = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "--master local-cluster[2,1,1024] pyspark-shell",
    }
    said = example("score_with_spark.py", run.path, tickets, tmp_path / "scored",
                   environment=environment)  # fmt: skip
    assert "label" in said
    check(run, tickets, tmp_path / "scored")


@pytest.mark.long
def test_dask(run, tickets, tmp_path):
    pytest.importorskip("dask.dataframe")
    assert "label" in example("score_with_dask.py", run.path, tickets, tmp_path / "scored")
    check(run, tickets, tmp_path / "scored")


@pytest.mark.long
def test_ray_with_a_node_that_is_killed(run, tmp_path):
    texts = [row.text for row in run.test_predictions()]
    source, scored = tmp_path / "rows", tmp_path / "scored"
    source.mkdir()
    for part in range(20):
        ids = range(part * ROWS // 20, (part + 1) * ROWS // 20)
        table = pa.table({"id": ids, "text": [texts[i % len(texts)] for i in ids]})
        pq.write_table(table, source / f"{part:02}.parquet")
    with two_nodes() as cluster, ThreadPoolExecutor() as threads:
        # The newer reader starts a process for each of many files, which two CPUs are few for.
        environment = {"RAY_ADDRESS": cluster.address, "RAY_DATA_USE_DATASOURCE_V2": "0"}
        ran = threads.submit(
            example, "score_with_ray.py", run.path, source, scored, environment=environment
        )
        wait_until(lambda: ran.done() or len(list(scored.glob("*.parquet"))) > 1, 300)
        assert not ran.done(), ran.result()
        cluster.kill_node()
        ran.result()
    assert sorted(pd.read_parquet(scored)["id"]) == list(range(ROWS))
    check(run, source, scored)


@pytest.mark.long
def test_a_million_rows(run, tmp_path):
    source, scored = tmp_path / "million.parquet", tmp_path / "scored.parquet"
    said = example("score_a_million_rows.py", run.path, source, scored, 25_000)
    assert "25,000 rows; " in said
    table = pq.read_table(scored)
    assert table["id"].to_pylist() == list(range(25_000))
    assert table.column_names == ["id", "label", "probability", *run.classes]
