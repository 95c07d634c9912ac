"""What all tests share: kept artefacts and programs, and the order of files among processes."""

import gc
import importlib
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import made_once

SLOW_SECONDS, OTHER_SECONDS = 10, 0.1
"""About what a test takes that is marked `slow` or `long`, and any other one."""
STATM = Path("/proc/self/statm")
GB_OF_A_PROCESS = 4
"""What a process of tests may need."""
SECONDS = made_once.CACHE / "seconds.json"
"""What each test took when it ran last, by its id."""
_seconds = Counter()
BYTES_BETWEEN_COLLECTIONS = 200_000_000
"""How much more memory a process holds before garbage is collected after a file."""
MODULES_BETWEEN_FREEZES = 100
"""How many more modules are imported before what they hold is set aside again."""
_collected_at = [0]
"""Bytes held after each collection."""
_frozen_at = [0]
"""Numbers of modules at which their objects were set aside."""

# Read as TensorFlow is imported, in this process and in those that tests start. XLA keeps what it
# compiles, and notes at each program that it finds two features of its own no processor's.
os.environ.setdefault(
    "TF_XLA_FLAGS", f"--tf_xla_persistent_cache_directory={made_once.compiled_programs()}"
)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# A shell has Ctrl-C ignored in what it runs in the background, and all below inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


if os.environ.get("NOTHING_MISSING"):
    # Where all packages are to be there, a test of one that is not must fail.
    def _imported(name, *_, **__):
        return importlib.import_module(name)

    pytest.importorskip = _imported


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One process more than there are cores, as many tests wait for a server; fewer in few GB."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return max(1, min(cores + 1, round(memory / GB_OF_A_PROCESS)))


def pytest_sessionstart(session):
    if not hasattr(session.config, "workerinput"):
        made_once.tidy()


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_behind():
    """Release the graphs of a file; fail if it has changed what is kept for others."""
    yield
    if "tensorflow" in sys.modules and _has_grown():
        _collect()
        _collected_at.append(_bytes_held())
    if names := made_once.changed():
        pytest.fail(f"changed by a test of this file, or beside it: {', '.join(names)}")


def _has_grown():
    """Whether there is much more than after the last collection, or no telling."""
    held = _bytes_held()
    return held is None or held > _collected_at[-1] + BYTES_BETWEEN_COLLECTIONS


def _bytes_held():
    if STATM.exists():
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


def _collect():
    """Collect garbage, without looking at what imported modules hold.

    That is a million objects of TensorFlow and Keras, and takes a second each time. They are set
    aside after a full collection, as long as modules have been added since the last one.
    """
    gc.collect()
    if len(sys.modules) >= _frozen_at[-1] + MODULES_BETWEEN_FREEZES:
        gc.freeze()
        _frozen_at.append(len(sys.modules))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    _mark_all_cases_but_the_first(items)
    result = yield  # pytest chooses by `-m`
    if hasattr(config, "workerinput"):
        _sort_by_length(items)
    return result


def _mark_all_cases_but_the_first(items):
    """Mark as `slow` what is left of a test with `slow_cases` after its first case."""
    seen = set()
    for item in items:
        if item.get_closest_marker("slow_cases"):
            if (item.path, item.originalname, item.cls) in seen:
                item.add_marker(pytest.mark.slow)
            seen.add((item.path, item.originalname, item.cls))


def _sort_by_length(items):
    """Put long files first, so that no process has one left when the others are done.

    By itself pytest-xdist begins with the files that have the most tests, which are short ones;
    the Makefile turns that off.
    """
    known, seconds = _known_seconds(), Counter()
    for item in items:
        slow = any(item.get_closest_marker(name) for name in ("slow", "long"))
        guess = SLOW_SECONDS if slow else OTHER_SECONDS
        seconds[item.path] += known.get(item.nodeid, guess)
    items.sort(key=lambda item: -seconds[item.path])


def _known_seconds():
    return json.loads(SECONDS.read_text()) if SECONDS.exists() else {}


def pytest_runtest_logreport(report):
    if hasattr(report, "node"):  # of another process
        _seconds[report.nodeid] += report.duration


def pytest_sessionfinish(session):
    """Keep what each test of several processes took, for the order of the next time."""
    if _seconds:
        kept = _known_seconds() | {name: round(took, 2) for name, took in _seconds.items()}
        new = SECONDS.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(kept))
        new.replace(SECONDS)
