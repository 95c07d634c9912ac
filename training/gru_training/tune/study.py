"""A study: the trials of one search, in a folder that several processes can share."""

import json
import sqlite3
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock
from optuna.exceptions import ExperimentalWarning, OptunaError
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from gru_training.criterion import Criterion
from gru_training.errors import ConfigError, RunDirectoryError
from gru_training.tune.sampler import NumberedSampler

DATABASE = "study.db"
_LOCK = ".study.lock"
_NAME = "study"
LEFT_OUT = "left_out"
"""The attribute of a trial that has `Judged.left_out`."""
_IDENTITY = "identity"
_HEARTBEAT_SECONDS, _GRACE_SECONDS = 20, 90
_LOCK_SECONDS = 60
"""How long a process waits for others that write."""
_STARTUP_TRIALS, _WARMUP_EPOCHS = 4, 2


@dataclass(frozen=True)
class Trial:
    """One trial, as people ask about it."""

    number: int
    state: str
    """complete, stopped, failed, or running."""
    value: float | None
    """The criterion; of a trial that was stopped the last one known."""
    settings: Mapping[str, Any]
    seconds: float | None
    reason: str
    """Why it failed or was stopped."""
    worker: str
    """The process that runs or ran it."""
    left_out: tuple[float, ...] = ()
    """The criterion without each part of the validation rows (`gru_training.judged`)."""


class Study:
    """Trials in an SQLite file, by Optuna.

    Args:
        study: Of Optuna.
        criterion: What its trials are judged by.
    """

    def __init__(self, study: optuna.Study, criterion: Criterion):
        self.study, self.criterion = study, criterion

    @classmethod
    def open(
        cls, folder: Path, criterion: Criterion, pruner: str, seed: int, epochs: int
    ) -> "Study":
        """Open the study of a folder, or begin one there.

        Args:
            folder: Exists.
            criterion: What trials are judged by.
            pruner: `median`, `hyperband` or `none`.
            seed: Of what is drawn.
            epochs: Most epochs of a trial.

        Raises:
            RunDirectoryError: The file cannot be read or written.
        """
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        path = folder / DATABASE
        try:
            # Two processes that create the tables at the same time get in each other's way.
            with FileLock(folder / _LOCK, _LOCK_SECONDS), warnings.catch_warnings():
                warnings.simplefilter("ignore", ExperimentalWarning)  # the heartbeat
                storage = RDBStorage(
                    f"sqlite:///{path.resolve()}",
                    engine_kwargs={"connect_args": {"timeout": _LOCK_SECONDS}},
                    heartbeat_interval=_HEARTBEAT_SECONDS,
                    grace_period=_GRACE_SECONDS,
                    heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(max_retry=1),
                )
                study = optuna.create_study(
                    storage=storage,
                    study_name=_NAME,
                    sampler=NumberedSampler(seed),
                    pruner=_pruner(pruner, epochs),
                    direction="maximize" if criterion.higher_is_better else "minimize",
                    load_if_exists=True,
                )
        except (SQLAlchemyError, sqlite3.Error, OptunaError, RuntimeError, OSError) as error:
            raise RunDirectoryError(
                f"{path}: expected the study of a search, or a place for one; {error}"
            ) from error
        return cls(study, criterion)

    def claim(self, identity: Mapping[str, Any], defaults: Mapping[str, Any] | None) -> bool:
        """Make the study that of a search.

        Args:
            identity: What has to be the same for trials to be comparable, by what it is called.
            defaults: Of the first trial; None for no such trial.

        Returns:
            Whether it goes on; else it has just begun.

        Raises:
            ConfigError: It is the study of another search; names the first difference.
        """
        known = self.study.user_attrs.get(_IDENTITY)
        if known is None:
            self.study.set_user_attr(_IDENTITY, dict(identity))
            if defaults is not None:
                self.study.enqueue_trial(dict(defaults), skip_if_exists=True)
            return False
        given = json.loads(json.dumps(dict(identity)))
        for name, value in given.items():
            if known.get(name) != value:
                raise ConfigError(
                    f"this study has {name} {known.get(name)}, expected the same again, got "
                    f"{value}; choose another --study"
                )
        return True

    def trials(self) -> list[Trial]:
        """All trials that have begun, in order."""
        return [
            self._trial(each)
            for each in self.study.get_trials(deepcopy=False)
            if each.state is not TrialState.WAITING
        ]

    def best(self, trials: Sequence[Trial] | None = None) -> Trial | None:
        """The complete trial that does best; the first of several.

        Args:
            trials: Among which; by default all of the study, which are read anew.
        """
        sign = 1 if self.criterion.higher_is_better else -1
        trials = self.trials() if trials is None else trials
        done = [each for each in trials if each.state == "complete"]
        return max(done, key=lambda each: sign * (each.value or 0.0), default=None)

    def release(self, workers: Sequence[str], state: TrialState, reason: str, again: bool) -> None:
        """End the trials of processes that are no more.

        Args:
            workers: Names of the processes.
            state: What has become of their trials.
            reason: Likewise, for people.
            again: Whether to try the same settings again.
        """
        for each in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if each.user_attrs.get("worker") not in workers:
                continue
            self.study.set_user_attr(f"ended {each.number}", reason)
            self.study.tell(each.number, state=state)
            settings = each.params or each.system_attrs.get("fixed_params")
            if again and settings:
                self.study.enqueue_trial(settings)

    def _trial(self, trial: FrozenTrial) -> Trial:
        value = trial.value if trial.state is TrialState.COMPLETE else None
        if value is None and trial.intermediate_values:
            value = trial.intermediate_values[max(trial.intermediate_values)]
        taken = trial.duration
        reason = trial.user_attrs.get("reason")
        return Trial(
            trial.number,
            _STATES[trial.state],
            value,
            trial.params,
            None if taken is None else taken.total_seconds(),
            str(reason or self.study.user_attrs.get(f"ended {trial.number}", "")),
            str(trial.user_attrs.get("worker", "")),
            tuple(trial.user_attrs.get(LEFT_OUT, ())),
        )


_STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "stopped",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
}


def _pruner(name: str, epochs: int) -> optuna.pruners.BasePruner:
    if name == "median":
        return optuna.pruners.MedianPruner(_STARTUP_TRIALS, _WARMUP_EPOCHS)
    if name == "hyperband":
        return optuna.pruners.HyperbandPruner(min_resource=1, max_resource=epochs)
    return optuna.pruners.NopPruner()
