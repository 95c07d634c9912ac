"""A study: the trials of one search, in a folder that several processes can share."""

import json
import sqlite3
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock
from optuna.exceptions import ExperimentalWarning, OptunaError
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import TPESampler
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from gru_training.criterion import (
    ERRORS_TO_BEAT,
    ERRORS_TO_BEAT_BY_FEW,
    FEWEST_PARTS,
    Criterion,
    standard_error,
)
from gru_training.errors import ConfigError, RunDirectoryError

DATABASE = "study.db"
_LOCK = ".study.lock"
_NAME = "study"
LEFT_OUT_ATTRIBUTE = "left_out"
"""Attribute of a trial with the criterion without each part of the rows (`Judged.left_out`)."""
_IDENTITY = "identity"
_HEARTBEAT_SECONDS, _GRACE_SECONDS = 20, 90
_LOCK_SECONDS = 60
"""Seconds that a process waits for others that write."""
_STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "stopped",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
}


class NumberedSampler(TPESampler):
    """A tree-structured Parzen estimator (Bergstra et al., 2011) whose draws depend on the trial.

    With one seed, several processes, and a study that continues, would draw the same values again.
    Each trial has random numbers of its own, by its number.

    Args:
        seed: Seed of all trials together.
    """

    def __init__(self, seed: int):
        super().__init__(seed=seed)
        self._first = seed

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Begin the random numbers of this trial."""
        TPESampler.__init__(self, seed=(self._first + 7919 * (trial.number + 1)) % 2**32)
        super().before_trial(study, trial)


@dataclass(frozen=True)
class Trial:
    """One trial of a search."""

    number: int
    state: str
    """complete, stopped, failed, or running."""
    value: float | None
    """The criterion; the last one known of a trial that was stopped."""
    settings: Mapping[str, Any]
    seconds: float | None
    reason: str
    """Reason why the trial failed or was stopped."""
    worker: str
    """Name of the process that runs or ran the trial."""
    left_out: tuple[float, ...] = ()
    """The criterion without each part of the validation rows (`gru_training.criterion`)."""


class Study:
    """Trials in an SQLite file, by Optuna.

    Args:
        study: Optuna's study.
        criterion: Criterion of its trials.
    """

    def __init__(self, study: optuna.Study, criterion: Criterion):
        self.study, self.criterion = study, criterion

    @classmethod
    def open(
        cls, folder: Path, criterion: Criterion, pruner: str, seed: int, epochs: int
    ) -> "Study":
        """Open the study of a folder, or begin one there.

        Args:
            folder: Existing folder.
            criterion: Criterion of the trials.
            pruner: `median`, `hyperband` or `none`.
            seed: Seed of the settings that are drawn.
            epochs: Maximum number of epochs of a trial.

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
                    pruner=_PRUNERS[pruner](epochs),
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
            identity: Facts that must be the same for trials to be comparable, by name.
            defaults: Settings of the first trial; None for no such trial.

        Returns:
            Whether it goes on; else it has just begun.

        Raises:
            ConfigError: The study belongs to another search; the message names the first
                difference.
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
        """Return all trials that have begun, in order."""
        return [
            self._trial(each)
            for each in self.study.get_trials(deepcopy=False)
            if each.state is not TrialState.WAITING
        ]

    def best(self, trials: Sequence[Trial] | None = None) -> Trial | None:
        """Return the complete trial that does best; the first of several.

        Args:
            trials: Trials to choose among; by default all of the study, read again.
        """
        sign = 1 if self.criterion.higher_is_better else -1
        trials = self.trials() if trials is None else trials
        done = [each for each in trials if each.state == "complete"]
        return max(done, key=lambda each: sign * (each.value or 0.0), default=None)

    def release(self, workers: Sequence[str], state: TrialState, reason: str, again: bool) -> None:
        """End the trials of processes that are no more.

        Args:
            workers: Names of the processes.
            state: State that their trials get.
            reason: Reason for it, for people.
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
            tuple(trial.user_attrs.get(LEFT_OUT_ATTRIBUTE, ())),
        )


_PRUNERS: Mapping[str, Callable[[int], BasePruner]] = {
    "median": lambda _: MedianPruner(n_startup_trials=4, n_warmup_steps=2),
    "hyperband": lambda epochs: HyperbandPruner(min_resource=1, max_resource=epochs),
    "none": lambda _: NopPruner(),
}


@dataclass(frozen=True)
class Pick:
    """The trial whose settings are taken, and why."""

    trial: Trial
    """The trial whose settings to train with: one of the next two."""
    best: Trial
    """The trial that does best."""
    defaults: Trial | None
    """The trial of the default settings, where there was one."""
    gain: float = 0.0
    """Advantage of the best trial over the defaults, above 0 for better."""
    error: float | None = None
    """The standard error of the gain; None where it cannot be told."""

    @property
    def keeps_defaults(self) -> bool:
        """Whether the best trial was not taken."""
        return self.trial is not self.best


def pick(study: Study, defaults: Mapping[str, Any]) -> Pick | None:
    """Choose between the best trial and the default settings.

    The best of many trials is in part the luckiest. It is taken if it is better than the defaults
    by at least one standard error, the 1-SE rule (Breiman et al., 1984). Where there are few rows
    it takes two; where there are too few for a standard error, it is not taken at all.

    Args:
        study: Study of the search.
        defaults: Values of the settings before the search.

    Returns:
        None where no trial is complete.
    """
    trials = study.trials()
    best = study.best(trials)
    if best is None or best.value is None:
        return None
    done = (each for each in trials if each.state == "complete" and each.settings == defaults)
    before = next(done, None)
    if before is None or before.value is None or before.number == best.number:
        return Pick(best, best, before)
    sign = 1 if study.criterion.higher_is_better else -1
    gain = sign * (best.value - before.value)
    parts = len(best.left_out)
    if parts < FEWEST_PARTS or parts != len(before.left_out):
        return Pick(before if study.criterion.caution else best, best, before, gain)
    error = standard_error(best.left_out, before.left_out)
    factor = ERRORS_TO_BEAT_BY_FEW if study.criterion.caution else ERRORS_TO_BEAT
    return Pick(before if gain < factor * error else best, best, before, gain, error)
