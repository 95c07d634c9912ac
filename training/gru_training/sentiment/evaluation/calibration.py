"""Calibration on validation rows with final weights: temperature, thresholds, scale.

For numbers to estimate, intervals are fitted; for classes and labels, the temperature and then the
thresholds.
"""

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
    if target.kind == "labels":
        head = LabelsHead(target.names, temperature.value, Decision())
        scores = head.scores(logits).numpy()
        decision = _label_decision(target, settings, labels > 0.5, scores)
        return Calibrated(
            LabelsHead(target.names, temperature.value, decision), temperature, decision
        )
    scores = ClassHead(target.names, temperature.value, Decision()).scores(logits).numpy()
    decision = _class_decision(target, settings, labels, scores)
    return Calibrated(ClassHead(target.names, temperature.value, decision), temperature, decision)


def _class_decision(
    target: Target, settings: DecisionConfig, labels: np.ndarray, scores: np.ndarray
) -> Decision:
    reasons, thresholds = list[str](), [0.0] * len(target.names)
    utilities: tuple[tuple[float, ...], ...] = ()
    if settings.costs is not None:
        utilities = read_costs(settings.costs, target.names)
        reasons.append(f"the least expected cost (`costs={settings.costs.name}`)")
    for number, share in read_targets(settings.target_precision, target.names).items():
        thresholds[number], reason = _for_precision(
            target.names[number], labels == number, scores[:, number], share
        )
        reasons.append(reason)
    if not reasons:
        return Decision()
    held = tuple(thresholds) if any(thresholds) else ()
    return Decision(held, utilities, "; ".join(reasons))


def _label_decision(
    target: Target, settings: DecisionConfig, members: np.ndarray, scores: np.ndarray
) -> Decision:
    applied = at_best_threshold(members, scores)
    common = float(scores[applied].min()) if applied.any() else 0.5
    thresholds, few = [], 0
    for number in range(len(target.names)):
        enough = members[:, number].sum() >= _MIN_ROWS
        few += not enough
        thresholds.append(f1_threshold(members[:, number], scores[:, number]) if enough else common)
    reasons = ["the best F1 of each label on the validation rows"]
    if few:
        reasons.append(
            f"{counted(few, 'label')} with fewer than {_MIN_ROWS} of these rows at the best "
            f"common threshold, {common:.3f}"
        )
    for number, share in read_targets(settings.target_precision, target.names).items():
        thresholds[number], reason = _for_precision(
            target.names[number], members[:, number], scores[:, number], share
        )
        reasons.append(reason)
    return Decision(tuple(thresholds), (), "; ".join(reasons))


def _for_precision(
    name: str, is_class: np.ndarray, scores: np.ndarray, share: float
) -> tuple[float, str]:
    threshold = precision_threshold(is_class, scores, share)
    if threshold is None:
        return (
            _UNREACHABLE_THRESHOLD,
            f"{name!r} never, as no threshold reaches a precision of {share:.0%}",
        )
    return threshold, f"{name!r} from {threshold:.3f} on, for a precision of {share:.0%}"
