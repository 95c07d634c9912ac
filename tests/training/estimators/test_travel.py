"""Fitted estimators that leave the process and the folder that they were fitted in."""

import copy
import gc
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import joblib
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gru_training import Forecaster, TextClassifier, TextRegressor, load_run
from gru_training.errors import RunDirectoryError
from tests.serving.full_disk import largest_file

TEXTS = ["a wonderful film", "not good at all", ""]

ELSEWHERE = """
import json, sys
import joblib
classifier, forecaster = joblib.load(sys.argv[1])
print(json.dumps({
    "scores": classifier.predict_proba(json.loads(sys.argv[2])).tobytes().hex(),
    "labels": classifier.predict(json.loads(sys.argv[2])).tolist(),
    "forecast": forecaster.predict()["forecast"].to_numpy().tobytes().hex(),
    "report": str(classifier.report()),
    "saved": str(classifier.save(sys.argv[3])),
    "folders": [str(each.run_.path) for each in (classifier, forecaster)],
}))
"""

WORKERS = """
import multiprocessing, os, pickle, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore", DeprecationWarning)  # this process has no threads of TensorFlow

def unpickled(content):
    global kept
    kept = pickle.loads(content)

def dropped():
    global mine
    del mine

if __name__ == "__main__":
    content = Path(sys.argv[1]).read_bytes()
    mine = pickle.loads(content)
    there = mine.run_.path
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        works = [(unpickled, (content,))] + ([(dropped, ())] if method == "fork" else [])
        for function, arguments in works:
            worker = context.Process(target=function, args=arguments)
            worker.start()
            worker.join()
            assert worker.exitcode == 0
        assert there.is_dir()
    print([path.name for path in Path(os.environ["TMPDIR"]).iterdir()] == [there.parent.name])
"""


def folders(path):
    return [each for each in path.iterdir() if each.name.startswith("keras-gru-")]


def run_python(program, *arguments, folder, temporary):
    """The output of a program in a folder of its own."""
    script = folder / "program.py"
    script.write_text(program)
    return subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder of temporary files that only this test uses."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


@pytest.fixture
def classifier(tiny_run, tmp_path):
    """An estimator whose run directory this test may remove."""
    copied = shutil.copytree(tiny_run.path, tmp_path / "copy")
    return TextClassifier.load(copied)


@pytest.mark.slow
def test_another_process_predicts_the_same_to_the_bit(
    classifier, forecasting_run, tmp_path, temporary
):
    scores, labels = classifier.predict_proba(TEXTS), classifier.predict(TEXTS)
    report = str(classifier.report())
    moved = shutil.copytree(forecasting_run.path, tmp_path / "series")
    forecaster = Forecaster.load(moved)
    forecast = forecaster.predict()["forecast"].to_numpy()
    joblib.dump((classifier, forecaster), tmp_path / "fitted.joblib")
    shutil.rmtree(classifier.run_.path)
    shutil.rmtree(moved)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    out = run_python(
        ELSEWHERE, tmp_path / "fitted.joblib", json.dumps(TEXTS), elsewhere / "saved",
        folder=elsewhere, temporary=temporary,
    )  # fmt: skip
    found = json.loads(out)
    assert found["scores"] == scores.tobytes().hex()
    assert found["labels"] == labels.tolist()
    assert found["forecast"] == forecast.tobytes().hex()
    assert found["report"] == report
    assert {Path(path).parent.parent for path in found["folders"]} == {temporary}
    assert folders(temporary) == []
    assert load_run(found["saved"]).predict(TEXTS).tolist() == labels.tolist()


@pytest.mark.slow
def test_a_temporary_run_goes_with_the_last_that_uses_it(classifier, temporary):
    content = pickle.dumps(classifier)
    assert classifier.size_ <= len(content) <= 1.02 * classifier.size_ + 20_000
    assert folders(temporary) == []
    one = pickle.loads(content)
    two, three = copy.deepcopy(one), copy.copy(one)
    report = one.report()
    assert len(folders(temporary)) == 1
    assert two.get_params() == three.get_params() == classifier.get_params()
    del one, three
    gc.collect()
    assert len(folders(temporary)) == 1
    del two
    gc.collect()
    assert str(report) == str(classifier.report())
    del report
    gc.collect()
    assert folders(temporary) == []


def test_a_clone_is_not_fitted(classifier):
    with pytest.raises(NotFittedError):
        clone(classifier).predict(TEXTS)
    with pytest.raises(NotFittedError):
        pickle.dumps(clone(classifier)) and clone(classifier).size_


@pytest.mark.slow
def test_worker_processes_clean_up_after_themselves_only(classifier, tmp_path, temporary):
    content = tmp_path / "fitted.pickle"
    content.write_bytes(pickle.dumps(classifier))
    assert run_python(WORKERS, content, folder=tmp_path, temporary=temporary) == "True\n"
    assert folders(temporary) == []


def test_no_room_for_a_run_is_said_and_tmpdir_is_the_way_out(
    classifier, tmp_path, temporary, monkeypatch
):
    content = pickle.dumps(classifier)
    with (
        largest_file(10_000),
        pytest.raises(RunDirectoryError, match=r"of [\d,]+ bytes to .*temporary: .*set TMPDIR"),
    ):
        pickle.loads(content)
    assert folders(temporary) == []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(RunDirectoryError, match=r"cannot write a run to .*none: No such file"):
        pickle.loads(content)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(temporary))
    assert pickle.loads(content).run_.path.parent.parent == temporary


def test_a_run_that_was_removed_is_named_when_pickled(classifier):
    shutil.rmtree(classifier.run_.path)
    with pytest.raises(RunDirectoryError, match=r"cannot read .*copy, which the estimator"):
        pickle.dumps(classifier)


def test_any_run_is_loaded_as_its_estimator(tiny_run, forecasting_run, tmp_path):
    assert type(load_run(tiny_run.path)) is TextClassifier
    assert type(load_run(str(forecasting_run.path))) is Forecaster
    with pytest.raises(RunDirectoryError, match="there is no run directory"):
        load_run(tmp_path / "none")
    with pytest.raises(RunDirectoryError, match="got one of classes; use TextClassifier or load_r"):
        TextRegressor.load(tiny_run.path)


@pytest.mark.slow
def test_what_is_left_of_a_training_that_failed(temporary, monkeypatch):
    from gru_training.loop.checkpoint import Checkpoint

    def fail(self, state, best_weights):
        raise MemoryError

    monkeypatch.setattr(Checkpoint, "save", fail)
    frame = pd.DataFrame({"text": [f"{n} {n % 2} text" for n in range(40)], "label": [0, 1] * 20})
    settings = {"epochs": 1, "units": 2, "embedding_size": 2, "bidirectional": False}
    with pytest.raises(MemoryError):
        TextClassifier(**settings, ngrams=False).fit(frame)
    assert folders(temporary) == []
