"""Studies in a file that processes share."""

import signal
import subprocess
import sys
import textwrap

import pytest
from optuna.trial import TrialState

from gru_training.criterion import Criterion
from gru_training.errors import ConfigError, RunDirectoryError
from gru_training.tune.report import FinalRun, summary, write_report
from gru_training.tune.study import pick
from gru_training.tune.worker import worker_name

from .studies import SPACE, near_96_units, opened, run_trial


def begun_trial(study):
    """A trial that runs in no process that reports to Optuna."""
    with pytest.warns(UserWarning, match="Heartbeat"):
        return study.study.ask()


def test_the_first_trial_has_the_defaults_and_the_best_is_found(tmp_path):
    study = opened(tmp_path)
    assert not study.claim({"task": "sentiment"}, SPACE.defaults())
    for _ in range(25):
        run_trial(study, near_96_units)
    trials = study.trials()
    assert dict(trials[0].settings) == SPACE.defaults()
    best = study.best()
    assert best.value == max(trial.value for trial in trials) > trials[0].value
    assert best.value == near_96_units(best.settings)


def test_of_errors_the_lowest_is_best(tmp_path):
    study = opened(tmp_path, Criterion("mean squared error", False, ".4f", "mse"))
    for _ in range(5):
        run_trial(study, near_96_units)
    assert study.best().value == min(trial.value for trial in study.trials())


def test_it_goes_on_and_refuses_another_search(tmp_path):
    study = opened(tmp_path)
    study.claim({"data": "one", "--epochs": 5}, SPACE.defaults())
    run_trial(study, near_96_units)
    again = opened(tmp_path)
    assert again.claim({"data": "one", "--epochs": 5}, SPACE.defaults())
    run_trial(again, near_96_units)
    first, second = again.trials()
    assert first.settings != second.settings
    with pytest.raises(
        ConfigError, match="this study has --epochs 5, expected the same again, got 6"
    ):
        again.claim({"data": "one", "--epochs": 6}, SPACE.defaults())


def test_a_file_that_is_no_study(tmp_path):
    (tmp_path / "study.db").write_text("no database")
    with pytest.raises(RunDirectoryError, match=r"study\.db: expected the study of a search"):
        opened(tmp_path)


@pytest.mark.slow
def test_processes_on_one_study_do_not_repeat_trials(tmp_path):
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from tests.training.tune.studies import near_96_units, opened, run_trial
        study = opened(Path(sys.argv[1]))
        for _ in range(8):
            run_trial(study, near_96_units)
    """)
    command = [sys.executable, "-c", program, str(tmp_path)]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    trials = opened(tmp_path).trials()
    assert len(trials) == 16
    assert len({tuple(sorted(trial.settings.items())) for trial in trials}) == 16


def test_trials_of_an_interrupted_process_are_tried_again(tmp_path):
    study = opened(tmp_path)
    for number in (1, 2):
        trial = begun_trial(study)
        trial.set_user_attr("worker", worker_name(number))
        for name, choice in SPACE.choices.items():
            choice.suggest(trial, name)
    assert [trial.worker for trial in study.trials()] == [worker_name(1), worker_name(2)]
    study.release([worker_name(1)], TrialState.FAIL, "interrupted", again=True)
    first, second = study.trials()
    assert (first.state, first.reason, second.state) == ("failed", "interrupted", "running")
    run_trial(study, near_96_units)
    assert study.trials()[2].settings == first.settings


def test_a_trial_interrupted_before_it_has_read_its_settings_is_tried_again(tmp_path):
    study = opened(tmp_path)
    study.claim({"task": "sentiment"}, SPACE.defaults())
    begun_trial(study).set_user_attr("worker", worker_name(1))
    study.release([worker_name(1)], TrialState.FAIL, "interrupted", again=True)
    run_trial(study, near_96_units)
    assert [dict(trial.settings) for trial in study.trials()] == [{}, SPACE.defaults()]


@pytest.mark.slow
def test_a_process_is_not_ended_before_its_trial_has_its_name(tmp_path):
    """The trial seemed to run on after Ctrl-C, for nobody knew whose it was."""
    program = textwrap.dedent("""
        import os, signal, sys
        from pathlib import Path
        from tests.training.tune.studies import ACCURACY, SPACE
        from gru_training.tune.study import NumberedSampler
        from gru_training.tune.worker import Job, run_trials
        # Called when a trial has begun, before it is given to the objective.
        NumberedSampler.before_trial = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
        run_trials(Job("sentiment", SPACE, None, ACCURACY, Path(sys.argv[1]), "median"), 1)
    """)
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    assert process.wait(60) == 128 + signal.SIGTERM
    (trial,) = opened(tmp_path).trials()
    assert (trial.state, trial.worker) == ("running", worker_name(process.pid))


def test_the_report_says_what_was_found(tmp_path):
    study = opened(tmp_path)
    study.claim({"task": "sentiment"}, SPACE.defaults())
    for _ in range(12):
        run_trial(study, near_96_units)
    stopped = begun_trial(study)
    stopped.report(0.5, 1)
    study.study.tell(stopped, state=TrialState.PRUNED)
    finals = [FinalRun(tmp_path / "a", 0, "accuracy", 0.80, ".1%"),
              FinalRun(tmp_path / "b", 1, "accuracy", 0.90, ".1%")]  # fmt: skip
    picked = pick(study, SPACE.defaults())
    lines = summary(study, picked, finals)
    assert lines[0] == "13 trials: 12 complete, 1 stopped early, 0 failed."
    best, first = study.best(), study.trials()[0]
    assert f"{best.value:.1%} (trial {best.number}), against {first.value:.1%}" in lines[1]
    assert lines[2] == "Test rows, final 2 runs: accuracy 85.0% ± 7.1%."
    study.criterion = study.criterion._replace(caution="only 3 rows")
    assert summary(study, picked, finals)[2] == "Caution: only 3 rows."
    again = "gru-train sentiment --units 96"
    page = write_report(SPACE, study, picked, tmp_path, finals, again)
    markdown = (tmp_path / "report.md").read_text()
    assert "gru-train sentiment --units 96" in markdown
    assert f"| units | {best.settings['units']} | 64 | 32 to 160, 16 apart |" in markdown
    rows = (tmp_path / "trials.csv").read_text().splitlines()
    assert rows[0].startswith("trial,state,accuracy,seconds,")
    assert len(rows) == 14
    assert page.name == "report.html"
    assert page.read_text().count("data:image/png;base64,") == 2
    assert [each.name for each in tmp_path.glob(".*")] == [".study.lock"]
