"""Record, in a new root file system, which Debian packages its files come from.

`var/lib/dpkg/status` names the packages with their versions: scanners and `docker/sbom.py` read it,
although no package manager is there. `usr/share/doc/PACKAGE/copyright` has their licences, and
`usr/share/common-licenses` the texts to which these refer.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

DATABASE = Path("var/lib/dpkg")
LICENCES = Path("usr/share/common-licenses")
# Made on the machine, not taken out of a package.
GENERATED = {"/etc/ssl/certs/ca-certificates.crt": "ca-certificates"}
_STATE = re.compile(r"^Status: .*$", re.MULTILINE)


def record_packages(target: Path, system: Path = Path("/")) -> list[str]:
    """Write the database and the licences of the packages that have a file below the target.

    Args:
        target: The new root.
        system: The root of the system that its files were taken from.

    Returns:
        Names of the packages.
    """
    owners = _owners(system)
    files = (path for path in target.rglob("*") if path.is_symlink() or not path.is_dir())
    names = {owners.get(_name_of("/" + str(path.relative_to(target)))) for path in files}
    entries = {
        name: entry for name, entry in _entries(system / DATABASE / "status") if name in names
    }
    status = target / DATABASE / "status"
    status.parent.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(_STATE.sub("Status: install ok installed", one) for one in entries.values())
    status.write_text(text + "\n", "utf-8")
    for name in entries:
        _copy(Path("usr/share/doc") / name / "copyright", system, target)
    for text_of in sorted((system / LICENCES).glob("*")):
        _copy(LICENCES / text_of.name, system, target)
    return sorted(entries)


def _owners(system: Path) -> dict[str, str]:
    """Package by file; directories belong to many."""
    owners = dict(GENERATED)
    for listing in sorted((system / DATABASE / "info").glob("*.list")):
        name = listing.stem.partition(":")[0]
        for line in listing.read_text("utf-8").splitlines():
            if not (system / line.lstrip("/")).is_dir():
                owners[_name_of(line)] = name
    return owners


def _name_of(path: str) -> str:
    """A file's name below /usr: packages name the old places of what has moved there."""
    return re.sub(r"^/(bin|sbin|lib\w*)/", r"/usr/\1/", path)


def _entries(status: Path) -> list[tuple[str, str]]:
    """Name and paragraph of each package of a database."""
    paragraphs = status.read_text("utf-8").strip().split("\n\n")
    return [(one.partition("\n")[0].removeprefix("Package: "), one) for one in paragraphs if one]


def _copy(path: Path, system: Path, target: Path) -> None:
    if (system / path).is_file():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(system / path, target / path)
