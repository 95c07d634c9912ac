"""Which settings a search ends with: the best ones, unless chance may explain what they gain."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gru_training.criterion import FEWEST_PARTS, standard_error
from gru_training.tune.study import Study, Trial


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
    """By how much the best is better than the defaults, above 0 for better."""
    error: float | None = None
    """The standard error of the gain; None where it cannot be told."""

    @property
    def keeps_defaults(self) -> bool:
        """Whether the best trial was not taken."""
        return self.trial is not self.best


def pick(study: Study, defaults: Mapping[str, Any]) -> Pick | None:
    """Choose between the best trial and the default settings.

    The best of many trials is in part the luckiest. It is taken if it is better than the defaults
    by at least one standard error, the 1-SE rule (Breiman et al., 1984); where there are too few
    rows for a standard error, not at all.

    Args:
        study: Of the search.
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
    return Pick(before if gain < error else best, best, before, gain, error)
