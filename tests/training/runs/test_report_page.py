"""A report as one page; what it does in a browser is tested in tests/browser."""

import json
import re
import shutil

import numpy as np
import pytest

from gru_training.__main__ import main
from gru_training.errors import RunDirectoryError
from gru_training.runs.directory import RunDirectory
from gru_training.runs.report_page import note_lines, page_data, write_report_page

HOSTILE = "</script><script>alert(1)</script>__DATA____BODY__"


def data_of(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def cells(markdown):
    rows = [line.strip("|").split("|") for line in markdown.splitlines() if line.startswith("| ")]
    return [cell.strip().strip("*") for row in rows for cell in row]


def test_the_page_has_the_tables_of_the_report(tiny_run):
    page = (tiny_run.path / "report.html").read_text("utf-8")
    markdown = (tiny_run.path / "report.md").read_text("utf-8")
    shown = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", page)
    texts = [re.sub(r"<[^>]+>", "", cell) for cell in shown]
    wanted = [cell.replace('"', "&quot;") for cell in cells(markdown)]
    assert [text for text in texts if text] == [cell for cell in wanted if cell]
    assert not re.search(r'(src|href)="(?!data:)', page)


def test_counts_and_mistakes(tiny_run):
    rows = list(tiny_run.test_predictions())
    data = page_data(tiny_run.path)["confusion_matrix.png"]
    assert np.sum(data["counts"]) == len(rows)
    wrong = [row for row in rows if row.label != row.predicted]
    assert np.sum(data["counts"]) - np.trace(data["counts"]) == len(wrong) == data["wrong"]
    assert sorted(row[4] for row in data["mistakes"]) == sorted(row.text for row in wrong)
    confidence = [row[3] for row in data["mistakes"]]
    assert confidence == sorted(confidence, reverse=True)


def test_what_came_is_what_later_windows_hold(forecasting_run):
    data = page_data(forecasting_run.path)["forecasts.png"]
    with np.load(forecasting_run.path / "test_windows.npz") as windows:
        histories, origins = windows["histories"], windows["origins"]
    steps = histories.shape[1]
    known = {}
    for history, origin in zip(histories, origins, strict=True):
        for step in range(steps):
            known[origin - steps + step] = history[step]
    checked = 0
    for window in data["windows"]:
        for k, came in enumerate(window["came"]):
            for step, value in enumerate(came):
                if value is not None:
                    expected = known[window["origin"] + step][k]
                    assert value == pytest.approx(expected, rel=1e-4)
                    checked += 1
    assert checked > 20


def test_hostile_texts_stay_texts(tiny_run, tmp_path):
    run = shutil.copytree(tiny_run.path, tmp_path / "run")
    lines = (run / "test_predictions.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    classes = json.loads((run / "classes.json").read_text())
    rows[0] |= {"text": HOSTILE, "label": classes[0], "predicted": classes[1]}
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (run / "test_predictions.jsonl").write_text(text, "utf-8")
    markdown = f"# {HOSTILE}\n\n{HOSTILE}\n\n[a](javascript:alert(1)) ![b](../config.json)\n"
    (run / "report.md").write_text(markdown + (run / "report.md").read_text("utf-8"), "utf-8")
    page = write_report_page(run).read_text("utf-8")
    assert "<script>alert" not in page
    assert 'href="javascript' not in page
    assert page.count("<script") == 2
    assert HOSTILE in [row[4] for row in data_of(page)["confusion_matrix.png"]["mistakes"]]
    assert "<title>&lt;/script&gt;" in page


def test_a_task_with_other_figures_keeps_its_pictures(tiny_run, tmp_path):
    """Answers that are lists, as of several labels per text, are no error."""
    run = shutil.copytree(tiny_run.path, tmp_path / "run")
    (run / "test_predictions.jsonl").write_text('{"text": "a", "label": ["x"], "predicted": []}\n')
    (run / "metrics.json").write_text("[]")
    (run / "marked_texts.json").write_text('[{"answer": "a", "tokens": ["b"]}]')
    page = write_report_page(run).read_text("utf-8")
    assert data_of(page) == {}
    assert page.count('src="data:image/png;base64,') >= 4


def test_command(tiny_run, tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    run = shutil.copytree(tiny_run.path, tmp_path / "run")
    (run / "report.html").unlink()
    assert main(["report", str(run), "--open"]) == 0
    assert str(run / "report.html") in capsys.readouterr().out
    assert opened == [(run / "report.html").as_uri()]
    (run / "report.html").write_text("old")
    RunDirectory.open(run)  # the page of another release has another size
    assert main(["report", str(run)]) == 0
    assert (run / "report.html").read_text() == "old"
    assert main(["report", str(run), "--rewrite"]) == 0
    assert (run / "report.html").read_text("utf-8") == (
        (tiny_run.path / "report.html").read_text("utf-8")
    )
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "nowhere"):
        assert main(["report", str(tmp_path / folder)]) == RunDirectoryError("").exit_code
    assert "got a folder without" in capsys.readouterr().err


def test_notes_are_sentences():
    notes = ["2 rows dropped, lines 3, 7, 8, 9, 10 ...", "1 class left out"]
    assert note_lines(notes) == [
        "\nNote: 2 rows dropped, lines 3, 7, 8, 9, 10 ...",
        "\nNote: 1 class left out.",
    ]
