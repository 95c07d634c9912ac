"""A virtual environment with the wheel of dist/, one extra and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UV = ROOT / os.environ.get("UV", "build/uv/bin/uv")


def built(suffix):
    """The only file in dist/ with this ending."""
    files = sorted((ROOT / "dist").glob(f"*{suffix}"))
    assert len(files) == 1, (
        f"expected one *{suffix} in {ROOT / 'dist'}, got {files}; run make wheel"
    )
    return files[0]


class FreshEnvironment:
    """Install the wheel with the locked versions, which releases of other projects cannot break."""

    def __init__(self, folder, extra=""):
        self.folder = folder
        self.work = folder / "work"
        uv("venv", "--python", sys.executable, folder)
        self.work.mkdir()
        versions = self.work / "constraints.txt"
        lines = [sys.executable, ROOT / "docker" / "requirements.py", "--constraints"]
        versions.write_text(subprocess.check_output(lines, cwd=ROOT, text=True))
        self.install = ("pip", "install", "--python", folder, "--constraint", versions)
        uv(*self.install, requirement(extra))

    def run(self, command, *arguments):
        """Run a command of the environment away from the checkout; returns the finished process."""
        return subprocess.run(
            [self.folder / "bin" / command, *arguments],
            cwd=self.work, env=self.variables(), capture_output=True, text=True, check=False,
        )  # fmt: skip

    def python(self, program):
        """What a program prints; fails unless it succeeds."""
        done = self.run("python", "-c", program)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def packages(self):
        """Names of all installed distributions."""
        listed = uv("pip", "list", "--python", self.folder, "--format", "freeze")
        return {line.partition("==")[0].partition(" @ ")[0] for line in listed.split("\n") if line}

    def variables(self):
        """Environment variables as in a user's shell, which knows nothing of the checkout."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return {**kept, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def requirement(extra):
    return f"keras-gru{f'[{extra}]' if extra else ''} @ {built('.whl').as_uri()}"


def uv(*arguments):
    """What uv prints."""
    done = subprocess.run(
        [UV, "--quiet", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
