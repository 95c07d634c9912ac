"""Gather files and the shared libraries that they need into a new root file system.

An image `FROM scratch` with such a root holds what its program uses and nothing else: no shell, no
package manager, no setuid program. Which Debian packages it has files of is recorded.

Usage: python3 docker/rootfs.py TARGET PATH ... [--scan DIRECTORY ...]

Directories are taken whole. Those after --scan are not taken; only the libraries of the system that
their extension modules need are.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from debian_packages import record_packages

USER = "nonroot:x:65532:65532:nonroot:/tmp:/nonexistent\n"
LEFT_OUT = ("idlelib", "lib2to3", "test", "tests", "tkinter", "turtledemo")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def main() -> None:
    """Build the root that the command line describes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--scan", type=Path, nargs="*", default=[])
    arguments = parser.parse_args()
    for path in arguments.paths:
        take(path, arguments.target)
    for library in libraries([*arguments.paths, *arguments.scan]):
        if not any(library.is_relative_to(directory) for directory in arguments.scan):
            take(library, arguments.target)
    furnish(arguments.target)
    record_packages(arguments.target)


def take(path: Path, target: Path) -> None:
    """Copy a file or directory to its place below the target; links stay links."""
    place = target / path.resolve().relative_to("/")
    if path.is_symlink():
        link = target / path.parent.resolve().relative_to("/") / path.name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(path.resolve())
    if path.is_dir():
        shutil.copytree(
            path.resolve(),
            place,
            symlinks=True,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns(*LEFT_OUT),
        )
    elif not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path.resolve(), place)


def libraries(paths: Iterable[Path]) -> list[Path]:
    """The system's libraries to which programs and modules below the paths are linked."""
    programs = sorted(set(_programs(paths)))
    found = set()
    for start in range(0, len(programs), 200):
        listing = subprocess.run(
            ["ldd", *programs[start : start + 200]], capture_output=True, text=True, check=False
        )
        found.update(re.findall(r"(/\S+) \(0x", listing.stdout))
    return sorted(map(Path, found))


def _programs(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        for file in path.rglob("*.so*") if path.is_dir() else [path]:
            if file.is_file():
                yield file.resolve()


def furnish(target: Path) -> None:
    """Add the user, the certificates and the directories that programs expect."""
    # Programs name their loader and libraries below /lib; Debian keeps them below /usr.
    for name in ("bin", "lib", "lib64", "sbin"):
        if not (target / name).exists() and (target / "usr" / name).exists():
            (target / name).symlink_to(f"usr/{name}")
    etc = target / "etc"
    etc.mkdir(exist_ok=True)
    (etc / "passwd").write_text(f"root:x:0:0:root:/:/nonexistent\n{USER}", "utf-8")
    (etc / "group").write_text("root:x:0:\nnonroot:x:65532:\n", "utf-8")
    (etc / "nsswitch.conf").write_text("hosts: files dns\n", "utf-8")
    if CERTIFICATES.exists():
        take(CERTIFICATES, target)
    temporary = target / "tmp"
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o1777)


if __name__ == "__main__":
    main()
