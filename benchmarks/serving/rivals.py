"""Other servers from PyPI: their virtual environments, how to start them and how to ask them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.serving.model import NAME, Artifacts

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "keras_gru" / "rivals"
_SCRIPTS = Path(__file__).parents[1] / "rivals"
_REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Rival:
    """One server.

    Attributes:
        name: Name in the table.
        packages: Packages to install for it with pip, in addition to TensorFlow.
        path: URL path of its predict endpoint.
        protocol: Form of the requests, "rows" or "v2".
    """

    name: str
    packages: tuple[str, ...]
    path: str
    protocol: str

    @property
    def environment(self) -> Path:
        """Return the path of its virtual environment."""
        return CACHE / self.name.split()[0].lower()

    def install(self) -> str:
        """Make the virtual environment, unless it exists.

        Returns:
            Why that failed; empty when it did not.
        """
        stamp = self.environment / "installed.json"
        wanted = json.dumps([*self.packages, *_tensorflow(), sys.version])
        if stamp.is_file() and stamp.read_text() == wanted:
            return ""
        print(f"  installing {self.name} into {self.environment} ...", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "venv", "--clear", str(self.environment)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            done = subprocess.run(
                [
                    *(str(self.environment / "bin" / "python"), "-m", "pip", "install", "--quiet"),
                    *("--disable-pip-version-check", *self.packages, *_tensorflow()),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode:
            return done.stderr.strip().splitlines()[-1]
        stamp.write_text(wanted)
        return ""

    def version(self) -> str:
        """Versions of its first package, and of TensorFlow beside it."""
        script = (
            "import sys; from importlib.metadata import version; "
            "print(*(f'{n} {version(n)}' for n in sys.argv[1:]))"
        )
        names = [self.packages[0].split("[")[0], "tensorflow"]
        python = str(self.environment / "bin" / "python")
        done = subprocess.run(
            [python, "-c", script, *names], capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    def start(self, artifacts: Artifacts, port: int, directory: Path, log: Any) -> subprocess.Popen:
        """Start it on a port; its files go to the directory."""
        directory.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "PATH": f"{self.environment / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": f"{_SCRIPTS}:{_REPOSITORY}",
            "CUDA_VISIBLE_DEVICES": "-1",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "SAVED_MODEL": str(artifacts.saved_model),
            "KERAS_FILE": str(artifacts.keras_file),
            "PORT": str(port),
            "BENTOML_DO_NOT_TRACK": "True",
        }
        return subprocess.Popen(
            _commands(self, port, directory),
            cwd=directory,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def scores(self, body: bytes) -> list[float]:
        """All scores of an answer, row by row."""
        answer = json.loads(body)
        if self.protocol == "v2":
            return list(answer["outputs"][0]["data"])
        rows = answer["predictions"] if isinstance(answer, dict) else answer
        return [score for row in rows for score in row]


RIVALS = (
    Rival("FastAPI + model.predict", ("fastapi", "uvicorn[standard]"), "/predict", "rows"),
    Rival("MLServer", ("mlserver",), f"/v2/models/{NAME}/infer", "v2"),
    Rival("BentoML", ("bentoml",), "/predict", "rows"),
    Rival("KServe", ("kserve",), f"/v2/models/{NAME}/infer", "v2"),
)


def _tensorflow() -> list[str]:
    """The versions on which the measured server runs."""
    from importlib.metadata import version

    return [f"tensorflow=={version('tensorflow')}", f"keras=={version('keras')}"]


def _commands(rival: Rival, port: int, directory: Path) -> list[str]:
    python = str(rival.environment / "bin" / "python")
    if rival.name == "MLServer":
        settings = {
            "host": "127.0.0.1",
            "http_port": port,
            "grpc_port": port + 1,
            "metrics_port": port + 2,
            "parallel_workers": 0,
            "debug": False,
        }
        model = {
            "name": NAME,
            "implementation": "mlserver_runtime.SavedModelRuntime",
            "max_batch_size": 32,
            "max_batch_time": 0.002,
        }
        (directory / "settings.json").write_text(json.dumps(settings))
        (directory / "model-settings.json").write_text(json.dumps(model))
        return [str(rival.environment / "bin" / "mlserver"), "start", str(directory)]
    if rival.name == "BentoML":
        command = str(rival.environment / "bin" / "bentoml")
        return [command, "serve", "bento_service:Gru", "--host", "127.0.0.1", "--port", str(port)]
    script = "fastapi_predict.py" if rival.name.startswith("FastAPI") else "kserve_model.py"
    return [python, str(_SCRIPTS / script)]
