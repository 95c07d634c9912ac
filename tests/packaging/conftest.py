"""The wheel in fresh environments of each Python, made once for the tests that use them."""

import shutil

import pytest

from tests.packaging.fresh_environment import FreshEnvironment, interpreter, pythons


def pytest_generate_tests(metafunc):
    if "python" in metafunc.fixturenames:
        metafunc.parametrize("python", pythons(), indirect=True, scope="session")


@pytest.fixture(scope="session")
def python(request):
    """An interpreter of the version that is asked for."""
    if (found := interpreter(request.param)) is None:
        pytest.skip(f"Python {request.param}: not found, neither on PATH nor among pyenv's")
    return found


@pytest.fixture(scope="session")
def environment(python, tmp_path_factory):
    """Makes an environment with an extra, or gives the one that it has made."""
    made = {}

    def with_extra(extra=""):
        if extra not in made:
            folder = tmp_path_factory.mktemp(extra or "base") / "environment"
            made[extra] = FreshEnvironment(folder, extra, python)
        return made[extra]

    yield with_extra
    for one in made.values():  # gigabytes each, where the cache is on another disk
        shutil.rmtree(one.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def affine(tmp_path_factory):
    """Base path of a model."""
    from gru_serving.conformance.models import save_affine

    path = tmp_path_factory.mktemp("affine")
    save_affine(path / "1")
    return path


@pytest.fixture(scope="session")
def exported(environment):
    """Base path of a text classifier that was trained and exported with the extra `train`."""
    train = environment("train")
    small = ("--set", "reviews=300", "--epochs", "1", "--runs-dir", "runs", "--name", "small")
    train.succeeds("gru-train", "sentiment", "--preset", "demo", *small)
    train.succeeds("gru-serve", "export", "runs/small", "--to", "models/small")
    return train.work / "models" / "small"
