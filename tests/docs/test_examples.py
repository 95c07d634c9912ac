"""The scripts in docs/examples/ run as they are, and are short."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "docs" / "examples"


def run_example(name, folder):
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(EXAMPLES / name)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.long
def test_tickets(tmp_path):
    out = run_example("tickets.py", tmp_path)
    accuracy = float(out.partition("accuracy ")[2].partition("%")[0])
    assert accuracy >= 95
    assert (tmp_path / "models" / "tickets" / "1" / "saved_model.pb").is_file()
    report = out.partition("report ")[2].split("\n")[0]
    assert (tmp_path / report).read_text().startswith("# ")


@pytest.mark.long
def test_sales(tmp_path):
    run_example("sales.py", tmp_path)
    forecast = pd.read_csv(tmp_path / "forecast.csv", parse_dates=["ds"])
    assert forecast["unique_id"].unique().tolist() == ["bread", "cakes", "coffee"]
    assert forecast["ds"].min() == pd.Timestamp("2024-12-21")
    assert len(forecast) == 3 * 14
    assert (forecast["lo-95"] < forecast["hi-95"]).all()


@pytest.mark.parametrize("name", ["sales.py", "tickets.py"])
def test_they_are_short(name):
    assert len((EXAMPLES / name).read_text(encoding="utf-8").split("\n")) <= 41
