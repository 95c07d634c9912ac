"""The graph of ONNX in a run: the same answers as the Keras model's, without TensorFlow."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gru_training import TextClassifier
from gru_training.__main__ import main
from gru_training.scoring.engine import score_table
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.served.keras_model import KerasScorer
from gru_training.sentiment.served.scorer import GRAPH, TOKENS, GraphScorer, graph_scorer
from gru_training.sentiment.task import TASK
from tests.serving.preprocessing.drawn import PIECES
from tests.training.fresh_process import in_fresh_process, processor_seconds
from tests.training.sentiment.target_runs import train_labels, train_number

REPOSITORY = Path(__file__).parents[4]
HEAVY = {"h5py", "keras", "onnx", "pandas", "scipy", "sklearn", "tensorflow"}


def hostile(run):
    """Held-out texts, empty ones, and some in which tokenizers differ most easily."""
    texts = [row.text for row in run.test_predictions()]
    return pa.table({"text": [*texts[:100], "", None, "long " * 500, *PIECES, "".join(PIECES)]})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["class", "labels", "number"])
def test_answers_are_those_of_the_keras_model(kind, tiny_run, tmp_path):
    trained = {"labels": train_labels, "number": train_number}
    run = tiny_run if kind == "class" else trained[kind](tmp_path)
    assert run.kind == kind
    scorer = TASK.scorer(run)
    assert isinstance(scorer, GraphScorer)
    table = hostile(run)
    found, expected = score_table(scorer, table), score_table(KerasScorer(run), table)
    assert found.schema == expected.schema
    for name in found.column_names:
        if pa.types.is_floating(found[name].type):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5)
        else:
            assert found[name].equals(expected[name]), name


def test_a_prediction_loads_no_tensorflow(tiny_run, tmp_path):
    data = tmp_path / "five.csv"
    data.write_text("id,text\n1,good\n2,bad\n3,a fine film\n4,not good\n5,dull\n")
    output = tmp_path / "out.jsonl"
    command = ["predict", str(tiny_run.path), "--data", str(data), "--output", str(output)]
    (done,), imported = in_fresh_process(command, heavy=HEAVY)
    assert done.status == 0, done.errors
    assert not imported
    assert "TensorFlow" not in done.out + done.errors
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    texts = pa.table({"text": [row["text"] for row in rows]})
    expected = score_table(KerasScorer(tiny_run), texts)
    assert [row["label"] for row in rows] == expected["label"].to_pylist()
    np.testing.assert_allclose([row["probability"] for row in rows], expected["probability"],
                               atol=1e-5)  # fmt: skip


def test_a_prediction_takes_little_more_than_the_imports(tiny_run, tmp_path):
    """Half as much again when this was written; with TensorFlow it was 20 times as much."""
    data = tmp_path / "five.csv"
    data.write_text("text\ngood\nbad\na fine film\nnot good\ndull\n")
    imports = "import onnxruntime, pyarrow, pyarrow.compute, pyarrow.parquet, rich.progress, tyro"
    command = ["predict", str(tiny_run.path), "--data", str(data), "--output", f"{data}.jsonl"]
    _, needed = processor_seconds("-c", imports)
    status, spent = processor_seconds("-m", "gru_training", *command)
    assert status == 0
    assert spent < 3 * needed


def test_a_graph_of_other_files_does_not_answer(tiny_run, tmp_path):
    """As after a change of the temperature by hand: the answers follow the files."""
    run = SentimentRun(Path(shutil.copytree(tiny_run.path, tmp_path / "changed")))
    before = score_table(TASK.scorer(run), pa.table({"text": ["good"]}))
    (run.path / "temperature.json").write_text('{"value": 0.1, "remark": null}\n')
    changed = SentimentRun(run.path)
    assert graph_scorer(changed) is None
    after = score_table(TASK.scorer(changed), pa.table({"text": ["good"]}))
    assert after["probability"][0].as_py() > before["probability"][0].as_py()


def test_a_damaged_graph_is_named(tiny_run, tmp_path):
    run = SentimentRun(Path(shutil.copytree(tiny_run.path, tmp_path / "damaged")))
    (run.path / GRAPH).write_bytes(b"\0" * (run.path / GRAPH).stat().st_size)
    data = tmp_path / "in.csv"
    data.write_text("text\ngood\n")
    command = ["predict", str(run.path), "--data", str(data), "--output", str(tmp_path / "o.csv")]
    assert main(command) == 2


@pytest.mark.slow
def test_what_onnx_cannot_express_is_answered_by_tensorflow(tmp_path, capsys):
    sizes = ["--set", "reviews=300", "--epochs", "1", "--units", "4", "--set", "embedding_size=4"]
    runs = ["--runs-dir", str(tmp_path), "--name", "chunks"]
    assert main(["sentiment", *sizes, "--set", "chunk=3", *runs]) == 0
    run = SentimentRun.open(tmp_path / "chunks")
    assert not (run.path / GRAPH).exists()
    assert not (run.path / TOKENS).exists()
    data = tmp_path / "in.csv"
    data.write_text("text\ngood\n")
    capsys.readouterr()
    command = ["predict", str(run.path), "--data", str(data), "--output", str(tmp_path / "o.csv")]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("TensorFlow ")


@pytest.mark.slow
def test_an_estimator_writes_none(tmp_path):
    texts = [f"{word} {number}" for number in range(20) for word in ("good", "bad")]
    sizes = {"units": 4, "embedding_size": 4, "epochs": 1}
    TextClassifier(**sizes, runs_dir=tmp_path, name="estimated").fit(texts, ["y", "n"] * 20)
    run = SentimentRun.open(tmp_path / "estimated")
    assert not (run.path / GRAPH).exists()
    assert isinstance(TASK.scorer(run), KerasScorer)
