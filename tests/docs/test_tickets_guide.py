"""The commands of docs/tickets.md, in their order, on a small file."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from serving.__main__ import main as gru_serve
from tests.serving.conftest import running
from training.__main__ import main as gru_train

GUIDE = (Path(__file__).parents[2] / "docs" / "tickets.md").read_text("utf-8")
BLOCKS = [
    [shlex.split(line) for line in block.replace("\\\n", " ").strip().split("\n")]
    for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
]
TINY = ["--epochs", "2", "--units", "6", "--embedding-size", "6"]
WORDS = {
    "billing": "charged refund invoice card twice",
    "bug": "crashes app error screen freezes",
    "delivery": "parcel courier late lost box",
}


def write_tickets(path, rows, seed):
    """With what goes wrong in such files."""
    rng = np.random.default_rng(seed)
    names = list(WORDS)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "created", "customer", "body", "category"])
        for number in range(rows):
            name = names[0 if number % 10 < 6 else 1 if number % 10 < 9 else 2]
            body = " ".join(rng.choice(WORDS[name].split(), 4)) + f",\nno {number}"
            if number % 60 == 7:
                body = ""
            spelt = name.capitalize() if number % 25 == 3 else name
            writer.writerow([number, "2024-03-01", f"c{rng.integers(60)}", body, spelt])
        writer.writerow([rows, "2024-03-02", "c1", "something else entirely", "other"])


@pytest.fixture
def place(tmp_path, monkeypatch):
    write_tickets(tmp_path / "tickets.csv", 240, seed=0)
    write_tickets(tmp_path / "june.csv", 30, seed=1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def labels(path):
    with path.open(newline="") as file:
        return [row["label"] for row in csv.DictReader(file)]


def test_the_guide_ends_with_a_checked_deployment(place, capsys):
    look, clean, train, predict, export, serve, ask = BLOCKS
    assert gru_train(look[0][1:]) == 2
    told = capsys.readouterr().out
    assert "the text is empty" in told
    assert "differ in spelling only" in told
    assert gru_train(clean[0][1:]) == 0
    assert gru_train([*train[0][1:], *TINY]) == 0
    report = (place / "runs" / "tickets" / "report.md").read_text("utf-8")
    assert report.split("\n")[2].startswith("**Of 100 new texts about ")
    assert gru_train(predict[0][1:]) == 0
    for command in export:
        assert gru_serve(command[1:]) == 0
    base = place / "models" / "tickets"
    flags = [flag.replace("$PWD", str(place)) for flag in serve[0][2:]]
    assert flags[1] == f"--model_base_path={base}"
    with running(place / "log", *flags[:2]) as server:
        for command in ask:
            words = [server.rest if "localhost" in word else word for word in command[1:]]
            assert gru_serve(words) == 0, capsys.readouterr().err
    assert labels(place / "june-labelled.csv") == labels(place / "june-served.csv")
    assert set(labels(place / "june-served.csv")) <= set(WORDS)
