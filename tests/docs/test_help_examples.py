"""The help of each command ends with examples, and each of them is one that its program takes.

The parser of the program reads all of them. What needs neither a training nor a server is run as
well, on the files, runs and exports of `materials`.
"""

import contextlib
import re
import shutil

import pytest

from gru_serving.__main__ import COMMANDS as SERVING
from gru_serving.__main__ import main as gru_serve
from gru_training.__main__ import main as gru_train
from gru_training.command_line import COMMANDS as TRAINING
from gru_training.task import TASKS, find_task
from tests.docs import materials
from tests.docs.command_lines import complaint, of_shell
from tests.docs.shell import Shell
from tests.made_once import made_once

OF_TASKS = [command.name for name in TASKS for command in find_task(name).commands]
COMMANDS = [
    *(("gru-train", name) for name in (*TASKS, *TRAINING, *OF_TASKS)),
    *(("gru-serve", name) for name in SERVING),
]
RUN = [
    ("gru-train", "check"), ("gru-train", "predict"), ("gru-train", "compare"),
    ("gru-train", "report"), ("gru-train", "forecast"), ("gru-serve", "export"),
    ("gru-serve", "inspect"), ("gru-serve", "verify"), ("gru-serve", "example-request"),
    ("gru-serve", "publish"), ("gru-serve", "diff"), ("gru-serve", "prune"),
]  # fmt: skip
"""Commands whose examples are run; the others train for minutes or ask a server."""
NOT_HERE = re.compile(r"--url|\||--open")
"""Examples that ask a server, another program or a browser."""
MODELS = """model_config_list {
  config { name: "tickets" base_path: "%s/models/tickets" model_platform: "tensorflow" }
}
"""


def examples(program, command, capsys):
    """The command lines at the end of a command's help."""
    with contextlib.suppress(SystemExit):
        (gru_train if program == "gru-train" else gru_serve)([command, "--help"])
    said = "".join(capsys.readouterr())
    _, found, block = said.rpartition("\nexample")
    assert found, said
    block = re.sub(r"\\\n *", " ", block)
    return re.findall(rf"^(?:s?: )? *((?:\S.*\| )?{program} .*)", block, re.M)


@pytest.mark.parametrize(("program", "command"), COMMANDS)
def test_programs_take_the_examples(program, command, capsys):
    lines = [words for line in examples(program, command, capsys) for words in of_shell(line)]
    told = {" ".join(words): said for words in lines if (said := complaint(words))}
    assert not told
    assert [program, command] in [words[:2] for words in lines]


@pytest.mark.long
@pytest.mark.parametrize(("program", "command"), RUN)
def test_examples_run(program, command, tmp_path, monkeypatch, capsys):
    def make(folder):
        with contextlib.chdir(folder):
            materials.make(folder)

    place = shutil.copytree(made_once("guide_materials", make), tmp_path / "place")
    monkeypatch.chdir(place)
    monkeypatch.setenv("MPLBACKEND", "agg")
    (place / "models.config").write_text(MODELS % place)
    lines = [line for line in examples(program, command, capsys) if not NOT_HERE.search(line)]
    assert lines
    for line in lines:
        Shell(tmp_path).run(line)
