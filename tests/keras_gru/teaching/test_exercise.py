"""The exercise: a reader's answers, right and wrong, from a pipe and from a terminal."""

import io
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from keras_gru.__main__ import main
from keras_gru.teaching.exercise import blanks, close_enough, items, run_exercise
from keras_gru.teaching.network import parse_network
from keras_gru.teaching.trace import trace
from keras_gru.teaching.worked_example import load_example
from tests.ctrl_c import WITH_CTRL_C
from tests.keras_gru.teaching.random_networks import NETWORKS

ROOT = Path(__file__).parents[3]
ARGUMENTS = ["-m", "keras_gru", "trace", "good_movie", "--exercise", "2"]


def play(found, answers, count=3):
    """Run an exercise with the answers; returns the score and what was said."""
    said, lines = [], iter(answers)

    def ask(prompt):
        line = next(lines, None)
        if line is None:
            raise EOFError
        if isinstance(line, BaseException):
            raise line
        return line

    return run_exercise(found, count, ask, said.append), "\n".join(said)


def expected(found, count=3):
    lines = list(items(found))
    return [lines[index].values for index in sorted(blanks(lines, count))]


def written(values, decimals=3):
    return " ".join(f"{value:.{decimals}f}" for value in values)


@pytest.mark.parametrize("name", NETWORKS)
def test_right_answers_are_right_in_every_cell(name):
    found = trace(parse_network(NETWORKS[name]))
    answers = [written(values) for values in expected(found, 8)]
    score, said = play(found, answers, 8)
    assert (score.first, score.second, score.shown, score.skipped) == (8, 0, 0, 0)
    assert said.count("Right.") == 8
    assert said.endswith("8 of 8 right.")
    assert said.count("____") >= 8


def test_a_blank_is_not_shown_before_it_is_answered():
    found = trace(load_example("good_movie").network())
    _, said = play(found, [])
    hidden = expected(found)[0]
    assert written(hidden, 4) not in said.split("Forward, ")[1]
    assert "____ ____ ____\n\nStopped." in said


def test_wrong_answers_get_a_hint_that_names_the_equation():
    found = trace(load_example("good_movie").network())
    first, second, third = expected(found)
    answers = ["9 " * len(first), written(first), "?", written(second + 0.5), written(second - 0.5)]
    score, said = play(found, [*answers, written(third)])
    assert (score.first, score.second, score.shown) == (1, 1, 1)
    assert "Not yet: number 1, 2, 3 of 3. Hint: equation (1) of DERIVATION.md" in said
    assert f"It is {written(second, 4)}. Hint: equation (" in said
    assert said.endswith("2 of 3 right, 1 of them at the second try, 1 shown.")


def test_a_turned_sign_is_told():
    found = trace(load_example("one_training_step").network())
    lines = list(items(found))
    last = sorted(blanks(lines, 2))[-1]
    assert lines[last].line.name == "dh"
    said = play(found, [written(expected(found, 2)[0]), written(-lines[last].values)], 2)[1]
    assert "The sign is the other way round. Hint: equation (13)" in said


@pytest.mark.parametrize("text", ["abc", "0.1", "0.1 0.2 0.3 0.4", "nan nan nan", "0.1 0.2 x"])
def test_what_is_no_answer_is_not_counted(text):
    found = trace(load_example("good_movie").network())
    answers = [text, *(written(values) for values in expected(found))]
    score, said = play(found, answers)
    assert score.first == 3
    assert f"Expected 3 numbers such as 0.250, got {text!r}." in said


@pytest.mark.parametrize("form", ["[0.3, 0.2, 0.4]", "0.3;0.2;0.4", " 0.300  0.2 0.4 "])
def test_answers_may_be_written_as_people_write_them(form):
    found = trace(load_example("good_movie").network())
    assert play(found, [form])[0].first == 1


def test_a_small_gradient_is_not_zero():
    found = trace(load_example("good_movie").network())
    lines = list(items(found))
    small = next(i for i in lines if i.line.name == "d_a_z" and 2e-4 < abs(i.values[1]) < 2e-3)
    assert not close_enough(np.zeros(3), small.values).all()
    assert close_enough(np.round(small.values, 3), small.values).all()


def test_it_ends_politely():
    found = trace(load_example("good_movie").network())
    first = expected(found)[0]
    score, said = play(found, [written(first), ""])
    assert said.endswith("Stopped. 1 of 3 right, 1 skipped, 1 left.")
    assert score.first == 1
    with pytest.raises(KeyboardInterrupt):
        play(found, [written(first), KeyboardInterrupt()])


def test_piped_input_is_checked_and_its_end_ends_the_command(capsys, monkeypatch):
    found = trace(load_example("good_movie").network())
    right = written(expected(found, 2)[0])
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{right}\n"))
    assert main(ARGUMENTS[2:]) == 0
    out = capsys.readouterr().out
    assert f"  > {right}\n  Right." in out
    assert out.endswith("Stopped. 1 of 2 right, 1 left.\n")


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_ends_it():
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [*WITH_CTRL_C, *ARGUMENTS], cwd=ROOT, stdin=child, stdout=child, stderr=child
    )
    os.close(child)
    seen = b""
    started = time.monotonic()
    while b"  > " not in seen:
        seen += os.read(parent, 65536)
        assert time.monotonic() - started < 120
    os.kill(process.pid, signal.SIGINT)
    try:
        while chunk := os.read(parent, 65536):
            seen += chunk
    except OSError:  # the other end of a terminal is closed
        pass
    os.close(parent)
    assert process.wait(60) == 130
    assert b"Stopped. 0 of 2 right, 2 left." in seen
    assert b"Traceback" not in seen
