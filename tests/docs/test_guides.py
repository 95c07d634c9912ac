"""Every block of code in the documentation is run, or says above itself why not.

The guides are run here, each from its first block to its last, on the small files of `materials`.
Above a block may stand one of these comments, with a reason:

    <!-- checked: REASON -->   the trainings in it end after the check of their data
    <!-- parsed: REASON -->    its command lines are only read, by `test_command_lines.py`
    <!-- not run: REASON -->   nothing of it is run
"""

import contextlib
import json
import re
import shutil
import warnings
from collections import Counter
from pathlib import Path

import pytest

from tests.docs import materials
from tests.docs.command_lines import of_shell
from tests.docs.markdown import ROOT, blocks, pages, text_of
from tests.docs.shell import Shell
from tests.made_once import made_once

CODE = ("sh", "python", "py", "json")
MARKS = ("checked", "parsed", "not run")
FOLDERS = ("docs/how_to/", "docs/reference/", "docs/explanation/", "docs/notes/", "docker/")
"""Of the pages that are run here; any other one with code has a test that names it."""
SERVED = {
    "docs/how_to/explain.md",
    "docs/how_to/gates.md",
    "docs/how_to/query.md",
    "docs/how_to/scoring.md",
    "docs/reference/server.md",
}
"""Pages that ask a server which the reader has started before."""
MATERIALS = re.compile(r"tickets|mails|flags|reviews|sales\.csv|train\.py|\bruns/|\bmodels/")
NEEDS = {"torch": "torch", "onnxruntime": "onnxruntime", "tensorflow_serving": "tensorflow_serving"}


def runs(block):
    """Whether a block is run by this file."""
    return block.language in ("sh", "python", "py") and block.mark in ("", "checked")


RUN = [page for page in pages() if page.startswith(FOLDERS) and any(map(runs, blocks(page)))]


@pytest.fixture(scope="module")
def made():
    def make(folder):
        with contextlib.chdir(folder):
            materials.make(folder)

    return made_once("guide_materials", make)


@pytest.fixture
def place(page, request, tmp_path, monkeypatch):
    """The working directory: with the materials, if the page speaks of any."""
    folder = tmp_path / "place"
    asked = "\n".join(block.text for block in blocks(page) if runs(block))
    if page in SERVED or MATERIALS.search(asked):
        shutil.copytree(request.getfixturevalue("made"), folder)
    else:
        folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "agg")
    return folder


@pytest.mark.long
@pytest.mark.parametrize("page", RUN)
def test_page_runs(page, place, tmp_path):
    found = [block for block in blocks(page) if runs(block) or _is_config(block)]
    for block in found:
        for words in of_shell(block.text) if block.language == "sh" else ():
            if words[0] == "gru-train" and "--name" in words and block.mark != "checked":
                shutil.rmtree(place / "runs" / words[words.index("--name") + 1], True)
    shell = Shell(tmp_path)
    names = {"__name__": "__main__"}
    try:
        if page in SERVED:
            (place / "served.config").write_text(_served(place))
            flags = [f"--port={shell.port}", f"--rest_api_port={shell.rest_port}"]
            flags.append(f"--model_config_file={place / 'served.config'}")
            shell.serve(flags)
        for block in found:
            if _is_config(block):
                text = block.text.replace('"/models/', f'"{place}/models/')
                (place / "models.config").write_text(text)
            elif block.language == "sh":
                shell.run(_checks(block.text) if block.mark == "checked" else block.text)
            else:
                _run_python(shell.with_ports(block.text), names, block)
    finally:
        shell.stop()


def _run_python(text, names, block):
    for word, package in NEEDS.items():
        if re.search(rf"^(import|from) {word}\b", text, re.M):
            pytest.importorskip(package)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Layer .* does not have a `quantize`", UserWarning)
        warnings.filterwarnings(
            "ignore", "\\s*Warning: tf.lite.Interpreter is deprecated", UserWarning
        )
        exec(compile("\n" * block.line + text, block.page, "exec"), names)


def _is_config(block):
    return block.text.startswith("model_config_list") and "logging_config" not in block.text


def _served(place):
    models = "".join(
        f'config {{ name: "{name}" base_path: "{place}/models/{name}" '
        'model_platform: "tensorflow" } '
        for name in ("tickets", "load")
    )
    return f"model_config_list {{ {models} }}"


def _checks(text):
    """The same lines with `gru-train check` in the place of trainings."""
    return re.sub(r"^gru-train (?:sentiment|forecasting) --data (\S+)", r"gru-train check \1", text,
                  flags=re.M)  # fmt: skip


@pytest.mark.parametrize("page", pages())
def test_every_block_is_run_or_says_why_not(page):
    found = [block for block in blocks(page) if block.language in CODE]
    if not page.startswith(FOLDERS):
        asked = [block for block in found if block.mark != "not run"]
        assert not asked or has_own_test(page), f"no test names {page}"
        return
    for block in found:
        if block.mark:
            assert block.mark in MARKS, block.place
            assert len(block.reason) > 10, f"{block.place}: expected a reason"
        if block.mark == "parsed":
            assert block.language == "sh", block.place
            assert of_shell(block.text), f"{block.place}: no command line to read"
        elif block.language == "json":
            for line in _values(block.text):
                json.loads(line)
        else:
            assert runs(block) or block.mark == "not run", block.place


def has_own_test(page):
    """Whether a test of the documentation, or of the package, names a page."""
    tests = [path for path in ROOT.glob("tests/**/test_*.py") if path != Path(__file__)]
    return any(Path(page).name in path.read_text("utf-8") for path in tests)


def _values(text):
    """The values of a block of JSON: the block itself, or each of its lines."""
    return [text] if not text.startswith('{"') or "\n " in text else text.splitlines()


def test_little_is_not_run():
    found = [block for page in pages() if page.startswith(FOLDERS) for block in blocks(page)]
    counts = Counter(block.mark for block in found if block.language in CODE)
    assert counts[""] > 50
    assert counts["not run"] <= 19  # what needs other machines, root or an image
    assert counts["parsed"] + counts["checked"] <= 26


def test_guides_begin_with_what_to_do():
    """One task a page: a title of a few words that begins with a verb, and code."""
    for page in pages():
        if page.startswith("docs/how_to/"):
            text = text_of(page)
            title = text.partition("\n")[0].removeprefix("# ")
            assert not title.startswith(("The ", "A ", "How ")), page
            assert len(title) <= 70, page
            assert len(text.splitlines()) <= 130, f"{page}: a guide is short"
            assert any(block.language in CODE for block in blocks(page)), page
