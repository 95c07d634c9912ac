import numpy as np
import pytest

from gru_serving.preprocessing.texts import RESERVED
from gru_training.sentiment.evaluation.baselines import (
    bag_of_words,
    majority_class,
    naive_bayes,
    ngram_regression,
)
from gru_training.sentiment.measures import chosen_metric
from gru_training.sentiment.targets import ClassTarget
from gru_training.words.ngrams import fit_ngrams
from gru_training.words.vocabulary import TokenRows

TOKENS = (*RESERVED, *(f"w{number}" for number in range(2, 50)))


def rows(count, seed, order_decides, classes=2):
    """Word 10 + c marks class c, or the order of words 10 and 11 does; the rest is noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    ids = []
    for label in labels:
        noise = rng.integers(20, 40, 4)
        told = ([10, 11] if label else [11, 10]) if order_decides else [10 + label]
        ids.append(np.array([*noise[:2], *told, *noise[2:], 0], np.int32))
    return TokenRows(ids, labels)


def three_parts(**options):
    return rows(400, 0, **options), rows(100, 1, **options), rows(100, 2, **options)


def class_target(classes=2):
    names = [f"class {number}" for number in range(classes)]
    return ClassTarget(names, chosen_metric(None, "class", names), np.ones(classes))


def ngrams(train, validation, test, classes):
    fitted = fit_ngrams(train, validation, classes, TOKENS)
    return ngram_regression(class_target(classes), fitted, validation, test)


def accuracies(result):
    return result.validation["accuracy"], result.test["accuracy"]


def test_majority_answers_the_most_frequent_training_class():
    part = TokenRows([np.array([2])] * 4, np.array([1, 1, 0, 1]))
    other = TokenRows([np.array([2])] * 4, np.array([0, 0, 0, 1]))
    result = majority_class(class_target(), part, other, part)
    assert accuracies(result) == (0.25, 0.75)
    assert result.test_predictions.tolist() == [1] * 4


@pytest.mark.parametrize("classes", [2, 4])
def test_all_learn_from_words(classes):
    parts = three_parts(order_decides=False, classes=classes)
    target = class_target(classes)
    bayes = naive_bayes(target, fit_ngrams(*parts[:2], classes, TOKENS).trained, *parts)
    for result in (bag_of_words(target, *parts), ngrams(*parts, classes), bayes):
        assert accuracies(result) == (1.0, 1.0)
        np.testing.assert_array_equal(result.test_predictions, parts[2].labels)


def test_only_bigrams_see_order():
    parts = three_parts(order_decides=True)
    assert accuracies(bag_of_words(class_target(), *parts))[1] < 0.65
    assert accuracies(ngrams(*parts, 2))[1] > 0.95


def test_naive_bayes_by_hand():
    """Texts: 2 3 (class 0), 3 2 (1) and 3 2 2 (1); n-grams 2, 3, 2-3, 3-2 and 2-2, each once."""
    train = TokenRows([np.array(row) for row in ([2, 3], [3, 2], [3, 2, 2])], np.array([0, 1, 1]))
    held_out = TokenRows([np.array(row) for row in ([2, 3], [2, 9], [2, 2])], np.array([0, 1, 0]))
    fitted = fit_ngrams(train, train, 2, TOKENS).trained
    result = naive_bayes(class_target(), fitted, train, held_out, held_out)
    # With counts from 1: class 0 has 2/8, 2/8, 2/8, 1/8, 1/8; class 1 has 3/12, 3/12, 1/12, 3/12,
    # 2/12; priors 1/3 and 2/3. "2 3" is 1/3 · 1/64 against 2/3 · 1/192, "2 9" 1/3 · 1/4 against
    # 2/3 · 1/4, "2 2" 1/3 · 1/32 against 2/3 · 1/24.
    assert result.test_predictions.tolist() == [0, 1, 1]
    assert accuracies(result) == (2 / 3, 2 / 3)
