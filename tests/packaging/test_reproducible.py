"""Whoever builds a commit gets the same bytes, in any folder, at any time, under any umask."""

import hashlib
import os
import shutil
import subprocess
import tarfile

import pytest

from tests.packaging.fresh_environment import ROOT, built

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module")
def epoch():
    """The time that is in the distributions of dist/, of all their files."""
    with tarfile.open(built(".tar.gz")) as archive:
        (time,) = {one.mtime for one in archive}
    return int(time)


def build(folder, kind, epoch, umask=0o022):
    """Build one distribution from a source tree; returns its name and its digest."""
    done = subprocess.run(
        [ROOT / "build/release/bin/python", "-m", "build", "--no-isolation", f"--{kind}", folder],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "TZ": "Asia/Kathmandu"},
        umask=umask, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (folder / "dist").iterdir()
    return file.name, digest(file)


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def git(*arguments):
    """What git says of this checkout; None if it is none."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return None
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def unpacked(tmp_path):
    """The sources, in a folder with another name, other times and the owner's permissions only."""
    with tarfile.open(built(".tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    (folder / "PKG-INFO").unlink()
    moved = folder.rename(tmp_path / "another name")
    for path in moved.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        if path.is_file():
            path.chmod(0o700 if os.access(path, os.X_OK) else 0o600)
    return moved


@pytest.mark.parametrize(("kind", "suffix"), [("wheel", ".whl"), ("sdist", ".tar.gz")])
def test_the_sources_build_the_same_elsewhere(unpacked, epoch, kind, suffix):
    expected = built(suffix)
    assert build(unpacked, kind, epoch, umask=0o077) == (expected.name, digest(expected))


@pytest.mark.parametrize(("kind", "suffix"), [("wheel", ".whl"), ("sdist", ".tar.gz")])
def test_a_clone_builds_the_same(tmp_path, epoch, kind, suffix):
    """What git has, without what lies beside it in this checkout."""
    if (changes := git("status", "--porcelain")) is None or changes:
        pytest.skip("not a git checkout without changes")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    expected = built(suffix)
    assert build(clone, kind, epoch) == (expected.name, digest(expected))


def test_the_time_is_that_of_the_commit(epoch):
    if (time := git("log", "-1", "--format=%ct")) is None:
        pytest.skip("not a git checkout")
    assert epoch == int(time)
