"""The reasons for a classifier's answers: the deciding words, and texts with marked words."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from gru_training.runs.directory import RunWriter
from gru_training.sentiment.evaluation.classifier import TrainedClassifier
from gru_training.sentiment.network.steps import Attribution
from keras_gru import portable

_MOST_TEXTS, _MOST_TOKENS = 300, 20_000
_BATCH = 32
_POINTS = 8
"""Number of points on the line: for a dozen words, scores up to 3.6 are within .006 of those with
32.
"""
_WORDS = 8
_MIN_ROWS = 2
"""Fewest rows in which a word must occur to count for a class."""


class Question(NamedTuple):
    """A test row, and the number of the class or label that its words are explained for."""

    row: int
    number: int


class Explained(NamedTuple):
    """The contribution of each word of a test row to a class, a label or the number."""

    row: int
    number: int
    tokens: list[str]
    scores: np.ndarray
    """(T,), above 0 for words that speak for it; units of `Head.contrast`."""


def explain_rows(trained: TrainedClassifier, questions: Sequence[Question]) -> list[Explained]:
    """Explain as many test rows as take little time.

    Args:
        trained: The model and its data.
        questions: Questions on rows, the more important ones first; each is answered once.

    Returns:
        Explanations in the order of the questions.
    """
    ids, head = trained.texts.rows["test"].ids, trained.calibrated.head
    chosen, tokens = list[Question](), 0
    for question in dict.fromkeys(questions):
        tokens += len(ids[question.row])
        if len(chosen) == _MOST_TEXTS or (tokens > _MOST_TOKENS and chosen):
            break
        chosen.append(question)
    attribution = Attribution(trained.model, _POINTS)

    @tf.function(
        input_signature=[tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32)],
        autograph=False,
    )
    def scores_of(token_ids: Any, numbers: Any) -> Any:
        return attribution(token_ids, head.contrast(numbers))

    with portable():  # texts are few and of many lengths
        scores_of.get_concrete_function()
    texts = tf.constant([trained.data.test.texts[each.row] for each in chosen])
    words = dict(zip(chosen, trained.texts.preprocessor.tokens(texts).to_list(), strict=True))
    found: dict[Question, Explained] = {}
    by_length = sorted(chosen, key=lambda question: len(ids[question.row]))
    for start in range(0, len(by_length), _BATCH):
        batch = by_length[start : start + _BATCH]
        padded = np.zeros((len(batch), max(len(ids[each.row]) for each in batch)), np.int32)
        for place, each in enumerate(batch):
            padded[place, : len(ids[each.row])] = ids[each.row]
        numbers = np.array([each.number for each in batch], np.int32)
        scores = scores_of(padded, numbers).numpy()
        for each, values in zip(batch, scores, strict=True):
            read = [word.decode("utf-8", "replace") for word in words[each]]
            found[each] = Explained(*each, read, values[: len(read)])
    return [found[question] for question in chosen]


def deciding_words(explained: Sequence[Explained], names: Sequence[str]) -> dict[str, list[str]]:
    """Find for each class or label the words that contributed most to it.

    Args:
        explained: Test rows with what was answered to them.
        names: Names of all classes or labels.
    """
    sums: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    rows: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for one in explained:
        for token, score in zip(one.tokens, one.scores, strict=True):
            sums[one.number][token] += float(score)
            rows[one.number][token].add(one.row)
    found = {}
    for number, name in enumerate(names):
        of = sums[number]
        words = [
            word
            for word in sorted(of, key=lambda word: (-of[word], word))
            if of[word] > 0 and len(rows[number][word]) >= _MIN_ROWS and any(map(str.isalnum, word))
        ]
        found[name] = words[:_WORDS]
    return found


MARKED_TEXTS_FILE = "marked_texts.json"
MAX_TEXTS = 12


class Marked(NamedTuple):
    """A test row with its words marked, and a remark."""

    explained: Explained
    answer: str
    """Answer for which the words are marked, such as `billing 98.1 %`."""
    verdict: str
    """Remark on whether the answer is right, or the right one."""


def write_marked_texts(writer: RunWriter, shown: Sequence[Marked]) -> None:
    """Write the texts that the report's page shows with their words marked.

    Args:
        writer: Writer of the run.
        shown: Rows in the order of the page; the first twelve are shown.
    """
    writer.write_json(
        MARKED_TEXTS_FILE,
        [
            {
                "answer": each.answer,
                "verdict": each.verdict,
                "tokens": each.explained.tokens,
                "scores": [round(float(score), 4) for score in each.explained.scores],
            }
            for each in shown[:MAX_TEXTS]
        ],
    )
