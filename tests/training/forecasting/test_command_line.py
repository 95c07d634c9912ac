import pytest

from gru_training.__main__ import main
from gru_training.forecasting.run import ForecastingRun
from tests.training.conftest import write_waves
from tests.training.cut_short import terminated

TINY = ["--epochs", "1", "--units", "4", "--set", "segment=6", "--lookback", "24", "--horizon", "6",
        "--validation-fraction", "0.25", "--no-combine", "--no-refit"]  # fmt: skip


def test_trains_and_says_what_came_of_it(tmp_path, capsys):
    data = write_waves(tmp_path / "waves.csv")
    command = ["forecasting", *TINY, "--data", str(data), "--runs-dir", str(tmp_path / "runs")]
    assert main([*command, "--target", "down"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    (path,) = (tmp_path / "runs").iterdir()
    assert path.name.startswith("forecasting-waves-20")
    run = ForecastingRun.open(path)
    assert run.target_columns == ("down",)
    model, floors = run.metrics["model"], run.metrics["baselines"]
    for result in (model, *floors.values()):
        assert f"{result['validation']['mse']:.4f} {result['test']['mse']:.4f}" in out
    assert "3 cells of the file are missing values" in out
    unread = "inputs that the network does not read: up; --set channel_independent=no reads them"
    assert f"note: {unread}" in out
    assert f"Note: {unread}." in (run.path / "report.md").read_text("utf-8")
    # One epoch of four units cannot beat it; the screen must say so.
    assert not run.metrics["beats_seasonal_naive"]
    assert "THE MODEL DOES NOT BEAT SEASONAL NAIVE" in out


@pytest.mark.long
def test_killed_and_resumed_equals_uninterrupted(tmp_path, capsys, monkeypatch):
    """What the settings left open was decided by what had been decided: networks read more."""
    data = write_waves(tmp_path / "waves.csv", rows=500)
    monkeypatch.setattr("gru_training.forecasting.plan._LONGEST_NETWORK", 24)
    command = ["forecasting", "--data", str(data), "--horizon", "6", "--epochs", "3"]
    command += ["--units", "4", "--set", "networks=1", "--no-refit"]
    command += ["--runs-dir", str(tmp_path / "runs")]
    assert main([*command, "--name", "whole"]) == 0
    with terminated():
        assert main([*command, "--name", "broken"]) == 130
    assert main(["resume", str(tmp_path / "runs" / "broken")]) == 0
    whole, broken = (ForecastingRun.open(tmp_path / "runs" / name) for name in ("whole", "broken"))
    assert whole.config.data.lookback > whole.combination["network_lookback"]
    assert broken.combination == whole.combination
    assert broken.metrics["model"] == whole.metrics["model"]


def csv(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text)
    return ["--data", str(path)]


def hours(rows, cell="{}"):
    times = (f"2021-01-{1 + hour // 24:02} {hour % 24:02}:00" for hour in range(rows))
    return "time,a\n" + "".join(f"{time},{cell.format(k * k)}\n" for k, time in enumerate(times))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda tmp: ["--data", str(tmp / "none.csv")], "there is no such file"),
        (lambda tmp: csv(tmp, hours(40)), "the train part has 22 of 40 rows, expected at least 30"),
        (
            lambda tmp: csv(tmp, hours(90, "7")[:-2] + "8\n"),
            "column 'a': expected values that vary, got 7",
        ),
        (lambda tmp: csv(tmp, hours(90, "x{}")), "line 2, column 'a': expected a number"),
        (lambda tmp: [*csv(tmp, hours(90)), "--target", "b"], "has no column 'b'"),
        (lambda tmp: [*csv(tmp, hours(90)), "--time-column", "b"], "has no column 'b'"),
        (lambda tmp: csv(tmp, hours(90).replace("01:00", "00:00", 1)), "expected each time once"),
        (lambda _: ["--preset", "none"], "--preset must be one of"),
        (lambda _: ["--horizon", "0"], "--horizon must be at least 1, got 0"),
        (lambda _: ["--set", "segment=99"], "--set segment must be at most the look-back of 24"),
    ],
)
def test_user_errors_are_one_line_and_status_2(tmp_path, capsys, arguments, message):
    runs = tmp_path / "runs"
    command = ["forecasting", *TINY, "--runs-dir", str(runs), *arguments(tmp_path)]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("gru-train: error: ")
    assert error.count("\n") == 1
    assert not runs.exists() or list(runs.iterdir()) == []


def test_help_teaches_and_presets_change_the_defaults(capsys):
    assert main(["forecasting", "--help"]) == 0
    text = capsys.readouterr().out
    for word in ("--target", "--linear-skip", "--set", "Ctrl-C", "etth1-96"):
        assert word in text
    assert "ETTh1.csv" not in text
    assert main(["forecasting", "--preset", "etth1-96", "--help"]) == 0
    assert "ETTh1.csv" in capsys.readouterr().out
