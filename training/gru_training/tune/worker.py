"""A process that runs trials of a search one by one: `python -m gru_training.tune.worker`.

Trials run in separate processes, since the programs that TensorFlow compiles stay in memory as long
as their process, and a trial that needs too much memory must not end the search. The search writes
pickles to the standard input: task, data and criterion first, then the settings of each trial, and
after each epoch whether the trial continues. The answers are pickles on the standard output: each
epoch with its criterion, and finally the result, an error, or None for a stopped trial.
"""

import os
import pickle
import sys
from typing import Any

from gru_training.errors import TrainingError
from gru_training.programs import keep_programs
from gru_training.task import Searchable, find_task


class StoppedTrialError(Exception):
    """The search ends the trial early."""


def main() -> None:
    """Run trials until the standard input ends."""
    orders, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print goes to the log

    def answer(content: Any) -> None:
        pickle.dump(content, answers)
        answers.flush()

    def after_epoch(epoch: int, value: float) -> None:
        answer((epoch, value))
        if not pickle.load(orders):
            raise StoppedTrialError

    name, data, criterion = pickle.load(orders)
    task = find_task(name)
    assert isinstance(task, Searchable)
    while True:
        settings = pickle.load(orders)
        try:
            answer(task.try_settings(settings, data, criterion, after_epoch))
        except StoppedTrialError:
            answer(None)
        except TrainingError as error:
            answer(TrainingError(str(error)))


if __name__ == "__main__":
    keep_programs()
    try:
        main()
    except EOFError:  # the search has ended, or needs this process no more
        sys.exit()
