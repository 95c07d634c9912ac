"""The corpus of the fuzzer, read without it: good inputs, and those that once broke a reader."""

import time
import tracemalloc
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(path for path in CORPUS.rglob("*") if path.is_file())
PATIENCE = 5.0
"""Seconds of processor time for one input."""
MOST_BYTES = 256 << 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_input_is_read_or_refused(path):
    content, started = path.read_bytes(), time.process_time()
    tracemalloc.start()
    try:
        TARGETS[path.parent.name](content)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < PATIENCE
    assert most < MOST_BYTES


def test_each_target_has_inputs():
    assert {path.parent.name for path in FILES} == TARGETS.keys()
