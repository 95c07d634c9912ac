"""Modified Kneser-Ney n-grams beside counts made with dictionaries."""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from gru_training.language.kneser_ney import KneserNey
from gru_training.language.reading import Spelling

RNG = np.random.default_rng(4)
SIZE = 7
"""Tokens 1 to 6; 2 ends documents."""


def documents(count, seed):
    rng = np.random.default_rng(seed)
    shares = np.array([0.5, 0.25, 0.15, 0.1])
    return [
        np.array([*rng.choice([1, 3, 4, 5], rng.integers(1, 9), p=shares), 2]) for _ in range(count)
    ]


class Dictionaries:
    """As Chen and Goodman (1998) write it, n-gram by n-gram."""

    def __init__(self, rows, size, order):
        self.size, self.order = size, order
        self.counts = [defaultdict(int) for _ in range(order + 1)]
        occurrences = [Counter() for _ in range(order + 1)]
        left = [defaultdict(set) for _ in range(order + 1)]
        for row in rows:
            padded = [0] * order + list(map(int, row))
            for place in range(order, len(padded)):
                for n in range(1, order + 1):
                    gram = tuple(padded[place - n + 1 : place + 1])
                    occurrences[n][gram] += 1
                    left[n][gram].add(padded[place - n])
        for n in range(1, order + 1):
            for gram, count in occurrences[n].items():
                highest = n == order or gram[0] == 0
                self.counts[n][gram] = count if highest else len(left[n][gram])
        self.discounts = [None, *(self.discount(n) for n in range(1, order + 1))]

    def discount(self, n):
        of = Counter(min(count, 5) for count in self.counts[n].values())
        if not all(of[k] for k in (1, 2, 3, 4)):
            return (0, 0.5, 1, 1.5)
        y = of[1] / (of[1] + 2 * of[2])
        found = [k - (k + 1) * y * of[k + 1] / of[k] for k in (1, 2, 3)]
        return (0, *found) if all(0 < d <= k for k, d in enumerate(found, 1)) else (0, 0.5, 1, 1.5)

    def probability(self, context, token):
        if not len(context) and not self.counts[1]:
            return 1 / (self.size - 1)
        n = len(context) + 1
        shorter = self.probability(context[1:], token) if n > 1 else 1 / (self.size - 1)
        behind = {g: c for g, c in self.counts[n].items() if g[:-1] == tuple(context)}
        total = sum(behind.values())
        if not total:
            return shorter
        taken = [self.discounts[n][min(c, 3)] for c in behind.values()]
        count = behind.get((*context, token), 0)
        own = max(count - self.discounts[n][min(count, 3)], 0) / total
        return own + sum(taken) / total * shorter


@pytest.mark.parametrize(("order", "count"), [(1, 5), (2, 3), (3, 40), (4, 200)])
def test_probabilities_are_those_of_the_definition(order, count):
    rows = documents(count, seed=order)
    model = KneserNey(rows, SIZE, order)
    plain = Dictionaries(rows, SIZE, order)
    held_out = documents(15, seed=99)
    expected = []
    for row in held_out:
        padded = [0] * order + list(map(int, row))
        for place in range(order, len(padded)):
            context = tuple(padded[place - order + 1 : place])
            expected.append(plain.probability(context, padded[place]))
    np.testing.assert_allclose(model.probabilities(held_out), expected, rtol=1e-12)


def test_probabilities_of_all_tokens_add_up_to_one_also_behind_what_was_never_seen():
    model = KneserNey(documents(60, seed=0), SIZE, 3)
    for context in itertools.product((1, 3, 6), repeat=2):
        rows = [np.array([*context, token]) for token in range(1, SIZE)]
        last = model.probabilities(rows)[2::3]
        assert last.sum() == pytest.approx(1, abs=1e-12)
        assert last.min() > 0


def test_an_example_by_hand():
    """Bigrams of the documents "a b", "a b", "a c" with a = 3, b = 4, c = 5, end = 2.

    They are too few for the formula of the discounts, which are 1/2, 1 and 3/2.
    """
    model = KneserNey([np.array(row) for row in ([3, 4, 2], [3, 4, 2], [3, 5, 2])], 6, 2)
    # Unigrams by what stands before them: a 1, b 1, c 1, end 2, of 5 in all; each of 5 tokens 1/5.
    left_over = (0.5 + 0.5 + 0.5 + 1) / 5
    b = (1 - 0.5) / 5 + left_over / 5
    # Behind a: b twice and c once; discounts 1 and 1/2.
    expected = (2 - 1) / 3 + (1 + 0.5) / 3 * b
    assert model.probabilities([np.array([3, 4])])[1] == pytest.approx(expected, abs=1e-12)


def test_letters_of_unknown_words_are_paid_for():
    spelling = Spelling.of({"ab": 2, "b": 1})
    # a 2, b 3, ends 3: 8 counts, and one that all other letters share.
    assert spelling.bits("ab") == pytest.approx(-math.log2(2 / 9 * 3 / 9 * 3 / 9))
    assert spelling.bits("z") == pytest.approx(-math.log2(1 / 9 / 0x110000) - math.log2(3 / 9))
    assert spelling.bits_of({"ab": 3, "b": 1}) == pytest.approx(
        3 * spelling.bits("ab") + spelling.bits("b")
    )
