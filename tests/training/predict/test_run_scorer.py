"""A run as a function of data frames."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gru_training.predict as run_scorer
from gru_training.errors import ConfigError, DataError, RunDirectoryError
from gru_training.predict import RunScorer
from gru_training.scoring.engine import score_table
from gru_training.sentiment.task import TASK


def test_a_frame_keeps_its_rows_and_columns_and_gets_the_answers(tiny_run):
    frame = pd.DataFrame({"label": [1, 2, 3], "body": ["good", None, "bad film"]}, index=[7, 5, 7])
    scorer = pickle.loads(pickle.dumps(RunScorer(tiny_run.path, text="body")))
    scored = scorer(frame)
    assert list(scored.columns) == [
        "input_label",
        "body",
        "label",
        "probability",
        *tiny_run.classes,
    ]
    assert scored.index.tolist() == [7, 5, 7]
    assert scored["input_label"].tolist() == [1, 2, 3]
    expected = score_table(TASK.scorer(tiny_run), pa.table({"text": ["good", "", "bad film"]}))
    np.testing.assert_allclose(scored["probability"], expected["probability"], atol=1e-6)
    empty = scorer(frame.head(0))
    assert empty.dtypes.to_dict() == scored.dtypes.to_dict()
    (again,) = scorer.in_pandas(iter([frame]))
    pd.testing.assert_frame_equal(again, scored)
    assert "input_label" not in frame.columns


def test_a_process_loads_the_model_once(tiny_run, monkeypatch):
    opened = []
    monkeypatch.setattr(type(TASK), "open_run", lambda _, path: opened.append(path) or tiny_run)
    run_scorer._opened.cache_clear()
    for _ in range(3):
        RunScorer(tiny_run.path)(pd.DataFrame({"text": ["good"]}))
    assert opened == [tiny_run.path]


def test_what_cannot_work_is_said_at_once(tiny_run, forecasting_run, tmp_path):
    with pytest.raises(RunDirectoryError, match="there is no run directory"):
        RunScorer(tmp_path / "none")
    with pytest.raises(RunDirectoryError, match="this one reads a series"):
        RunScorer(forecasting_run.path)
    with pytest.raises(ConfigError, match="expected a model that reads a body"):
        RunScorer(tiny_run.path, body="text")
    with pytest.raises(DataError, match="the data frame: no column looks like the text"):
        RunScorer(tiny_run.path)(pd.DataFrame({"x": ["a"]}))
