"""What is kept between test runs is made anew when it should be, and never else.

Tried in a small checkout: the layer, the training, a server, a test file and its helpers.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import made_once

FILES = {
    "keras_gru/layer.py": "",
    "training/gru_training/loop.py": "",
    "serving/gru_serving/__init__.py": "",
    "serving/gru_serving/client.py": "from gru_serving import codecs",
    "serving/gru_serving/codecs.py": "",
    "serving/gru_serving/server.py": "",
    "tests/__init__.py": "",
    "tests/helper.py": "from tests import further",
    "tests/further.py": "",
    "tests/other.py": "",
    "tests/use.py": """
import sys, time
from pathlib import Path
from tests import helper
from tests.made_once import changed, made_once

def make(folder):
    from gru_serving import client
    time.sleep(0.3)  # so that another process comes meanwhile
    with Path("times").open("a") as file:
        file.write("1")
    (folder / "part").mkdir()
    (folder / "part" / "file").write_text("whole")

folder = made_once("artefact", make)
print(folder, (folder / "part" / "file").read_text())
if sys.argv[1:]:
    (folder / sys.argv[1]).write_text("changed")
    print(*changed())
""",
}


@pytest.fixture
def checkout(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copy(made_once.__file__, tmp_path / "tests")
    return tmp_path


def begin(checkout, *arguments):
    paths = os.pathsep.join([str(checkout), str(checkout / "serving")])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.use", *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    )


def use(checkout, *arguments):
    """The folder, what it holds, and which artefacts are named as changed."""
    with begin(checkout, *arguments) as process:
        said = process.communicate(timeout=60)[0].split()
    assert process.returncode == 0
    return Path(said[0]), *said[1:]


def times_made(checkout):
    return len((checkout / "times").read_text())


def test_one_process_makes_it_and_the_others_wait(checkout):
    processes = [begin(checkout) for _ in range(3)]
    said = [process.communicate(timeout=60)[0] for process in processes]
    assert len(set(said)) == 1
    assert said[0].split()[1] == "whole"
    assert times_made(checkout) == 1
    assert use(checkout)[1] == "whole"
    assert times_made(checkout) == 1


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("name", "anew"),
    [
        ("keras_gru/layer.py", True),
        ("training/gru_training/loop.py", True),
        ("serving/gru_serving/codecs.py", True),
        ("serving/gru_serving/server.py", False),
        ("tests/use.py", True),
        ("tests/further.py", True),
        ("tests/other.py", False),
    ],
)
def test_it_is_made_anew_after_an_edit_of_what_makes_it(checkout, name, anew):
    first = use(checkout)
    with (checkout / name).open("a") as file:
        file.write("\nEDITED = True\n")
    assert (use(checkout) != first) == anew
    assert times_made(checkout) == 1 + anew


@pytest.mark.slow
def test_an_old_one_is_removed(checkout):
    folders = []
    for edit in range(made_once.KEPT + 1):
        (checkout / "keras_gru" / "layer.py").write_text(f"EDIT = {edit}")
        folders.append(use(checkout)[0])
    assert [folder.exists() for folder in folders] == [False, *[True] * made_once.KEPT]
    (checkout / "keras_gru" / "layer.py").write_text(f"EDIT = {edit}")
    assert use(checkout)[0] == folders[-1]
    assert times_made(checkout) == made_once.KEPT + 1


@pytest.mark.slow
@pytest.mark.parametrize("written", ["part/file", "more"])
def test_what_a_test_changes_is_named_and_made_anew(checkout, written):
    folder, _, changed = use(checkout, written)
    assert changed == folder.name
    assert use(checkout) == (folder, "whole")
    assert times_made(checkout) == 2
