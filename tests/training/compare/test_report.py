import json

import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console

from gru_training.compare.comparison import compare_outcomes
from gru_training.compare.report import (
    aligned,
    draw_differences,
    print_tables,
    write_comparison,
    write_markdown,
)
from gru_training.errors import RunDirectoryError
from tests.training.compare.answers import text_outcomes, window_outcomes


def texts(names, source=None, notes=()):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 400)
    floors = {"majority class": text_outcomes(rng, labels, -9.0).model}
    outcomes = {
        name: text_outcomes(rng, labels, 1.0 + number / 2, baselines=floors, notes=notes)
        for number, name in enumerate(names)
    }
    settings = {name: {"--units": str(number)} for number, name in enumerate(names)}
    return compare_outcomes(outcomes, settings, source, 999, 0)


def windows(count, steps=10):
    rng = np.random.default_rng(1)
    outcomes = {name: window_outcomes(rng.normal(size=count), steps) for name in ("one", "other")}
    return compare_outcomes(outcomes, {name: {} for name in outcomes}, "new.csv", 999, 0)


def table_of(markdown, heading):
    """The cells of the first table after a line, as a Markdown parser sees them."""
    lines = markdown.split(heading, 1)[1].strip().split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


@pytest.mark.slow
def test_markdown_holds_what_was_estimated():
    comparison = texts(["small", "large", "larger"], "rows.csv", ("was trained on this",))
    markdown = write_markdown(comparison)
    assert "3 runs on the same 400 texts of rows.csv." in markdown
    measured = table_of(markdown, "# Comparison with small")
    assert measured[0] == ["", "accuracy (95 %)", "macro F1 (95 %)", "log loss (95 %)"]
    assert [row[0] for row in measured[1:]] == ["small", "large", "larger", "majority class"]
    estimate = comparison.contenders[1].measures["accuracy"].value
    low, high = (f"{100 * bound:.2f}" for bound in (estimate.low, estimate.high))
    assert measured[2][1] == f"{100 * estimate.value:.2f} % ({low} to {high})"
    found = table_of(markdown, "## Differences from small")
    larger = comparison.contenders[2]
    assert found[2][4] == f"{larger.mcnemar.gained} to {larger.mcnemar.lost}"
    assert found[2][-1] == larger.verdict == "better"
    assert "**Better than small by accuracy: " in markdown
    settings = table_of(markdown, "## Settings that differ")
    assert settings == [["", "--units"], ["small", "0"], ["large", "1"], ["larger", "2"]]
    assert "Note: large: was trained on this." in markdown
    assert "McNemar's test" in markdown
    assert "Diebold" not in markdown


@pytest.mark.slow
def test_the_console_says_the_same(capsys):
    comparison = texts(["small", "large"])
    print_tables(comparison, Console(soft_wrap=True, width=80))
    said = capsys.readouterr().out
    assert "2 runs on the same 400 texts.\n" in said
    for row in table_of(write_markdown(comparison), "## Differences from small"):
        assert all(cell in said for cell in row)


@pytest.mark.slow
def test_the_method_fits_the_number_of_windows():
    assert "Harvey, Leybourne and Newbold" in write_markdown(windows(300))
    assert "fewer than 20 windows" in write_markdown(windows(80))
    few = write_markdown(windows(30))
    assert "overlap too much for a test or an interval, which need 30" in few
    assert table_of(few, "## Differences from one")[0] == ["against one", "MSE", "MAE"]


@pytest.mark.slow
def test_runs_that_answer_alike_are_remarked_on():
    rng = np.random.default_rng(2)
    outcomes = text_outcomes(rng, rng.integers(0, 3, 50), 1.0)
    comparison = compare_outcomes({"a": outcomes, "b": outcomes}, {"a": {}, "b": {}}, None, 999, 0)
    markdown = write_markdown(comparison)
    assert "b and a are both right or both wrong" in markdown
    assert "None: the runs were made alike." in markdown


@pytest.mark.slow
def test_a_spotless_model_may_still_err():
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, 150)
    outcomes = {"a": text_outcomes(rng, labels, 1.0), "b": text_outcomes(rng, labels, 50.0)}
    markdown = write_markdown(compare_outcomes(outcomes, {"a": {}, "b": {}}, None, 999, 0))
    assert "b got none of the 150 texts wrong" in markdown
    assert "up to 2.00% wrong would fit too" in markdown


@pytest.mark.slow
def test_many_settings_stand_below_each_other():
    rng = np.random.default_rng(3)
    outcomes = text_outcomes(rng, rng.integers(0, 3, 50), 1.0)
    settings = {"a": {"--b": "1", "--c": "1", "--d": "x|y"}, "b": {"--b": "2", "--c": "2"}}
    comparison = compare_outcomes({"a": outcomes, "b": outcomes}, settings, None, 999, 0)
    markdown = write_markdown(comparison)
    assert "|  | a | b |\n|---|---:|---:|\n| --b | 1 | 2 |\n" in markdown
    assert r"| --d | x\|y |  |" in markdown


def test_aligned():
    table = [["", "long heading", "b"], ["a name", "1", "22"]]
    assert aligned(table) == ["        long heading   b", "a name             1  22"]


@pytest.mark.slow
def test_the_folder_is_whole_or_not_there(tmp_path):
    comparison = texts(["small", "large"])
    folder = write_comparison(comparison, tmp_path / "found")
    assert {path.name for path in folder.iterdir()} == {
        "comparison.html", "comparison.json", "comparison.md", "comparison.png", "manifest.json",
    }  # fmt: skip
    stored = json.loads((folder / "comparison.json").read_text("utf-8"))
    assert stored["contenders"][1]["p_value"] == comparison.contenders[1].p_value
    with pytest.raises(RunDirectoryError, match="found exists already"):
        write_comparison(comparison, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["found"]


@pytest.mark.slow
@pytest.mark.parametrize("runs", [2, 12])
def test_the_picture_grows_with_the_runs_and_is_the_same_again(tmp_path, runs):
    comparison = texts([f"sentiment-tickets-2026-{'x' * 30}-{run}" for run in range(runs)])
    draw_differences(comparison, tmp_path / "a.png")
    draw_differences(comparison, tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    picture = imread(tmp_path / "a.png")
    assert picture[..., :3].std() > 0.03  # not blank
    assert (picture.shape[0] > 600) == (runs == 12)


def test_windows_without_intervals_can_be_drawn(tmp_path):
    draw_differences(windows(30), tmp_path / "few.png")
    assert imread(tmp_path / "few.png").std() > 0.03
