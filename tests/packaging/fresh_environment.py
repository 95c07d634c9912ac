"""A virtual environment with the wheel of dist/, one extra and nothing else."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_ports
from tests.serving.servers import Running, answers, wait_until

ROOT = Path(__file__).resolve().parents[2]
UV = ROOT / os.environ.get("UV", "build/uv/bin/uv")
THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def built(suffix):
    """The only file in dist/ with this ending."""
    files = sorted((ROOT / "dist").glob(f"*{suffix}"))
    assert len(files) == 1, (
        f"expected one *{suffix} in {ROOT / 'dist'}, got {files}; run make wheel"
    )
    return files[0]


def pythons():
    """The versions to install on: $PYTHONS, or the one that runs the tests."""
    return os.environ.get("PYTHONS", THIS_PYTHON).split()


def interpreter(version):
    """The program of a Python version, or None."""
    if version == THIS_PYTHON:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders = [str(path / "bin") for path in sorted(pyenv.glob(f"{version}.*"))]
    path = os.pathsep.join([*folders, os.environ["PATH"]])
    command = [UV, "python", "find", "--no-python-downloads", "--no-project", version]
    done = subprocess.run(
        command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else None


class FreshEnvironment:
    """Install the wheel with the locked versions, which releases of other projects cannot break."""

    def __init__(self, folder, extra="", python=sys.executable):
        self.folder = folder
        self.work = folder / "work"
        uv("venv", "--python", python, folder)
        self.work.mkdir()
        versions = self.work / "constraints.txt"
        lines = [sys.executable, ROOT / "docker" / "requirements.py", "--constraints"]
        versions.write_text(subprocess.check_output(lines, cwd=ROOT, text=True))
        self.install = ("pip", "install", "--python", folder, "--constraint", versions)
        self.add(extra)

    def add(self, extra):
        """Install the wheel with a further extra."""
        uv(*self.install, requirement(extra))

    def run(self, command, *arguments, **variables):
        """Run a command of the environment away from the checkout; returns the finished process."""
        return subprocess.run(
            [self.folder / "bin" / command, *arguments], cwd=self.work,
            env={**self.variables(), **variables}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def succeeds(self, command, *arguments, **variables):
        """What a command prints; fails unless it succeeds."""
        done = self.run(command, *arguments, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def asks_for(self, extra, command, *arguments):
        """Fail unless a command ends with one sentence that names the extra to install."""
        done = self.run(command, *arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        assert done.stderr.endswith(f"pip install 'keras-gru[{extra}]'\n"), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr

    def python(self, program):
        """What a program prints; fails unless it succeeds."""
        return self.succeeds("python", "-c", program)

    def packages(self):
        """Names of all installed distributions."""
        listed = uv("pip", "list", "--python", self.folder, "--format", "freeze")
        return {line.partition("==")[0].partition(" @ ")[0] for line in listed.split("\n") if line}

    def variables(self):
        """Environment variables as in a user's shell, which knows nothing of the checkout."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return {**kept, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}

    @contextmanager
    def serving(self, model, name, *flags, **variables):
        """A server of the environment, on free ports, until the block ends."""
        port, rest_port = free_ports(2)
        log = self.work / f"{name}.log"
        command = [self.folder / "bin" / "gru-serve", "serve", f"--port={port}", *flags,
                   f"--rest_api_port={rest_port}", f"--model_name={name}",
                   f"--model_base_path={model}"]  # fmt: skip
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=self.work,
                env={**self.variables(), **variables},
                stdout=out,
                stderr=out,
            )
        server = Running(process, port, rest_port, log)
        try:
            wait_until(lambda: answers(server), server)
            yield server
        finally:
            process.terminate()
            process.wait(90)


def requirement(extra):
    return f"keras-gru{f'[{extra}]' if extra else ''} @ {built('.whl').as_uri()}"


def uv(*arguments):
    """What uv prints."""
    done = subprocess.run(
        [UV, "--quiet", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
