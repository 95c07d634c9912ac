"""Searches whose trials end before their time."""

import os
import time
from _thread import interrupt_main
from threading import Timer

import pytest
from optuna.trial import TrialState
from rich.console import Console

from gru_training.errors import TrainingError
from gru_training.search_ranges import Integers
from gru_training.sentiment.config import SentimentConfig
from gru_training.task import find_task
from gru_training.tune.search import Search
from gru_training.tune.search_space import SearchSpace

from .studies import ACCURACY, SPACE, near_96_units, opened, run_trial


class Unpickled:
    """Data on whose arrival a process does something."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


SLOW = Unpickled(time.sleep, 60)


def search(study, data, seconds=None, trials=1):
    work = ("sentiment", data, ACCURACY)
    Search(study, SPACE, work, Console(quiet=True)).run(seconds, trials, parallel=2)


def states(study):
    return [(each.state, each.user_attrs.get("reason")) for each in study.get_trials()]


def test_a_search_whose_first_process_breaks_down_ends_with_what_it_said(tmp_path):
    study = opened(tmp_path)
    with pytest.raises(TrainingError, match="ended with status 7"):
        search(study, Unpickled(os._exit, 7))
    assert states(study) == [(TrialState.FAIL, "a process of the search ended with status 7")]
    with pytest.raises(TrainingError, match=r"(?s)status 1:.*ZeroDivisionError"):
        search(study, Unpickled(divmod, 1, 0))


def test_of_later_processes_three_in_a_row_may_break_down(tmp_path):
    study = opened(tmp_path)
    run_trial(study, near_96_units)
    with pytest.raises(TrainingError, match="ended with status 7"):
        search(study, Unpickled(os._exit, 7), trials=9)
    assert [state for state, _ in states(study)].count(TrialState.FAIL) in (3, 4)  # two at a time


def test_trials_that_run_when_the_time_is_over_are_stopped(tmp_path):
    study = opened(tmp_path)
    run_trial(study, near_96_units)
    search(study, SLOW, seconds=1.0, trials=None)
    assert states(study)[1:] == [(TrialState.PRUNED, "the time was over")] * 2


def test_settings_of_interrupted_trials_are_tried_again(tmp_path):
    study = opened(tmp_path)
    timer = Timer(2, interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        search(study, SLOW, trials=2)
    first, second, *again = study.get_trials()
    assert states(study)[:2] == [(TrialState.FAIL, "interrupted")] * 2
    assert {each.state for each in again} == {TrialState.WAITING}
    for _ in again:
        run_trial(study, near_96_units)
    tried = [each.params for each in study.get_trials()[2:]]
    assert first.params in tried
    assert second.params in tried


@pytest.mark.slow
def test_a_trial_that_does_worse_than_others_is_stopped(tmp_path):
    def perfect(trial):
        for epoch in range(1, 5):
            trial.report(1.0, epoch)
        return 1.0

    study = opened(tmp_path)
    study.optimize(perfect, n_trials=5)
    small = {"units": 4, "embedding_size": 4, "epochs": 3, "reviews": 120, "bidirectional": False}
    config = SearchSpace.of(SentimentConfig()).with_values(small)
    data = find_task("sentiment").read(config).data
    space = SearchSpace(config, {"units": Integers(4, 8, 4)})
    Search(study, space, ("sentiment", data, ACCURACY), Console(quiet=True)).run(None, 1, 1)
    *_, last = study.get_trials()
    assert last.state is TrialState.PRUNED
    assert last.user_attrs["reason"] == "worse than others after epoch 2"
    assert last.value == last.intermediate_values[2] < 1
