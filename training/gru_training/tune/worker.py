"""Runs some trials of a study: `python -m gru_training.tune.worker JOB COUNT`.

Trials run in processes of their own, for what TensorFlow has compiled stays in memory as long as
its process, and a trial that needs too much of it must not end the search.
"""

import os
import pickle
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna

from gru_training.criterion import Criterion
from gru_training.errors import TrainingError
from gru_training.programs import keep_programs
from gru_training.task import Searchable, find_task
from gru_training.tune.search_space import SearchSpace
from gru_training.tune.study import LEFT_OUT_ATTRIBUTE, Study


@dataclass(frozen=True)
class Job:
    """The task, space and data that every process of a search gets."""

    task: str
    space: SearchSpace
    data: Any
    """Data that the task's `check` has read."""
    criterion: Criterion
    folder: Path
    pruner: str

    def open_study(self) -> Study:
        """The study of the folder.

        Raises:
            RunDirectoryError: The study cannot be read or written.
        """
        training = self.space.config.training
        return Study.open(self.folder, self.criterion, self.pruner, training.seed, training.epochs)


def worker_name(process: int) -> str:
    """Name the process of this number, in a study that machines share."""
    return f"{socket.gethostname()}:{process}"


class _Termination:
    """Ends the process by SIGTERM, but not between the start of a trial and its worker's name.

    A trial without a name could not be told from one of another machine, and would seem to run on.
    """

    def __init__(self) -> None:
        self._naming, self._came = True, False
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self._came = True
        if not self._naming:
            os._exit(128 + signal.SIGTERM)

    def name(self, trial: optuna.Trial) -> None:
        """Say whose trial this is."""
        trial.set_user_attr("worker", worker_name(os.getpid()))
        self._naming = False
        if self._came:
            os._exit(128 + signal.SIGTERM)

    def trial_ends(self) -> None:
        """Allow the next trial to start."""
        self._naming = True


def run_trials(job: Job, count: int) -> None:
    """Run some trials, one after the other, unless the process that asked for them ends."""
    task, parent = find_task(job.task), os.getppid()
    assert isinstance(task, Searchable)
    termination = _Termination()

    def objective(trial: optuna.Trial) -> float:
        termination.name(trial)

        def after_epoch(epoch: int, value: float) -> None:
            if os.getppid() != parent:
                raise SystemExit("the search has ended")
            trial.report(value, epoch)
            if trial.should_prune():
                trial.set_user_attr("reason", f"worse than others after epoch {epoch}")
                raise optuna.TrialPruned

        values = {name: choice.suggest(trial, name) for name, choice in job.space.choices.items()}
        try:
            settings = job.space.with_values(values)
            found = task.try_settings(settings, job.data, job.criterion, after_epoch)
            trial.set_user_attr(LEFT_OUT_ATTRIBUTE, found.left_out)
            return found.value
        except TrainingError as error:
            trial.set_user_attr("reason", str(error))
            raise
        finally:
            termination.trial_ends()

    job.open_study().study.optimize(objective, n_trials=count, catch=(TrainingError,))


if __name__ == "__main__":
    keep_programs()
    with Path(sys.argv[1]).open("rb") as file:
        told = pickle.load(file)
    from gru_training.tune.worker import run_trials as run  # of the module, as Job was pickled

    run(told, int(sys.argv[2]))
