"""The run that a text classifier went on from beside it, on old and new rows."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gru_training.classification.averages import micro_f1
from gru_training.compare.diebold_mariano import diebold_mariano
from gru_training.compare.mcnemar import mcnemar_test
from gru_training.continuing.beside import checked
from gru_training.data.label_cells import TargetKind
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.continuing.start import Start
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.network.logits import predict_logits
from gru_training.sentiment.served.head import ClassHead, Head, LabelsHead
from gru_training.words.token_rows import TokenRows
from gru_training.words.vocabulary import token_ids


class _Measure(NamedTuple):
    """What both models are compared by."""

    name: str
    style: str
    higher_is_better: bool
    of: Callable[[np.ndarray, np.ndarray], float]
    """Of targets and answers."""


_MEASURES: dict[TargetKind, _Measure] = {
    "class": _Measure("accuracy", ".2%", True, lambda right, said: float(np.mean(right == said))),
    "labels": _Measure("micro F1", ".2%", True, lambda right, said: micro_f1(right > 0.5, said)),
    "number": _Measure(
        "mean absolute error",
        ".4g",
        False,
        lambda right, said: float(np.mean(np.abs(right - said))),
    ),
}


def beside_the_old(
    start: Start,
    config: SentimentConfig,
    data: SentimentData,
    rows: Mapping[str, TokenRows],
    head: Head,
    logits: Mapping[str, np.ndarray],
    words: int,
) -> dict[str, Any]:
    """What `gru_training.continuing.beside` tells of.

    Args:
        start: What the training began with.
        config: Every setting.
        data: Old and new rows.
        rows: The same as ids.
        head: From the new model's logits to answers.
        logits: (N, C) of the new model, of the validation and test rows.
        words: How many the new model knows.
    """
    assert config.continued is not None
    measure = _MEASURES[data.kind]
    old_head = start.run.head()
    preprocessor = start.run.preprocessor()
    old_validation, old_test = data.earlier["validation"], data.earlier["test"]
    texts = [*data.validation.texts[:old_validation], *data.test.texts]
    ids = token_ids(preprocessor, texts)
    answers = _answers(old_head, predict_logits(start.model, ids), len(data.classes))
    before = {"validation": answers[:old_validation], "test": answers[old_validation:]}
    after = {part: _answers(head, of, len(data.classes)) for part, of in logits.items()}
    targets = {part: rows[part].labels for part in logits}

    def both(part: str, chosen: slice) -> dict[str, Any]:
        right = targets[part][chosen]
        values = [
            float(measure.of(right, of[part][chosen])) if len(right) else None
            for of in (before, after)
        ]
        return {"rows": len(right), "before": values[0], "after": values[1]}

    check = None
    if old_validation:
        of = both("validation", slice(old_validation))
        p_value = _p_value(
            data.kind,
            targets["validation"][:old_validation],
            after["validation"][:old_validation],
            before["validation"],
        )
        check = checked(**of, p_value=p_value, higher_is_better=measure.higher_is_better)
    return {
        "run": str(config.continued.from_run),
        "new_data": str(config.continued.new_data),
        "only_new": config.continued.only_new,
        "replay": 0.0 if config.continued.only_new else data.replay,
        "grown": {
            "words": words - len(start.run.vocabulary),
            "labels" if data.kind == "labels" else "classes": list(
                data.classes[len(start.run.classes) :]
            ),
        },
        "measure": measure.name,
        "style": measure.style,
        "rows": "rows",
        "parts": {
            "old test rows": both("test", slice(old_test)),
            "new test rows": both("test", slice(old_test, None)),
            "all test rows": both("test", slice(None)),
        },
        "check": check,
    }


def _answers(head: Head, logits: np.ndarray, classes: int) -> np.ndarray:
    """Class numbers (N,), labels (N, C) bool, or numbers (N,)."""
    if isinstance(head, ClassHead):
        return np.asarray(head.foremost(logits))
    if isinstance(head, LabelsHead):
        held = head.decision.labels(head.scores(logits).numpy())
        return np.pad(held, [(0, 0), (0, classes - held.shape[1])])
    return np.asarray(head.answers(logits)["value"])


def _p_value(
    kind: TargetKind, targets: np.ndarray, after: np.ndarray, before: np.ndarray
) -> float | None:
    """Of McNemar's test; of numbers that of the mean difference of the absolute errors."""
    if kind == "number":
        test = diebold_mariano(np.abs(after - targets) - np.abs(before - targets), 1)
        return None if test is None else test.p_value
    if kind == "labels":
        right = [((answers == (targets > 0.5)).all(axis=1)) for answers in (after, before)]
    else:
        right = [answers == targets for answers in (after, before)]
    return mcnemar_test(*right).p_value
