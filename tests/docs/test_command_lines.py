"""Every command line in the documentation is one that its program takes; none of them is run here.

Programs are `gru-train`, `gru-serve`, `python -m keras_gru` and the benchmarks.
"""

import pytest

from tests.docs.command_lines import complaint, of_page, of_shell
from tests.docs.markdown import blocks, pages, text_of

# Of earlier versions, whose flags may be gone.
PAGES = [page for page in pages() if page != "CHANGELOG.md"]


@pytest.mark.parametrize("page", PAGES)
def test_programs_take_the_command_lines(page):
    whole, named = of_page(text_of(page), blocks(page))
    faults = [(words, complaint(words)) for words in whole]
    faults += [(words, complaint(words, complete=False)) for words in named]
    told = [f"{' '.join(words)}\n{said}" for words, said in faults if said]
    assert not told, "\n\n".join(told)


def test_there_are_many():
    lines = [words for page in PAGES for words in of_page(text_of(page), blocks(page))[0]]
    programs = {words[0] if words[0] != "python" else words[2] for words in lines}
    assert len(lines) > 100
    assert {"gru-train", "gru-serve", "keras_gru", "benchmarks.layer"} <= programs


@pytest.mark.parametrize(
    "line",
    [
        "gru-train sentiment --no-such-flag",
        "gru-train check tickets.csv --horizn 28",
        "gru-train tune forecasting --data sales.csv --unit 4",
        "gru-train forecst runs/RUN",
        "gru-serve export runs/RUN --into models/load",
        "gru-serve serve --model_name=a --model_base_path=/b --bind_adress=0.0.0.0",
        "gru-serve serv",
        "python -m keras_gru compilation train.py",
        "python -m benchmarks.layer --quik",
        "python -m benchmarks.nothing",
        "python -m benchmarks.converted --quick",
    ],
)
def test_faults_are_found(line):
    (words,) = of_shell(line)
    assert complaint(words)


def test_lines_of_a_shell():
    text = (
        "$ A=1 gru-train sentiment --data a.csv && gru-serve inspect m | head  # both\n"
        "(gru-train report runs/a \\\n   --open)\n"
        "cat tickets.csv > gru-train\n"
        'gru-train sentiment --label-separator ";" --units 4; ls\n'
        ".venv/bin/python -m benchmarks.m4 runs/RUN 'a b.csv'\n"
    )
    assert of_shell(text) == [
        ["gru-train", "sentiment", "--data", "a.csv"],
        ["gru-serve", "inspect", "m"],
        ["gru-train", "report", "runs/a", "--open"],
        ["gru-train", "sentiment", "--label-separator", ";", "--units", "4"],
        ["python", "-m", "benchmarks.m4", "runs/RUN", "a b.csv"],
    ]
