"""Why a classifier answers as it does: words that matter most, and texts with words marked."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from gru_training.sentiment.evaluation.trained import TrainedClassifier
from gru_training.sentiment.network.attribution import Attribution
from keras_gru import portable

_MOST_TEXTS, _MOST_TOKENS = 300, 20_000
_BATCH = 32
_POINTS = 8
"""Of the line: of texts of a dozen words, scores up to 3.6 are within .006 of those with 32."""
_WORDS = 8
_FEWEST_ROWS = 2
"""In which a word must occur to count for a class."""


class Question(NamedTuple):
    """A test row, and the class or label that its words are asked about, by number."""

    row: int
    number: int


class Explained(NamedTuple):
    """What each word of a test row has to do with a class, a label or the number."""

    row: int
    number: int
    tokens: list[str]
    scores: np.ndarray
    """(T,), above 0 for words that speak for it; units as of `Head.contrast`."""


def explain_rows(trained: TrainedClassifier, questions: Sequence[Question]) -> list[Explained]:
    """Explain test rows, as many as take little time.

    Args:
        trained: The model and its data.
        questions: The more important ones first; each is answered once.

    Returns:
        In the order of the questions.
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
    """Of each class or label the words that spoke for it most.

    Args:
        explained: Test rows with what was answered to them.
        names: Of all classes or labels.
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
            if of[word] > 0
            and len(rows[number][word]) >= _FEWEST_ROWS
            and any(map(str.isalnum, word))
        ]
        found[name] = words[:_WORDS]
    return found
