"""Advice on what to try next, each with the figure that suggests it."""

from collections.abc import Mapping, Sequence

import numpy as np

from gru_serving.preprocessing.texts import UNKNOWN
from gru_training.sentiment.evaluation.baselines import BaselineResult
from gru_training.sentiment.evaluation.classifier import TrainedClassifier

_GAP = 0.1
"""Largest difference of training and validation accuracy without advice."""
_MIN_ROWS_RATIO = 5
_MAX_UNKNOWN_SHARE = 0.05
_CUT_SHARE = 0.05


def advice(
    trained: TrainedClassifier, floors: Sequence[BaselineResult], validation: Mapping[str, float]
) -> list[str]:
    """Write sentences of advice for the report; none if nothing suggests itself.

    Args:
        trained: A model that answers classes.
        floors: Simple models beside it.
        validation: Measures of the model on the validation rows.
    """
    found = []
    best = max(floors, key=lambda floor: floor.validation["accuracy"])
    if best.validation["accuracy"] > validation["accuracy"] and trained.answers.shares is None:
        found.append(
            f"{best.name} does better on the validation rows "
            f"({best.validation['accuracy']:.1%} against {validation['accuracy']:.1%}): "
            "combine the two with `--ngrams`."
        )
    found += _of_classes(trained, validation)
    found += _of_training(trained)
    return found + _of_texts(trained)


def _of_classes(trained: TrainedClassifier, validation: Mapping[str, float]) -> list[str]:
    counts = np.bincount(trained.texts.rows["train"].labels, minlength=len(trained.data.classes))
    gap = validation["accuracy"] - validation["macro_f1"]
    if counts.max() < _MIN_ROWS_RATIO * counts.min() or gap < _GAP / 2:
        return []
    rare = trained.data.classes[int(counts.argmin())]
    text = (
        f"Accuracy is {validation['accuracy']:.1%} but macro F1 {validation['macro_f1']:.1%}, and "
        f"{rare!r} has {counts.min():,} training rows where the largest class has "
        f"{counts.max():,}: "
    )
    settings = trained.config.training
    if settings.class_weight is None:
        return [text + "try `--class-weight balanced --metric macro_f1`."]
    return [text + "label more rows of the rare classes."]


def _of_training(trained: TrainedClassifier) -> list[str]:
    result, settings = trained.result, trained.config.training
    last = result.epochs[-1]
    best = next(record for record in result.epochs if record.epoch == result.best_epoch)
    found = []
    if last.epoch == result.best_epoch == settings.epochs and not result.interrupted:
        found.append(
            f"The last of {settings.epochs} epochs was the best: try `--epochs "
            f"{2 * settings.epochs}`."
        )
    gap = best.train["accuracy"] - best.validation["accuracy"]
    if gap > _GAP:
        found.append(
            f"The network gets {best.train['accuracy']:.1%} of the training rows right but "
            f"{best.validation['accuracy']:.1%} of the validation rows: more labelled texts would "
            "help; `--unlabelled` learns from texts without labels, and `--set subwords=yes` from "
            "parts of words."
        )
    return found


def _of_texts(trained: TrainedClassifier) -> list[str]:
    ids = np.concatenate(trained.texts.rows["validation"].ids)
    unknown = float(np.mean(ids == UNKNOWN))
    longest = trained.config.data.max_tokens
    cut = float(np.mean([len(row) >= longest for row in trained.texts.rows["validation"].ids]))
    found = []
    if unknown > _MAX_UNKNOWN_SHARE and not trained.config.model.subwords:
        found.append(
            f"{unknown:.1%} of the words in the validation rows are unknown to the model: try "
            "`--set subwords=yes`."
        )
    if cut > _CUT_SHARE:
        found.append(
            f"{cut:.1%} of the validation rows are longer than the {longest} tokens that are read, "
            f"and only their ends count: try `--max-tokens {2 * longest}`."
        )
    return found
