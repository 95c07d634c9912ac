"""Runs of a tiny language model and of classifiers that begin with it."""

import pytest

from tests.made_once import made_once
from tests.training.sentiment.pretrained.runs import make


@pytest.fixture(scope="session")
def folder():
    return made_once("pretrained_runs", make)
