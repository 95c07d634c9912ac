"""The order of the test files where several processes share them."""

from collections import Counter

SLOW_SECONDS, OTHER_SECONDS = 15, 0.2
"""About what a test takes that is marked `slow` or `long`, and any other one."""


def pytest_collection_modifyitems(config, items):
    """Long files first, so that no process has one left when the others are done.

    By itself pytest-xdist begins with the files that have the most tests, which are short ones;
    the Makefile turns that off.
    """
    if not hasattr(config, "workerinput"):
        return
    seconds = Counter()
    for item in items:
        slow = any(item.get_closest_marker(name) for name in ("slow", "long"))
        seconds[item.path] += SLOW_SECONDS if slow else OTHER_SECONDS
    items.sort(key=lambda item: -seconds[item.path])
