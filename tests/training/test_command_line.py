import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest

from gru_training.__main__ import main
from gru_training.command_line import find_command, parse
from gru_training.loop.checkpoint import Checkpoint, FitState
from gru_training.runs.directory import RunDirectory
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.run import SentimentRun
from gru_training.task import TASKS
from tests.training.conftest import write_waves
from tests.training.cut_short import terminated

TINY = ["--set", "reviews=300", "--epochs", "1", "--units", "4", "--set", "embedding_size=4",
        "--no-bidirectional"]  # fmt: skip


def test_trains_and_says_where_the_run_is_and_what_comes_next(tmp_path, capsys):
    assert main(["sentiment", *TINY, "--runs-dir", str(tmp_path), "--name", "first"]) == 0
    out = capsys.readouterr().out
    run = SentimentRun.open(tmp_path / "first")
    assert "bag of words" in out
    assert f"{run.metrics['model']['test']['accuracy']:.1%}" in out
    assert f"gru-serve export {run.path} --to models/first" in out
    assert main(["sentiment", *TINY, "--runs-dir", str(tmp_path), "--name", "first"]) == 2
    assert "first exists already" in capsys.readouterr().err


@pytest.mark.slow
def test_the_default_name_tells_the_data(tmp_path):
    assert main(["sentiment", *TINY, "--runs-dir", str(tmp_path)]) == 0
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("sentiment-grammar-20")


MANY = b"text,label\n" + b"".join(b"good %d,x\ngood -%d,y\n" % (i, i) for i in range(1, 9))


def write_json(tmp_path, content):
    path = tmp_path / "data.jsonl"
    path.write_bytes(content)
    return ["--data", str(path)]


def write(tmp_path, content):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    return ["--data", str(path)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda tmp: ["--data", str(tmp / "none.csv")], "there is no file or folder"),
        (lambda tmp: ["--data", str(tmp)], "no known data set"),
        (lambda tmp: write(tmp, b"a,b\n1,2\n"), "looks like the text"),
        (lambda tmp: write(tmp, b"text,label\na,x\nb,x\nc,x\n"), "at least two classes"),
        (lambda tmp: write(tmp, b"text,label\n,x\n"), "line 2: the text is empty"),
        (lambda tmp: write(tmp, b"text,label\na\x00,x\n"), "NUL"),
        (lambda tmp: write(tmp, b"text,label\n" + b"a,x\na,y\n" * 9), "at least one row for val"),
        (
            lambda tmp: [*write(tmp, MANY), "--set", "min_count=99"],
            "(--set min_count), got 12 times",
        ),
        (lambda tmp: write_json(tmp, b"[" * 100_000), "line 1: not JSON"),
        (lambda tmp: write_json(tmp, b'{"text": "\\ud83d", "label": 1}'), "half a surrogate pair"),
        (lambda _: ["--name", "a\0b"], "--name must be a plain name"),
        (lambda _: ["--epochs=-1"], "--epochs must be at least 1, got -1"),
        (lambda _: ["--name", "a/b"], "--name must be a plain name"),
    ],
)
def test_user_errors_are_one_line_and_status_2(tmp_path, capsys, arguments, message):
    runs = tmp_path / "runs"
    assert main(["sentiment", "--runs-dir", str(runs), *arguments(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("gru-train: error: ")
    assert error.count("\n") == 1
    assert not runs.exists() or list(runs.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--no-such-option"], "--no-such-option"),
        (["--epochs", "ten"], "--epochs"),
        (["--set", "schedule=linear"], "linear"),
    ],
)
def test_usage_errors_are_status_2(capsys, arguments, message):
    assert main(["sentiment", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert main([]) == 2
    assert main(["nonsense"]) == 2


def test_debug_shows_where_an_error_arose(tmp_path):
    with pytest.raises(Exception, match="there is no file"):
        main(["sentiment", "--debug", "--data", str(tmp_path / "none.csv"), "--runs-dir",
              str(tmp_path / "runs")])  # fmt: skip


def test_help_teaches(capsys):
    assert main(["sentiment", "--help"]) == 0
    text = capsys.readouterr().out
    for word in ("--data", "--dropout", "--runs-dir", "Ctrl-C", "rt-polarity"):
        assert word in text


HEAVY = {"h5py", "keras", "matplotlib", "onnxruntime", "pandas", "pyarrow", "scipy", "sklearn",
         "statsmodels", "tensorflow"}  # fmt: skip


def test_help_of_each_command_is_there_before_anything_heavy_is_loaded():
    program = f"""
import sys
from gru_training.__main__ import main
from gru_training.command_line import COMMANDS
from gru_training.task import TASKS
for name in ["", *TASKS, *COMMANDS, "forecast", "backtest"]:
    assert main([name, "--help"] if name else ["--help"]) == 0, name
    assert not {HEAVY!r} & set(sys.modules), name
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2],
                          check=False, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "backtest" in done.stdout


def test_the_help_lists_each_command_with_what_it_does(capsys):
    assert main(["--help"]) == 0
    listed = dict(
        line.split(maxsplit=1)
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("  ")
    )
    for name in (*TASKS, "tune", "check", "resume", "predict", "compare",
                 "report", "forecast", "backtest"):  # fmt: skip
        assert main([name, "--help"]) == 0
        assert listed[name].split(",")[0] in " ".join(capsys.readouterr().out.split()), name


@pytest.mark.parametrize(("wrong", "right"), [("--dat", "--data"), ("--unit", "--units")])
def test_a_flag_mistyped_is_answered_with_few_flags_of_that_command(wrong, right, capsys):
    """Those of all commands were suggested, nine with their help."""
    assert main(["sentiment", wrong, "3"]) == 2
    said = capsys.readouterr().err
    suggested = re.findall(r"^\W{1,6}(--[a-z][a-z-]*)", said, re.MULTILINE)
    assert suggested[0] == right
    assert len(suggested) <= 5
    flags = {f"--{name}" for name in known_flags(SentimentConfig())}
    assert set(suggested) <= flags
    assert re.findall(r"gru-train (\w+) --help", said) == ["sentiment"]


def known_flags(config):
    for name, value in vars(config).items():
        yield from known_flags(value) if hasattr(value, "__dict__") else [name.replace("_", "-")]


def test_a_command_mistyped_is_answered_with_the_nearest_one(capsys):
    assert main(["sentment", "--data", "x.csv"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("gru-train: expected a command (sentiment, forecasting, language, tune")
    assert said.endswith("got 'sentment'; did you mean sentiment?\n")
    assert main(["nothing-like-it"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_sigterm_leaves_nothing(tmp_path, capsys, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)

    def terminated(*_):
        assert {path.name[:6] for path in tmp_path.iterdir()} == {".a.loc", ".a.par"}
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("gru_training.sentiment.initial_weights.sentiment_words", terminated)
    assert main(["sentiment", *TINY, "--runs-dir", str(tmp_path), "--name", "a"]) == 130
    assert "interrupted; no run was written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_in_a_trace_is_no_error_and_the_checkpoint_is_named(tmp_path, capsys, monkeypatch):
    """What TensorFlow makes of a KeyboardInterrupt while it traces was shown as a traceback."""
    save = Checkpoint.save

    def terminated_in_a_trace(*args):
        save(*args)
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ValueError("None values not supported.") from None

    monkeypatch.setattr(Checkpoint, "save", terminated_in_a_trace)
    assert main(["sentiment", *TINY, "--runs-dir", str(tmp_path), "--name", "a"]) == 130
    assert f"gru-train resume {tmp_path / 'a'}" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("sentiment", ["--set", "reviews=1000"]),
        ("forecasting", ["--units", "4", "--set", "segment=6", "--lookback", "24", "--horizon", "6",
                         "--no-combine"]),
    ],
)  # fmt: skip
def test_ctrl_c_keeps_the_best_epoch(tmp_path, task, settings):
    if task == "forecasting":
        settings = [*settings, "--data", str(write_waves(tmp_path / "waves.csv"))]
    process = subprocess.Popen(
        [sys.executable, "-m", "gru_training", task, *settings, "--epochs", "5000", "--set",
         "patience=5000", "--runs-dir", str(tmp_path), "--name", "a"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("epoch    2/5000"):
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "the best so far, is kept" in out
    run = RunDirectory.open(tmp_path / "a")
    assert run.metrics["interrupted"] is True
    assert 2 <= run.metrics["epochs"] < 5000


@pytest.mark.long
def test_killed_and_resumed_equals_uninterrupted(tmp_path):
    def weights(name):
        return keras.models.load_model(tmp_path / name / "model.keras", compile=False).get_weights()

    settings = ["--set", "reviews=1500", "--epochs", "6", "--patience", "6", "--units", "8",
                "--runs-dir", str(tmp_path)]  # fmt: skip
    assert main(["sentiment", *settings, "--name", "whole"]) == 0
    checkpoint = tmp_path / ".broken.checkpoint"
    arguments = ["sentiment", *settings, "--name", "broken"]
    for _ in range(2):
        with subprocess.Popen([sys.executable, "-m", "gru_training", *arguments],
                              cwd=Path(__file__).parents[2], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:  # fmt: skip
            before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
            while not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before:
                assert process.poll() is None
                time.sleep(0.01)
            process.kill()
        assert not (tmp_path / "broken").exists()
        arguments = ["resume", str(tmp_path / "broken")]
    assert main(arguments) == 0
    for value, expected in zip(weights("broken"), weights("whole"), strict=True):
        np.testing.assert_array_equal(value, expected)
    broken, whole = (RunDirectory.open(tmp_path / name).metrics for name in ("broken", "whole"))
    assert broken["model"] == whole["model"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "whole"]


def test_a_broken_run_is_not_overwritten(tmp_path, capsys):
    Checkpoint(tmp_path / ".a.checkpoint", {}, []).save(FitState(), [])
    assert main(["sentiment", *TINY, "--runs-dir", str(tmp_path), "--name", "a"]) == 2
    message = capsys.readouterr().err
    assert f"`gru-train resume {tmp_path / 'a'}`" in message
    assert "was begun and cut short" in message
    assert [path.name for path in tmp_path.iterdir()] == [".a.checkpoint"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (None, "there is no checkpoint"),
        (
            {"task": "chess"},
            "expected a sentiment or forecasting or language run, got task 'chess'",
        ),
        ({"task": "sentiment", "keras_gru": "99.0"}, "got one of 99.0"),
    ],
)
def test_what_cannot_be_resumed_is_told(tmp_path, capsys, settings, message):
    if settings is not None:
        Checkpoint(tmp_path / ".a.checkpoint", settings, []).save(FitState(), [])
    assert main(["resume", str(tmp_path / "a")]) == 2
    assert message in capsys.readouterr().err


def test_a_wrong_name_to_resume_is_answered_with_the_right_ones(tmp_path, capsys):
    (tmp_path / "whole").mkdir()
    assert main(["resume", str(tmp_path / "whole")]) == 2
    assert f"{tmp_path / 'whole'} was not interrupted" in capsys.readouterr().err
    for name in ("first", "Zoë's"):
        Checkpoint(tmp_path / f".{name}.checkpoint", {}, []).save(FitState(), [])
    for wrong in (tmp_path / "frist", tmp_path):
        assert main(["resume", str(wrong)]) == 2
        message = capsys.readouterr().err
        assert str(tmp_path / "first") in message
        assert str(tmp_path / "Zoë's") in message


@pytest.mark.slow
def test_a_training_that_is_terminated_says_how_to_go_on(tmp_path):
    runs = tmp_path / "Zoë's runs"
    command = [sys.executable, "-m", "gru_training", "sentiment", "--epochs", "500", "--patience",
               "500", *TINY[:2], "--runs-dir", str(runs)]  # fmt: skip
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
        while not (found := list(runs.glob(".*.checkpoint"))):
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        said = process.stderr.read()
    assert process.returncode == 130
    name = found[0].name.removeprefix(".").removesuffix(".checkpoint")
    (line,) = said.splitlines()
    assert shlex.split(line.partition("To continue it: ")[2])[:3] == [
        "gru-train", "resume", str(runs / name)]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("task", ["sentiment", "forecasting"])
def test_a_training_does_not_go_on_with_other_data_of_the_same_shape(tmp_path, capsys, task):
    data = tmp_path / "data.csv"
    if task == "sentiment":
        data.write_bytes(MANY)
        sizes, changed = TINY[4:], MANY.replace(b"good", b"fine")
    else:
        first, _, *rest = write_waves(data).read_text().splitlines()
        sizes = ["--lookback", "24", "--horizon", "6"]
        changed = "\n".join([first, "2021-05-01 00:00:00,100.25,1.5", *rest]).encode()
    command = [task, "--data", str(data), *sizes, "--units", "4", "--epochs", "500",
               "--runs-dir", str(tmp_path / "runs"), "--name", "a"]  # fmt: skip
    with terminated():
        assert main(command) == 130
    capsys.readouterr()
    checkpoint = tmp_path / "runs" / ".a.checkpoint"
    before = checkpoint.read_bytes()
    data.write_bytes(changed)
    assert main(["resume", str(tmp_path / "runs" / "a")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"gru-train: error: {checkpoint}: expected the data that the training")
    assert error.count("\n") == 1
    assert checkpoint.read_bytes() == before


@pytest.mark.long
def test_what_comes_next_can_be_pasted_into_a_shell(tmp_path, capsys):
    runs = tmp_path / "Zoë's runs"
    assert main(["sentiment", *TINY, "--runs-dir", str(runs), "--name", "a"]) == 0
    (line,) = (x for x in capsys.readouterr().out.splitlines() if "gru-serve export" in x)
    assert str(runs / "a") in shlex.split(line, comments=True)


@pytest.mark.parametrize(
    ("arguments", "value"), [([], None), (["--ngrams"], True), (["--no-ngrams"], False)]
)
def test_a_switch_that_the_data_decide_by_default(arguments, value):
    """`--no-spacing` was refused: only `--spacing False` was known."""
    config = parse(find_command("sentiment", arguments), arguments)
    assert config.model.ngrams is value
    flags = ["--set", f"channel_embedding={value}"]
    assert parse(find_command("forecasting", flags), flags).model.channel_embedding is value
