"""The study of a search, which Optuna stores in a file, and the choice at its end."""

import json
import sqlite3
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import optuna
from filelock import FileLock
from optuna.exceptions import ExperimentalWarning, OptunaError
from optuna.pruners import MedianPruner
from optuna.samplers import TPESampler
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.study import StudyDirection
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
from gru_training.tune.search_space import SearchSpace

DATABASE = "study.db"
LEFT_OUT, REASON = "left_out", "reason"
"""Attributes of a trial: the criterion without each part of the rows (`Judged.left_out`), and the
reason why it failed or was stopped."""
STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "stopped",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
}
_IDENTITY = "identity"
_HEARTBEAT_SECONDS, _GRACE_SECONDS = 20, 90
_LOCK_SECONDS = 60
"""Seconds that a process waits for others to finish writing."""


class NumberedSampler(TPESampler):
    """A tree-structured Parzen estimator (Bergstra et al., 2011) with random numbers per trial.

    With one seed, several processes, or a study that continues, would draw the same values again.

    Args:
        seed: Seed of all trials together.
    """

    def __init__(self, seed: int):
        super().__init__(seed=seed)
        self._first = seed

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Seed the random numbers of this trial."""
        TPESampler.__init__(self, seed=(self._first + 7919 * (trial.number + 1)) % 2**32)
        super().before_trial(study, trial)


def open_study(folder: Path, criterion: Criterion, seed: int) -> optuna.Study:
    """Open the study of a folder, or begin one there.

    A trial is stopped early if it is worse than half of the trials were after as many epochs.

    Args:
        folder: Existing folder.
        criterion: Criterion of the trials.
        seed: Seed of the settings that are drawn.

    Raises:
        RunDirectoryError: The file cannot be read or written.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path = folder / DATABASE
    try:
        # Two processes that create the tables at the same time would disturb each other.
        with FileLock(folder / ".study.lock", _LOCK_SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)  # the heartbeat
            storage = RDBStorage(
                f"sqlite:///{path.resolve()}",
                engine_kwargs={"connect_args": {"timeout": _LOCK_SECONDS}},
                heartbeat_interval=_HEARTBEAT_SECONDS,
                grace_period=_GRACE_SECONDS,
                heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(max_retry=1),
            )
            return optuna.create_study(
                storage=storage,
                study_name="study",
                sampler=NumberedSampler(seed),
                pruner=MedianPruner(n_startup_trials=4, n_warmup_steps=2),
                direction="maximize" if criterion.higher_is_better else "minimize",
                load_if_exists=True,
            )
    except (SQLAlchemyError, sqlite3.Error, OptunaError, RuntimeError, OSError) as error:
        raise RunDirectoryError(
            f"{path}: expected the study of a search, or a place for one; {error}"
        ) from error


def claim(
    folder: Path,
    study: optuna.Study,
    identity: Mapping[str, Any],
    defaults: Mapping[str, Any] | None,
) -> bool:
    """Assign the study to a search.

    Args:
        folder: Folder of the study, for messages.
        study: Study to assign.
        identity: Facts that must be the same for trials to be comparable, by name.
        defaults: Settings of the first trial; None for no such trial.

    Returns:
        Whether the study continues; otherwise it has just begun.

    Raises:
        ConfigError: The study belongs to another search; the message names the first difference.
    """
    known = study.user_attrs.get(_IDENTITY)
    if known is None:
        study.set_user_attr(_IDENTITY, dict(identity))
        if defaults is not None:
            study.enqueue_trial(dict(defaults), skip_if_exists=True)
        return False
    given = json.loads(json.dumps(dict(identity)))
    for name, value in given.items():
        if known.get(name) != value:
            raise ConfigError(
                f"{folder}: this study has {name} {known.get(name)}, expected the same again, "
                f"got {value}; choose another --study"
            )
    return True


def complete_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Return the complete trials, the best one first; of equal ones, the earliest."""
    sign = -1 if study.direction is StudyDirection.MAXIMIZE else 1
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return sorted(trials, key=lambda each: sign * (each.value or 0.0))


class Found(NamedTuple):
    """The result of a search: the trial whose settings are used, and the reason."""

    folder: Path
    space: SearchSpace
    study: optuna.Study
    criterion: Criterion
    trial: FrozenTrial
    """The trial whose settings are used: one of the next two."""
    best: FrozenTrial
    """The best trial."""
    defaults: FrozenTrial | None = None
    """The trial of the default settings, if there was one."""
    gain: float = 0.0
    """Advantage of the best trial over the defaults, positive if it is better."""
    error: float | None = None
    """The standard error of the gain; None if it is unknown."""

    @property
    def keeps_defaults(self) -> bool:
        """True if the best trial was rejected."""
        return self.trial is not self.best


def choose(
    folder: Path, space: SearchSpace, study: optuna.Study, criterion: Criterion
) -> Found | None:
    """Choose between the best trial and the default settings.

    The best of many trials is in part the luckiest. It is chosen if it is better than the defaults
    by at least one standard error, the 1-SE rule (Breiman et al., 1984). With few rows two are
    required, and with too few rows for a standard error it is not chosen.

    Args:
        folder: Folder of the study.
        space: Space of the search, with the settings before it.
        study: Study of the search.
        criterion: Criterion of its trials.

    Returns:
        None if no trial is complete.
    """
    trials, defaults = complete_trials(study), space.defaults()
    if not trials:
        return None
    best, before = trials[0], next((each for each in trials if each.params == defaults), None)
    found = Found(folder, space, study, criterion, best, best, before)
    if before is None or before is best:
        return found
    gain = abs((best.value or 0.0) - (before.value or 0.0))
    parts, parts_before = (each.user_attrs.get(LEFT_OUT, ()) for each in (best, before))
    if len(parts) < FEWEST_PARTS or len(parts) != len(parts_before):
        return found._replace(trial=before if criterion.caution else best, gain=gain)
    error = standard_error(parts, parts_before)
    factor = ERRORS_TO_BEAT_BY_FEW if criterion.caution else ERRORS_TO_BEAT
    return found._replace(trial=before if gain < factor * error else best, gain=gain, error=error)
