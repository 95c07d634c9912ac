"""`gru-train check`, and the same check before a training."""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gru_training.__main__ import main
from gru_training.config import to_dict
from gru_training.loop.checkpoint import Checkpoint, FitState
from gru_training.runs.directory import package_version
from gru_training.sentiment.config import SentimentConfig, SentimentDataConfig, SentimentRunConfig
from gru_training.sentiment.run import SentimentRun
from gru_training.task import TASKS
from tests.training.conftest import write_waves
from tests.training.fresh_process import in_fresh_process, processor_seconds

REPOSITORY = Path(__file__).parents[2]
GOOD = "text,label\n" + "".join(f"good {i},x\ngood -{i},y\n" for i in range(1, 9))
BAD = GOOD + ",x\nno label,\nalone,z\n"
TINY = ["--epochs", "1", "--units", "4", "--set", "embedding_size=4", "--no-bidirectional"]
HEAVY = {"h5py", "keras", "matplotlib", "scipy", "sklearn", "statsmodels", "tensorflow"}
TABLES = {"pandas", "pyarrow"}
"""Which a table of texts is read without, and a series of usual times."""


def write(path, content):
    path.write_text(content)
    return str(path)


def test_errors_in_texts_come_without_tensorflow(tmp_path):
    path = write(tmp_path / "bad.csv", BAD)
    commands = ["check", path], ["sentiment", "--data", path]
    (check, training), imported = in_fresh_process(*commands, heavy=HEAVY | TABLES)
    assert (check.status, training.status) == (2, 2)
    assert not imported
    for said in (
        "line 18: the text is empty",
        "line 19: the label is missing",
        "class 'z' has 1 row",
        "--drop-bad --drop-small-classes",
    ):
        assert said in check.out
        assert said in training.errors
    assert "TensorFlow" not in str((check, training))


def test_errors_in_a_series_come_without_tensorflow(tmp_path):
    path = write_waves(tmp_path / "waves.csv")
    lines = path.read_text().splitlines()
    lines[7], lines[9] = lines[7].replace(",", ",x", 1), lines[8]
    path.write_text("\n".join(lines))
    settings = ["--lookback", "24", "--horizon", "6", "--set", "segment=6"]
    commands = ["check", str(path), *settings], ["forecasting", "--data", str(path), *settings]
    (check, training), imported = in_fresh_process(*commands, heavy=HEAVY)
    assert (check.status, training.status) == (2, 2)
    assert not imported
    for said in ("line 8, column 'up': expected a number", "line 9 has it too", "--drop-bad"):
        assert said in check.out
        assert said in training.errors


def test_a_series_of_usual_times_is_checked_without_pandas(tmp_path):
    days = np.datetime64("2024-01-01") + np.arange(400)
    lines = [f"{day},{place % 7}" for place, day in enumerate(days)]
    path = write(tmp_path / "sales.csv", "\n".join(["date,sold", *lines, ""]))
    (check,), imported = in_fresh_process(["check", path], heavy=HEAVY | TABLES)
    assert check.status == 0
    assert "400 daily rows from 2024-01-01 00:00:00 to 2025-02-03 00:00:00" in check.out
    assert not imported


def test_a_resumed_training_checks_its_data_before_tensorflow(tmp_path, capsys):
    data = tmp_path / "bad.csv"
    config = SentimentConfig(
        data=SentimentDataConfig(data=data), run=SentimentRunConfig(tmp_path, "a")
    )
    settings = {"task": "sentiment", "keras_gru": package_version(), **to_dict(config)}
    Checkpoint(tmp_path / ".a.checkpoint", settings, []).save(FitState(), [])
    assert "there is no file" in error_of(["resume", str(tmp_path / "a")], capsys)
    data.write_text(BAD)
    commands = [["resume", str(tmp_path / name)] for name in ("a", "none")]
    (resumed, missing), imported = in_fresh_process(*commands, heavy=HEAVY | TABLES)
    assert (resumed.status, missing.status) == (2, 2)
    assert "line 18: the text is empty" in resumed.errors
    assert missing.errors.startswith("gru-train: error: there is no checkpoint")
    assert missing.errors.count("\n") == 1
    assert not imported
    assert (tmp_path / ".a.checkpoint").exists()


def test_an_error_in_the_data_takes_little_more_than_the_imports(tmp_path):
    """About half as much again; TensorFlow would be 20 times. Seconds depend on the machine."""
    path = write(tmp_path / "bad.csv", BAD)
    imports = "import numpy, rich.console, tyro"
    _, needed = processor_seconds("-c", imports)
    status, spent = processor_seconds("-m", "gru_training", "sentiment", "--data", path)
    assert status == 2
    assert spent < 4 * needed


@pytest.mark.slow
def test_a_file_of_texts_is_shown_and_the_next_line_trains_on_it(tmp_path, capsys):
    path = write(tmp_path / "my tickets.csv", BAD.replace("text,label", "body,kind"))
    settings = ["--label-column", "kind", "--drop-bad", "--drop-small-classes"]
    assert main(["check", path, *settings]) == 0
    out = capsys.readouterr().out
    assert "16 texts in 2 classes; 12 train, 2 validation, 2 test" in out
    assert "x         8  50.0%" in out
    assert "1 row dropped (--drop-bad), line 18: the text is empty" in out
    (line,) = (line for line in out.splitlines() if line.startswith("next "))
    program, *command = shlex.split(line.removeprefix("next "))
    assert (program, command[:3]) == ("gru-train", ["sentiment", "--data", path])
    assert main([*command, *TINY, "--runs-dir", str(tmp_path), "--name", "run"]) == 0
    out = capsys.readouterr().out
    assert out.count("1 row dropped (--drop-bad), line 18") == 1
    assert out.index("1 row dropped") < out.index("TensorFlow 2.")
    run = SentimentRun.open(tmp_path / "run")
    config = json.loads((run.path / "config.json").read_text())
    assert config["data"]["drop_bad"] is config["data"]["drop_small_classes"] is True
    assert "dropped (--drop-bad), line 18" in (run.path / "report.md").read_text("utf-8")
    assert "dropped (--drop-bad), line 18" in " ".join(run.metrics["data"]["notes"])


def test_without_what_cannot_be_used_the_check_says_how_to_go_on(tmp_path, capsys):
    path = write(tmp_path / "bad.csv", BAD)
    assert main(["check", path]) == 2
    out = capsys.readouterr().out
    assert "training would fail" in out
    line = out.splitlines()[-1].partition("gru-train ")[2]
    assert main(shlex.split(line)) == 0


WORDS = ("the parcel came late {}", "refund {} was never paid", "cannot sign in {} again")
TABLES_OF_OTHERS = {
    # as the SMS spam collection is passed around
    "sms": ("v1,v2,,,", "{label},{text},,,", ["--text-column", "v2", "--label-column", "v1"]),
    "questions": ("qid,question_text,target", "q{i},{text},{label}",
                  ["--text-column", "question_text"]),
    "tweets": ("id,airline_sentiment,airline_sentiment_confidence,airline,text",
               "{i},{label},0.{i},one,{text}", ["--label-column", "airline_sentiment"]),
    "two": ("nr,what they wrote,desk", "{i},{text},{label}",
            ["--text-column", "what they wrote", "--label-column", "desk"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES_OF_OTHERS)
def test_columns_of_texts_and_classes_are_found_by_what_they_hold(tmp_path, capsys, name):
    header, row, flags = TABLES_OF_OTHERS[name]
    rows = [
        row.format(i=i, text=WORDS[i % 3].format(i), label=("late", "pay", "login")[i % 3])
        for i in range(30)
    ]
    path = write(tmp_path / "t.csv", "\n".join([header, *rows]) + "\n")
    assert main(["check", path]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"next    gru-train sentiment --data {path} {shlex.join(flags)}"
    assert "30 texts in 3 classes" in out
    error = error_of(["sentiment", "--data", path], capsys)
    assert f"which {shlex.join(flags[:2])} reads" in error  # a training is not begun on a guess
    assert main(["check", path, *flags, "--task", "sentiment"]) == 0


def test_columns_that_may_both_be_it_are_not_chosen(tmp_path, capsys):
    rows = [f"{WORDS[i % 3].format(i)},{WORDS[i % 2].format(i)},{i % 3}" for i in range(30)]
    path = write(tmp_path / "t.csv", "\n".join(["question,answer,target", *rows]) + "\n")
    assert "name one with --text-column\n" in error_of(["sentiment", "--data", path], capsys)
    rows = [f"{WORDS[i % 3].format(i)},{i % 3},{i % 2 + 5}" for i in range(30)]
    path = write(tmp_path / "t.csv", "\n".join(["text,desk,office", *rows]) + "\n")
    assert "name one with --label-column\n" in error_of(["sentiment", "--data", path], capsys)


def test_quantities_are_no_classes(tmp_path, capsys):
    rows = [f"{WORDS[i % 3].format(i)},{i * 1.7:.2f}" for i in range(30)]
    path = write(tmp_path / "t.csv", "\n".join(["text,score", *rows]) + "\n")
    assert main(["check", path]) == 2
    out = capsys.readouterr().out
    assert "if they are quantities, --target-type number learns them" in out
    assert main(["check", path, "--target-type", "number"]) == 0
    assert "30 texts with a number each" in capsys.readouterr().out
    path = write(tmp_path / "c.csv", Path(path).read_text().replace(",", ";").replace(".", ","))
    assert main(["check", path, "--target-type", "number"]) == 2
    assert "got 0,00; write decimal points, not commas" in capsys.readouterr().out
    assert main(["check", path, "--target-type", "number", "--drop-bad"]) == 2
    assert "expected different numbers, got no row with one" in capsys.readouterr().out


def error_of(arguments, capsys):
    assert main(arguments) == 2
    return capsys.readouterr().err


def test_the_task_follows_from_the_columns(tmp_path, capsys):
    waves = str(write_waves(tmp_path / "waves.csv"))
    assert main(["check", waves]) == 0
    assert f"next    gru-train forecasting --data {waves}" in capsys.readouterr().out
    assert main(["check", waves, "--task", "sentiment"]) == 2
    assert "no column looks like the text" in capsys.readouterr().err
    assert "Is that a row?" not in error_of(["check", waves, "--task", "sentiment"], capsys)
    bare = write(tmp_path / "bare.csv", "The soup was not warm.,bad\n" * 9)
    assert "the first line must have the names" in error_of(["check", bare], capsys).lower()
    rows = "The soup was not warm.,bad\nThe soup was hot at last.,good\n"
    assert main(["check", write(tmp_path / "both.csv", rows * 9)]) == 2
    told = capsys.readouterr().out
    assert "Is that a row? The first line must have the names, such as text,label: 'bad'" in told
    mails = "".join(f"win prize number {n},spam\nhow was your day {n},ham\n" for n in range(9))
    spam = write(tmp_path / "spam.csv", f"mail,spam\n{mails}")
    assert main(["check", spam]) == 2  # and the way out that it names
    assert main(["check", spam, "--text-column", "mail", "--label-column", "spam"]) == 0
    odd = write(tmp_path / "odd.csv", "a,b\n" + "words,more words\n" * 9)
    assert main(["check", odd]) == 2
    error = capsys.readouterr().err
    assert "sentiment: " in error
    assert "forecasting: " in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--task", "chess"],
            "--task must be one of sentiment, forecasting, language, got 'chess'",
        ),
        (["--no-such-setting", "3"], "no training takes these settings: --no-such-setting 3"),
        (["--text-column", "body"], "has no column 'body'"),
        (["--max-tokens", "0"], "--max-tokens must be at least 1"),
    ],
)
def test_what_cannot_be_checked_is_one_line(tmp_path, capsys, arguments, message):
    assert main(["check", write(tmp_path / "a.csv", GOOD), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_missing_file_is_read_as_nothing(tmp_path, capsys):
    assert main(["check", str(tmp_path / "none.csv")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"there is no file or folder {tmp_path / 'none.csv'}" in said.err


@pytest.mark.slow
def test_a_task_with_nothing_to_check_trains_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "tagging", "tests.training.toy_task.task")
    run = ["--runs-dir", str(tmp_path), "--name", "a", "--epochs", "1"]
    assert main(["tagging", "--preset", "few", *run]) == 0
    assert (tmp_path / "a" / "metrics.json").exists()


def test_a_reader_that_has_seen_enough_is_no_error():
    command = [sys.executable, "-m", "gru_training", "sentiment", "--help"]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        time.sleep(0.1)
        said = process.stderr.read()
    assert said == ""
    assert process.returncode == 141


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["forecasting", "--data", "my x.csv"], "gru-train check 'my x.csv' --task forecasting"),
        (["x.csv", "--data=y.csv", "--horizon", "3"], "gru-train check y.csv"),
    ],
)
def test_the_data_are_the_first_argument(arguments, told, capsys):
    assert main(["check", *arguments]) == 2
    errors = capsys.readouterr().err.strip()
    assert errors.endswith(f"--data must be left out, as the first argument names the data: {told}")


def one_hot(path, **columns):
    rows = [",".join(("text", *columns))]
    rows += [
        ",".join((f"some words {i}", *(str(of(i)) for of in columns.values()))) for i in range(30)
    ]
    return write(path, "\n".join(rows) + "\n")


def test_columns_of_yes_and_no_are_read_with_the_command_to_type(tmp_path, capsys):
    classes = {name: lambda i, k=k: int(i % 3 == k) for k, name in enumerate(("ok", "bad", "so"))}
    path = one_hot(tmp_path / "hot.csv", **classes)
    assert main(["check", path]) == 0
    first, second, *_, last = capsys.readouterr().out.splitlines()
    assert first == (
        "read as labelled texts (texts in 'text', classes in the columns 'ok', 'bad' and 'so'), as "
        "the columns 'ok', 'bad' and 'so' say yes or no, to one of them in each row; --task says "
        "otherwise"
    )
    assert second.startswith(f"{path}: 30 texts in 3 classes")
    flags = "--target-type class --label-columns ok bad so"
    assert last == f"next    gru-train sentiment --data {path} {flags}"
    assert main(["check", *shlex.split(last)[4:]]) == 0
    # With an identifier, which could be taken for times, and labels of their own.
    labels = {"id": lambda i: i, "toxic": lambda i: i % 2, "insult": lambda i: int(i % 3 == 0)}
    assert main(["check", one_hot(tmp_path / "toxic.csv", **labels)]) == 0
    assert capsys.readouterr().out.endswith(" --label-columns toxic insult\n")


def test_texts_without_labels_are_no_series(tmp_path, capsys):
    path = one_hot(tmp_path / "a.csv", number=lambda i: i * 1.5)
    assert main(["check", path]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "read as texts to continue; not as labelled texts: no column looks like the label; "
    )
    assert f"next    gru-train language --data {path}" in out


def test_a_series_is_read_as_one(tmp_path, capsys):
    path = write_waves(tmp_path / "waves.csv")
    assert main(["check", str(path), "--horizon", "6", "--lookback", "24"]) == 0
    assert capsys.readouterr().out.startswith("read as series; --task says otherwise\n")
    assert main(["check", str(path), "--task", "forecasting", "--lookback", "24"]) == 0
    assert capsys.readouterr().out.startswith("read as series\n")
