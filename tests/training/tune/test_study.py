"""Studies in a file that processes share."""

import subprocess
import sys
import textwrap

import pytest
from optuna.trial import TrialState

from gru_training.criterion import Criterion
from gru_training.errors import ConfigError, RunDirectoryError
from gru_training.tune.report import FinalRun, summary, write_report
from gru_training.tune.study import choose, claim, complete_trials

from .studies import ACCURACY, SPACE, near_96_units, opened, run_trial


def test_the_first_trial_has_the_defaults_and_the_best_is_found(tmp_path):
    study = opened(tmp_path)
    assert not claim(tmp_path, study, {"task": "sentiment"}, SPACE.defaults())
    for _ in range(25):
        run_trial(study, near_96_units)
    trials, best = study.get_trials(), complete_trials(study)[0]
    assert trials[0].params == SPACE.defaults()
    assert best.value == max(trial.value for trial in trials) > trials[0].value
    assert best.value == near_96_units(best.params)


def test_of_errors_the_lowest_is_best(tmp_path):
    study = opened(tmp_path, Criterion("mean squared error", False, ".4f", "mse"))
    for _ in range(5):
        run_trial(study, near_96_units)
    assert complete_trials(study)[0].value == min(trial.value for trial in study.get_trials())


def test_it_goes_on_and_refuses_another_search(tmp_path):
    study = opened(tmp_path)
    claim(tmp_path, study, {"data": "one", "--epochs": 5}, SPACE.defaults())
    run_trial(study, near_96_units)
    again = opened(tmp_path)
    assert claim(tmp_path, again, {"data": "one", "--epochs": 5}, SPACE.defaults())
    run_trial(again, near_96_units)
    first, second = again.get_trials()
    assert first.params != second.params
    with pytest.raises(
        ConfigError, match=r"test_it.*: this study has --epochs 5, expected the same again, got 6"
    ):
        claim(tmp_path, again, {"data": "one", "--epochs": 6}, SPACE.defaults())


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
    trials = opened(tmp_path).get_trials()
    assert len(trials) == 16
    assert len({tuple(sorted(trial.params.items())) for trial in trials}) == 16


def test_the_report_says_what_was_found(tmp_path):
    study = opened(tmp_path)
    claim(tmp_path, study, {"task": "sentiment"}, SPACE.defaults())
    for _ in range(12):
        run_trial(study, near_96_units)
    with pytest.warns(UserWarning, match="Heartbeat"):
        stopped = study.ask()
    stopped.report(0.5, 1)
    study.tell(stopped, state=TrialState.PRUNED)
    finals = [FinalRun(tmp_path / "a", 0, "accuracy", 0.80, ".1%"),
              FinalRun(tmp_path / "b", 1, "accuracy", 0.90, ".1%")]  # fmt: skip
    found = choose(tmp_path, SPACE, study, ACCURACY)
    lines = summary(found, finals)
    assert lines[0] == "13 trials: 12 complete, 1 stopped early, 0 failed."
    best, first = complete_trials(study)[0], study.get_trials()[0]
    assert f"{best.value:.1%} (trial {best.number}), against {first.value:.1%}" in lines[1]
    assert lines[2] == "Test rows, final 2 runs: accuracy 85.0% ± 7.1%."
    few = ACCURACY._replace(caution="only 3 rows")
    assert summary(found._replace(criterion=few), finals)[2] == "Caution: only 3 rows."
    again = "gru-train sentiment --units 96"
    page = write_report(found, finals, again)
    markdown = (tmp_path / "report.md").read_text()
    assert "gru-train sentiment --units 96" in markdown
    assert f"| units | {best.params['units']} | 64 | 32 to 160, 16 apart |" in markdown
    rows = (tmp_path / "trials.csv").read_text().splitlines()
    assert rows[0].startswith("trial,state,accuracy,seconds,")
    assert len(rows) == 14
    assert page.name == "report.html"
    assert page.read_text().count("data:image/png;base64,") == 2
    assert [each.name for each in tmp_path.glob(".*")] == [".study.lock"]
