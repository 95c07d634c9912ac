"""docker/debian_packages.py on a small Debian of the test's own."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
STATUS = """Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9
Depends: libgcc-s1

Package: nginx
Status: install ok unpacked
Architecture: amd64
Version: 1.22.1-9
Static-Built-Using: golang-1.19 (= 1.19.8-2)
Description: a server
 with a second line

Package: dash
Status: install ok installed
Architecture: amd64
Version: 0.5.12-2
"""
# As dpkg writes them: places before /bin and /lib moved below /usr, and all folders.
LISTS = {
    "libc6:amd64": "/.\n/lib\n/lib/x86_64-linux-gnu\n/lib/x86_64-linux-gnu/libc.so.6\n",
    "nginx": "/.\n/usr\n/usr/sbin\n/usr/sbin/nginx\n/etc\n",
    "dash": "/.\n/bin\n/bin/dash\n/lib\n/usr/sbin\n",
}


@pytest.fixture
def record():
    """record_packages, imported as the build does: from its own folder."""

    def call(target, system):
        program = (
            "import sys; from pathlib import Path; from debian_packages import record_packages; "
            "print(*record_packages(*map(Path, sys.argv[1:])))"
        )
        return subprocess.run(
            [sys.executable, "-c", program, target, system],
            cwd=REPOSITORY / "docker", capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip

    return call


@pytest.fixture
def system(tmp_path):
    root = tmp_path / "system"
    info = root / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (info.parent / "status").write_text(STATUS)
    for name, lines in LISTS.items():
        (info / f"{name}.list").write_text(lines)
        doc = root / "usr/share/doc" / name.partition(":")[0]
        doc.mkdir(parents=True)
        (doc / "copyright").write_text(f"licence of {doc.name}")
    (root / "usr/share/common-licenses").mkdir()
    (root / "usr/share/common-licenses/GPL-2").write_text("the text")
    (root / "usr/share/common-licenses/GPL").symlink_to("GPL-2")
    for folder in ("usr/lib/x86_64-linux-gnu", "usr/sbin"):
        (root / folder).mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    return root


@pytest.fixture
def target(tmp_path):
    root = tmp_path / "target"
    for file in ("usr/lib/x86_64-linux-gnu/libc.so.6", "usr/sbin/nginx", "etc/passwd"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_bytes(b"")
    (root / "lib").symlink_to("usr/lib")  # a link to a folder that three packages have
    return root


def test_packages_with_a_file_are_recorded(record, system, target):
    assert record(target, system) == ["libc6", "nginx"]
    status = (target / "var/lib/dpkg/status").read_text()
    assert "Version: 1.22.1-9\nStatic-Built-Using: golang-1.19 (= 1.19.8-2)\n" in status
    assert status.count("Status: install ok installed\n") == 2
    assert "\n with a second line\n" in status
    assert "dash" not in status


def test_licences_are_taken_along(record, system, target):
    record(target, system)
    taken = target / "usr/share"
    assert (taken / "doc/libc6/copyright").read_text() == "licence of libc6"
    assert not (taken / "doc/dash").exists()
    # Copies, since what a link leads to may be left out of an image.
    assert (taken / "common-licenses/GPL").read_text() == "the text"


def test_the_bundle_of_certificates_has_a_package(record, system, target):
    """It is made when the package is installed, so no package lists it."""
    with (system / "var/lib/dpkg/status").open("a") as file:
        file.write("\nPackage: ca-certificates\nStatus: install ok installed\nVersion: 1\n")
    (target / "etc/ssl/certs").mkdir(parents=True)
    (target / "etc/ssl/certs/ca-certificates.crt").write_text("")
    assert record(target, system) == ["ca-certificates", "libc6", "nginx"]
