"""Calibration on validation rows with final weights: temperature, thresholds, scale.

For numbers to estimate, intervals are fitted; for classes and labels, the temperature and then the
thresholds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gru_training.config import to_dict
from gru_training.data.problems import counted
from gru_training.runs.directory import RunWriter
from gru_training.sentiment.config import DecisionConfig
from gru_training.sentiment.decision import (
    Decision,
    Scale,
    Temperature,
    f1_threshold,
    fit_temperature,
    interval_offsets,
    precision_threshold,
    read_costs,
    read_targets,
)
from gru_training.sentiment.measures import at_best_threshold
from gru_training.sentiment.served.head import ClassHead, Head, LabelsHead, NumberHead
from gru_training.sentiment.targets import NumberTarget, Target

_MIN_ROWS = 10
"""Fewest validation rows with a label for a threshold of its own."""
_UNREACHABLE_THRESHOLD = 1.01
"""A threshold that no probability reaches."""


@dataclass(frozen=True)
class Calibrated:
    """A head with the values from which it was made."""

    head: Head
    temperature: Temperature | None = None
    decision: Decision | None = None
    scale: Scale | None = None

    def write(self, writer: RunWriter) -> None:
        """Write the files of a run that `gru_training.sentiment.run.SentimentRun.head` reads."""
        for name in ("temperature", "decision", "scale"):
            value = getattr(self, name)
            if value is not None:
                writer.write_json(f"{name}.json", to_dict(value))


def calibrate(
    target: Target, settings: DecisionConfig, labels: np.ndarray, logits: np.ndarray
) -> Calibrated:
    """Fit on validation rows.

    Args:
        target: Target of the model.
        settings: Settings of the decision.
        labels: The targets of the rows.
        logits: Logits, (N, C).

    Raises:
        ConfigError: The settings name other classes.
    """
    if isinstance(target, NumberTarget):
        estimates = logits[:, 0].astype(np.float64) * target.deviation + target.mean
        offsets = interval_offsets(labels - estimates)
        scale = Scale(target.mean, target.deviation, offsets)
        return Calibrated(NumberHead(target.names[0], scale), scale=scale)
    temperature = fit_temperature(labels, logits, target.mean_loss)
    several = target.kind == "labels"
    kind: type[ClassHead | LabelsHead] = LabelsHead if several else ClassHead
    decide = _label_decision if several else _class_decision
    scores = kind(target.names, temperature.value, Decision()).scores(logits).numpy()
    decision = decide(target, settings, target.members(labels), scores)
    return Calibrated(kind(target.names, temperature.value, decision), temperature, decision)


def _class_decision(
    target: Target, settings: DecisionConfig, members: np.ndarray, scores: np.ndarray
) -> Decision:
    reasons, thresholds = list[str](), [0.0] * len(target.names)
    utilities: tuple[tuple[float, ...], ...] = ()
    if settings.costs is not None:
        utilities = read_costs(settings.costs, target.names)
        reasons.append(f"the least expected cost (`costs={settings.costs.name}`)")
    reasons += _set_for_precision(thresholds, target, settings, members, scores)
    if not reasons:
        return Decision()
    held = tuple(thresholds) if any(thresholds) else ()
    return Decision(held, utilities, "; ".join(reasons))


def _label_decision(
    target: Target, settings: DecisionConfig, members: np.ndarray, scores: np.ndarray
) -> Decision:
    applied = at_best_threshold(members, scores)
    common = float(scores[applied].min()) if applied.any() else 0.5
    enough = members.sum(axis=0) >= _MIN_ROWS
    thresholds = [
        f1_threshold(members[:, number], scores[:, number]) if enough[number] else common
        for number in range(len(target.names))
    ]
    reasons = ["the best F1 of each label on the validation rows"]
    if not enough.all():
        reasons.append(
            f"{counted(int((~enough).sum()), 'label')} with fewer than {_MIN_ROWS} of these rows "
            f"at the best common threshold, {common:.3f}"
        )
    reasons += _set_for_precision(thresholds, target, settings, members, scores)
    return Decision(tuple(thresholds), (), "; ".join(reasons))


def _set_for_precision(
    thresholds: list[float],
    target: Target,
    settings: DecisionConfig,
    members: np.ndarray,
    scores: np.ndarray,
) -> Iterator[str]:
    """Set the thresholds of the precisions asked for, and yield what was done."""
    for number, share in read_targets(settings.target_precision, target.names).items():
        name = target.names[number]
        threshold = precision_threshold(members[:, number], scores[:, number], share)
        thresholds[number] = _UNREACHABLE_THRESHOLD if threshold is None else threshold
        if threshold is None:
            yield f"{name!r} never, as no threshold reaches a precision of {share:.0%}"
        else:
            yield f"{name!r} from {threshold:.3f} on, for a precision of {share:.0%}"
