"""What a search tries next."""

from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial


class NumberedSampler(BaseSampler):
    """A tree-structured Parzen estimator (Bergstra et al., 2011) whose draws depend on the trial.

    A sampler with one seed would draw the same values in each of several processes, and again
    when a study goes on. Here the random numbers are those of the trial's number, which no two
    trials of a study share.

    Args:
        seed: Of all trials together.
    """

    def __init__(self, seed: int):
        self._seed = seed
        self._sampler = TPESampler(seed=seed)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Begin the random numbers of this trial."""
        self._sampler = TPESampler(seed=(self._seed + 7919 * (trial.number + 1)) % 2**32)
        self._sampler.before_trial(study, trial)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """As of the estimator."""
        return self._sampler.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """As of the estimator."""
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """As of the estimator."""
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)
