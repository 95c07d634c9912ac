"""A version as it is published."""

import shutil

import pytest

from gru_serving.storage.digests import write_digests


@pytest.fixture
def version(models, tmp_path):
    """A version with digests, under its own base path."""
    version = shutil.copytree(models / "text" / "1", tmp_path / "base" / "1")
    write_digests(version)
    return version
