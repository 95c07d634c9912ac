"""Versions to roll out."""

import pytest

from gru_serving.conformance.models import save_affine


@pytest.fixture(scope="session")
def bases(tmp_path_factory):
    """Base paths of two models; `m` has three versions, and one that does not load."""
    root = tmp_path_factory.mktemp("rollout")
    for version in (1, 2, 3):
        save_affine(root / "m" / str(version), float(version))
    save_affine(root / "other" / "1")
    (root / "m" / "9").mkdir()
    return root
