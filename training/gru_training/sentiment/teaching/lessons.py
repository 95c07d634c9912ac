"""What a trained run answers to texts without labels, for another network to learn.

Scudder (1965), "Probability of Error of Some Adaptive Pattern-Recognition Machines", section IV;
with noise on the student's side alone (dropped words and features) as in Xie et al. (2020),
"Self-Training with Noisy Student Improves ImageNet Classification" (arXiv:1911.04252), section 2.
The answers are probabilities, which the student learns as in distillation. Labelled rows keep
their labels: of rows it was trained on, a teacher has nothing else to tell.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from gru_training.errors import DataError
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.evaluation.measured import measured
from gru_training.sentiment.network.logits import predict_logits
from gru_training.sentiment.rows import text_key
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.sources.sentences import sentences
from gru_training.sentiment.sources.unlabelled import read_unlabelled
from gru_training.sentiment.targets.distilled import DistilledTarget, Lesson
from gru_training.sentiment.targets.target import Target
from gru_training.sentiment.teaching.teacher import teacher_of
from gru_training.words.token_rows import TokenRows
from gru_training.words.vocabulary import TextPreprocessor, token_ids

TEXTS_PER_ROW = 2
"""Texts without labels that an epoch reads for each labelled row."""
_ASKED = 4
"""Texts that are answered for each one that is read, where only sure answers are learned."""


class Taught(NamedTuple):
    """What a network learned beside its labels."""

    target: DistilledTarget
    figures: dict[str, Any]
    """For `metrics.json`: `run`, the teacher's name; `texts`, how many are learned; `read`, how
    many of them an epoch reads; `asked`, how many it answered, where only sure answers are learned;
    `teacher`, its measures, where they are of the same rows."""


def taught(
    config: SentimentConfig, data: SentimentData, preprocessor: TextPreprocessor, target: Target
) -> Taught:
    """Have the run of `--teach` answer the texts of `--unlabelled`.

    Args:
        config: With both.
        data: What the student learns besides, and is measured on.
        preprocessor: From texts to the student's word ids.
        target: Of the data.

    Raises:
        TrainingError: The run cannot teach this, or the texts cannot be read.
    """
    assert config.teaching.teach is not None
    assert config.pretraining.unlabelled is not None
    run, same = teacher_of(config.teaching, data)
    teacher = _Teacher(run)
    read = config.teaching.teach_texts or TEXTS_PER_ROW * len(data.train)
    texts, answers, figures = _answered(config, data, teacher, config.training.epochs * read)
    further = token_ids(preprocessor, texts)

    def lesson(part: str, rows: TokenRows) -> Lesson:
        if part == "train":
            # Of labelled rows nothing is learned but the labels.
            unasked = np.zeros((len(rows.ids), target.outputs), np.float32)
            return Lesson(further, np.concatenate([unasked, answers]))
        return Lesson((), teacher(data.parts()[part].texts))

    figures |= {"run": run.path.name, "texts": len(texts), "read": min(read, len(texts))}
    if same:
        figures["teacher"] = measured(run.metrics)
    return Taught(DistilledTarget(target, lesson, read), figures)


class _Teacher:
    """Answers of a run to texts, as sure as the run is right."""

    def __init__(self, run: SentimentRun):
        self._model, self._preprocessor = run.load_model(), run.preprocessor()
        self._temperature = 1.0 if run.kind == "number" else run.temperature.value

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Logits (N, C) of N texts."""
        rows = token_ids(self._preprocessor, texts)
        return predict_logits(self._model, rows) / np.float32(self._temperature)


def sure_of_each(
    answers: np.ndarray, least: float, shares: np.ndarray, most: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw rows of which a teacher is sure, and of no class more than its share.

    Without the shares a teacher that calls most texts by one class would draw its student there:
    Zou et al. (2018), "Unsupervised Domain Adaptation for Semantic Segmentation via Class-Balanced
    Self-Training" (arXiv:1810.07911).

    Args:
        answers: (N, C) logits.
        least: Probability of the likeliest class, from which on a teacher is sure.
        shares: (C,) of the classes, summing to 1.
        most: Rows in all, but at least one of each class.
        rng: Draws among the rows of a class.

    Returns:
        Their numbers, ascending.
    """
    probabilities = softmax(answers, axis=1)
    sure = probabilities.max(axis=1) >= least
    classes = probabilities.argmax(axis=1)
    chosen = [
        rng.permutation(np.flatnonzero(sure & (classes == number)))[: max(1, round(most * share))]
        for number, share in enumerate(shares)
    ]
    return np.sort(np.concatenate(chosen))


def _answered(
    config: SentimentConfig, data: SentimentData, teacher: _Teacher, most: int
) -> tuple[list[str], np.ndarray, dict[str, Any]]:
    """Texts, the teacher's answers (N, C), and figures of how they were chosen."""
    least = config.teaching.teach_sure
    if least is None:
        texts = _further_texts(config, data, most)
        return texts, teacher(texts), {}
    texts = _further_texts(config, data, _ASKED * most)
    answers = teacher(texts)
    shares = np.bincount(data.train.labels, minlength=answers.shape[1]) / len(data.train)
    rng = np.random.default_rng(config.training.seed)
    sure = sure_of_each(answers, least, shares, most, rng)
    if not sure.size:
        highest = softmax(answers, axis=1).max()
        raise DataError(
            f"--teach-sure: expected texts of which the run is sure by {least}, got "
            f"{len(texts):,} of which it is sure by {highest:.3f} at most"
        )
    return [texts[k] for k in sure], answers[sure], {"asked": len(texts)}


def _further_texts(config: SentimentConfig, data: SentimentData, most: int) -> list[str]:
    """Texts of `--unlabelled` that are in no part of the data, each once, or `most` of them."""
    assert config.pretraining.unlabelled is not None
    seen = {text_key(text) for part in data.parts().values() for text in part.texts}
    texts = []
    found = read_unlabelled(config.pretraining.unlabelled)
    if config.teaching.teach_sentences:
        found = [sentence for text in found for sentence in sentences(text)]
    for text in found:
        key = text_key(text)
        if key not in seen:
            seen.add(key)
            texts.append(text)
    if not texts:
        raise DataError(
            f"--teach: expected texts without labels in --unlabelled "
            f"{config.pretraining.unlabelled}, got only those of the data"
        )
    if len(texts) <= most:
        return texts
    chosen = np.random.default_rng(config.training.seed).choice(len(texts), most, replace=False)
    return [texts[k] for k in sorted(chosen)]
