"""Print what an image installs: the project's requirements with some extras.

TensorFlow becomes its CPU build, of the locked version: half the size. (On arm64 the ordinary
package is the CPU build.) Everything else is pinned by `pip install --constraint` with what
--constraints prints: the lock without its hashes, since that build has none there and pip wants all
or none.

Usage: python3 docker/requirements.py [EXTRA ...] | --constraints
"""

from __future__ import annotations

import platform
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def requirements(extras: list[str], machine: str) -> list[str]:
    """The lines of a requirements file.

    Args:
        extras: Names of the project's extras.
        machine: As `platform.machine()` gives it.

    Raises:
        KeyError: The project has no such extra.
    """
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += _of_extra(project, extra)
    wanted = list(dict.fromkeys(wanted))
    return [_tensorflow(machine) if _name(line) == "tensorflow" else line for line in wanted]


def constraints() -> list[str]:
    """The versions of the lock, each with the condition under which it applies."""
    lock = Path("requirements.lock").read_text("utf-8")
    return [line.rstrip(" \\") for line in lock.splitlines() if re.match(r"[A-Za-z0-9]", line)]


def _of_extra(project: dict[str, Any], extra: str) -> Iterator[str]:
    """Its packages, and those of the extras that it names: `keras-gru[client,layer]`."""
    for line in project["optional-dependencies"][extra]:
        if _name(line) != project["name"]:
            yield line
            continue
        for named in line.partition("[")[2].rstrip("]").split(","):
            yield from _of_extra(project, named.strip())


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


def _tensorflow(machine: str) -> str:
    lock = Path("requirements.lock").read_text("utf-8")
    version = re.search(r"^tensorflow==([^\s;]+)", lock, re.MULTILINE)
    if version is None:
        raise SystemExit("requirements.lock: expected a line `tensorflow==...`; found none")
    package = "tensorflow-cpu" if machine == "x86_64" else "tensorflow"
    return f"{package}=={version[1]}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--constraints"]:
        print("\n".join(constraints()))
    else:
        print("\n".join(requirements(sys.argv[1:], platform.machine())))
