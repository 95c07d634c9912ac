"""The wheel in a project that has modules and folders of the same names as this repository's."""

import subprocess
import sys
import sysconfig

import pytest

from tests.packaging.fresh_environment import FreshEnvironment, built, uv

pytestmark = pytest.mark.wheel
OWN = 'raise RuntimeError(f"the project\'s own {__name__} was imported")\n'
ESTIMATORS = """
import pandas as pd
from sklearn.model_selection import cross_val_score
from gru_training import Forecaster, TextClassifier

rows = pd.read_csv("reviews.csv")
small = {"epochs": 1, "embedding_size": 4, "units": 4, "bidirectional": False}
model = TextClassifier(**small)

if __name__ == "__main__":  # worker processes import this file again
    scores = cross_val_score(model, rows["text"], rows["label"], cv=2, n_jobs=2)
    assert scores.shape == (2,) and (scores >= 0).all(), scores
    assert len(model.fit(rows["text"], rows["label"]).predict(["a good film"])) == 1
    print("estimators work")
"""
ASK = """
import sys
from gru_serving import connect

with connect(sys.argv[1]) as client:
    print(client.predict({"text": ["a good film"]}, "reviews"))
"""


class Project(FreshEnvironment):
    """A project in an environment with the wheel, and with all other packages of this one.

    Args:
        folder: Folder for the environment and the project; must not exist yet.
    """

    def __init__(self, folder):
        self.folder, self.work = folder, folder / "project"
        uv("venv", "--python", sys.executable, folder)
        uv("pip", "install", "--python", folder, "--no-deps", built(".whl"))
        # A path in a .pth file: packages are found there, but this checkout's editable install,
        # which is a .pth file itself, is not.
        site = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        self.work.mkdir()
        for name in ("training", "serving", "tests", "docker", "benchmarks", "demo"):
            (self.work / name).mkdir()
            (self.work / name / "__init__.py").write_text(OWN)
        for name in ("training", "serving", "errors", "config", "task", "client", "server", "runs"):
            (self.work / f"{name}.py").write_text(OWN)
        texts = [f"a {word} film, number {i}" for i in range(60) for word in ("good", "bad")]
        lines = [f'"{text}",{"yes" if "good" in text else "no"}' for text in texts]
        (self.work / "reviews.csv").write_text("\n".join(["text,label", *lines, ""]))
        (self.work / "estimators.py").write_text(ESTIMATORS)
        (self.work / "ask.py").write_text(ASK)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("hostile") / "environment")


SMALL = ("--epochs", "1", "--set", "embedding_size=4", "--units", "4", "--no-bidirectional")


def test_a_project_with_the_same_names(project):
    """Both commands, estimators and a search with worker processes, an export, a server.

    PYTHONPATH puts the project's own modules before all others, also for commands.
    """
    path = {"PYTHONPATH": "."}
    where = project.succeeds(
        "python", "-c", "import keras_gru, gru_training; print(gru_training.__file__)", **path
    )
    assert where.startswith(str(project.folder)), where
    data = ("sentiment", "--data", "reviews.csv", *SMALL, "--runs-dir", "runs")
    project.succeeds("gru-train", *data, "--name", "reviews", **path)
    assert "estimators work" in project.succeeds("python", "estimators.py", **path)
    search = ("--only", "--vary", "units=4,8", "--trials", "2", "--parallel", "2")
    project.succeeds("gru-train", "tune", *data, *search, "--name", "best", **path)
    project.succeeds("python", "-m", "gru_training", "check", "reviews.csv", **path)
    models = project.work / "models"
    project.succeeds("gru-serve", "export", "runs/reviews", "--to", str(models), **path)
    with project.serving(models, "reviews", "--trial_load=always", **path) as server:
        assert "Tried" in server.log.read_text()
        assert "label" in project.succeeds("python", "ask.py", server.rest, **path)
        asked = ("--url", f"grpc://{server.grpc}", "--model", "reviews", "a good film")
        assert "a good film" in project.succeeds("gru-serve", "predict", *asked, **path)


def test_the_project_s_own_modules_refuse_to_be_imported(project):
    """The test above could not fail otherwise."""
    done = subprocess.run(
        [project.folder / "bin" / "python", "-c", "import training"],
        cwd=project.work, env=project.variables(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "the project's own training was imported" in done.stderr
