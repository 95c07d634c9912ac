"""Runs of a tiny language model and of classifiers that begin with it."""

import pytest

from tests.made_once import made_once
from tests.training.sentiment.pretrained.runs import make


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return made_once(tmp_path_factory, "pretrained_runs", make)
