"""Write what images contain as CycloneDX: `python docker/sbom.py --to FOLDER IMAGE ...`.

Debian's packages are read from `var/lib/dpkg/status` by debsbom, Python's from the metadata that
pip installed, by cyclonedx-py; debsbom puts them into one list. `make sbom` installs both tools.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

DPKG_STATUS = "var/lib/dpkg/status"
SITE = ("opt/venv/lib/python*/site-packages", "opt/project")
_TOOLS = Path(sys.executable).parent


class Image(NamedTuple):
    """What a list is of.

    Attributes:
        name: Of the image.
        digest: Of the image, or another version.
        architecture: As Debian and Docker name it, such as amd64.
    """

    name: str
    digest: str
    architecture: str


def main() -> int:
    """Write the lists that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", nargs="+", metavar="IMAGE")
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--docker", default="docker", help="Docker's client (default: docker)")
    arguments = parser.parse_args()
    for name in arguments.images:
        place = arguments.to / f"{name.rpartition('/')[2].replace(':', '-')}.cdx.json"
        try:
            with tempfile.TemporaryDirectory() as scratch:
                archive = Path(scratch) / "files.tar"
                write(archive, export(arguments.docker, name, archive), place)
        except (subprocess.CalledProcessError, ValueError) as error:
            said = getattr(error, "stderr", None) or error
            print(f"sbom: {name}: {str(said).strip()}", file=sys.stderr)
            return 1
        print(place)
    return 0


def export(docker: str, name: str, archive: Path) -> Image:
    """Write the files of an image to an archive."""
    said = _run(docker, "image", "inspect", "--format={{.Id}} {{.Architecture}}", name)
    container = _run(docker, "create", name).strip()
    try:
        _run(docker, "export", f"--output={archive}", container)
    finally:
        _run(docker, "rm", container)
    return Image(name, *said.split())


def write(archive: Path, image: Image, place: Path) -> None:
    """Write the list of the contents of a root file system.

    Args:
        archive: A tar file of it.
        image: What it is of.
        place: Of the list; it is replaced when the new one is whole.

    Raises:
        ValueError: It holds no packages that are known.
        subprocess.CalledProcessError: A tool failed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        found = []
        with tarfile.open(archive) as files:
            names = {PurePosixPath(one.name).as_posix() for one in files}
        if DPKG_STATUS in names:
            found.append(folder / "debian.cdx.json")
            _tool("debsbom", "generate", "--sbom-type=cdx", "--with-licenses", f"--root={archive}",
                  f"--distro-arch={image.architecture}", f"--out={found[-1]}")  # fmt: skip
        if _install_metadata(archive, folder / "environment"):
            found.append(folder / "python.cdx.json")
            # debsbom wants every list to be of something; what it merges has the image's name.
            (folder / "pyproject.toml").write_text('[project]\nname = "image"\nversion = "0"\n')
            _tool("cyclonedx-py", "environment", "--output-reproducible",
                  f"--pyproject={folder / 'pyproject.toml'}", f"--output-file={found[-1]}",
                  str(folder / "environment"))  # fmt: skip
        if not found:
            raise ValueError("expected packages of Debian or Python; found none")
        _tool("debsbom", "merge", "--sbom-type=cdx", "--omit-roots", f"--distro-name={image.name}",
              "--cdx-schema-version=1.7",
              f"--distro-version={image.digest}", f"--out={folder / 'merged.cdx.json'}",
              *map(str, found))  # fmt: skip
        merged = (folder / "merged.cdx.json").read_text("utf-8")
        if error := JsonStrictValidator(SchemaVersion.V1_7).validate_str(merged):
            raise ValueError(f"not CycloneDX: {error}")
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = place.with_name(f".{place.name}.partial")
        aside.write_text(merged, "utf-8")
        aside.rename(place)


def _install_metadata(archive: Path, environment: Path) -> bool:
    """Put the metadata of an image's Python packages into an empty environment."""
    with tarfile.open(archive) as files:
        wanted = [one for one in files if one.isfile() and _is_metadata(one.name)]
        if not wanted:
            return False
        venv.create(environment, with_pip=False)
        (site,) = environment.glob("lib/python*/site-packages")
        for one in wanted:
            place = site / PurePosixPath(one.name).parent.name / PurePosixPath(one.name).name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(files.extractfile(one).read())
    return True


def _is_metadata(name: str) -> bool:
    path = PurePosixPath(name)
    # direct_url.json would say where the project lay while the image was built.
    return (
        path.parent.name.endswith(".dist-info")
        and path.name != "direct_url.json"
        and any(path.parent.parent.match(one) for one in SITE)
    )


def _tool(name: str, *arguments: str) -> None:
    _run(str(_TOOLS / name), *arguments)


def _run(*command: str) -> str:
    # PYTHONPATH would add packages of this machine.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
