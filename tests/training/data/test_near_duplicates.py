"""Texts that are almost the same, against a comparison of all pairs."""

import numpy as np
import pytest

from gru_training.data import near_duplicates as near_duplicates_module
from gru_training.data.near_duplicates import near_duplicates


def brute_force(text, others):
    def pieces(text):
        return {text[k : k + 5] for k in range(len(text) - 4)} or {text}

    return [
        len(pieces(text) & pieces(other)) / len(pieces(text) | pieces(other)) for other in others
    ]


@pytest.mark.parametrize("least", [0.5, 0.8, 1.0])
def test_finds_what_a_comparison_of_all_pairs_finds(least):
    rng = np.random.default_rng(0)
    words = ["invoice", "the", "card", "was", "charged", "app", "twice", "über", "不能用", "a"]
    others = [" ".join(rng.choice(words, rng.integers(1, 14))) for _ in range(150)]
    texts = [" ".join(rng.choice(words, rng.integers(1, 14))) for _ in range(60)]
    for other in others[:60]:  # one word replaced or left out
        changed = other.split()
        changed[rng.integers(len(changed))] = rng.choice(["", "crash"])
        texts.append(" ".join(changed))
    found = {each.place: each for each in near_duplicates(texts, others, least)}
    assert len(found) > 2
    for place, text in enumerate(texts):
        similar = brute_force(text, others)
        if max(similar) >= least:
            assert found[place].similarity == pytest.approx(max(similar))
            assert found[place].other == int(np.argmax(similar))
        else:
            assert place not in found


def test_nothing_to_compare():
    assert near_duplicates([], ["a"], 0.8) == []
    assert near_duplicates(["a"], [], 0.8) == []
    assert near_duplicates(["", "ab"], ["", "ab"], 0.8) == [(0, 0, 1.0), (1, 1, 1.0)]


def test_texts_of_one_template_are_not_all_compared(monkeypatch):
    """Every pair of them could be similar: their number bounds the time, not its square."""
    compared = []

    def counting(one, other):
        compared.append(None)
        return jaccard(one, other)

    jaccard = near_duplicates_module._jaccard
    monkeypatch.setattr(near_duplicates_module, "_jaccard", counting)
    monkeypatch.setattr(near_duplicates_module, "_MAX_PAIRS", 1000)
    form = "Dear support team, my order number {} has not arrived yet. Please tell me why."
    texts = [form.format(number) for number in range(300)]
    others = [form.format(number) for number in range(300, 600)]
    found = near_duplicates(texts, others, 0.8)
    assert [each.place for each in found] == list(range(300))
    assert min(each.similarity for each in found) >= 0.8
    assert len(compared) <= 1000 + 300 * near_duplicates_module._MIN_CANDIDATES
