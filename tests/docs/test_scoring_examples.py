"""The examples of docs/how_to/scoring.md in docs/examples run as they are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gru_training.scoring.engine import score_table
from gru_training.sentiment.task import TASK
from tests.training.conftest import tiny_sentiment_run

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


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
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
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
def test_a_million_rows(run, tmp_path):
    source, scored = tmp_path / "million.parquet", tmp_path / "scored.parquet"
    said = example("score_a_million_rows.py", run.path, source, scored, 25_000)
    assert "25,000 rows; " in said
    table = pq.read_table(scored)
    assert table["id"].to_pylist() == list(range(25_000))
    assert table.column_names == ["id", "label", "probability", *run.classes]
