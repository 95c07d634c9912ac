"""What takes long to make is made once for all processes of a test run."""

import os

from filelock import FileLock


def made_once(tmp_path_factory, name, make):
    """A folder of the test run; `make(folder)` fills it in the process that comes first.

    Tests leave what is in it as it is.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    done = folder.with_name(f"{name}.done")
    with FileLock(folder.with_name(f"{name}.lock")):
        if not done.exists():
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
