"""Docker, images, models and a running deployment, each made once for the tests marked `docker`.

What is started is stopped again, whatever happens. Images and the base image stay, as a cache.
"""

import os
import signal
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build" / "docker-test"


@pytest.fixture(scope="session")
def figures():
    """Record a sentence with a measurement; `make docker-test` prints them at the end."""

    def note(sentence):
        if path := os.environ.get("KERAS_GRU_FIGURES"):
            with Path(path).open("a") as file:
                file.write(f"{sentence}\n")

    return note


@pytest.fixture(scope="session")
def docker():
    """A Docker Engine: the running one, or one started for the tests."""
    from .engine import EngineError, docker_engine
    from .images import remove_leftovers

    # When terminated, pytest still stops what it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    BUILD.mkdir(parents=True, exist_ok=True)
    try:
        with docker_engine(BUILD) as docker:
            remove_leftovers(docker)
            yield docker
    except EngineError as error:
        pytest.exit(f"docker-test: {error}", returncode=1)


@pytest.fixture(scope="session")
def images(docker, figures):
    """All images, built; their names by target."""
    from .images import build_images

    return build_images(docker, figures)


@pytest.fixture(scope="session")
def models(docker, images, figures):
    """Base paths: `served/sentiment` with version 1, and `next/sentiment` with version 2."""
    from .models import make_models

    return make_models(docker, images, BUILD, figures)


@pytest.fixture(scope="session")
def deployment(docker, images, models, figures):
    """The compose file, running."""
    from .deployment import deployed

    with deployed(docker, models, BUILD, figures) as deployment:
        yield deployment
