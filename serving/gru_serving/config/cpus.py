"""The number of threads that can run in parallel."""

import os


def schedulable_cpus() -> int:
    """Count the CPUs that this process may run on, as TF Serving does for its defaults."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
