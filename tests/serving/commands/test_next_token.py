"""Drawing the next token, beside the shares counted over many draws."""

from collections import Counter

import numpy as np
import pytest

from gru_serving.commands.complete import NextTokenSampler
from gru_serving.errors import InvalidArgument

TOKENS = ["the", "[UNK]", "film", "was", "odd"]
SHARES = np.array([0.4, 0.3, 0.15, 0.1, 0.05])


def counts(draws=4000, **settings):
    sampler = NextTokenSampler(**settings)
    found = Counter(TOKENS[sampler.choose(TOKENS, np.log(SHARES))] for _ in range(draws))
    return {token: count / draws for token, count in found.items()}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"the": 0.4, "film": 0.15, "was": 0.1, "odd": 0.05}),
        ({"temperature": 0}, {"the": 1}),
        ({"top_k": 2}, {"the": 0.4, "film": 0.15}),
        ({"top_p": 0.6}, {"the": 0.4, "film": 0.15}),  # of the known: 0.571, then 0.786
        ({"top_p": 0.5}, {"the": 1}),
        ({"temperature": 0.5}, {"the": 0.16, "film": 0.0225, "was": 0.01, "odd": 0.0025}),
    ],
)
def test_shares_of_draws_are_those_of_the_settings(settings, expected):
    whole = sum(expected.values())
    found = counts(**settings)
    assert found.keys() <= expected.keys()
    for token, share in expected.items():
        assert found.get(token, 0) == pytest.approx(share / whole, abs=0.03)


def test_draws_are_those_of_the_seed_whatever_the_order_of_the_tokens():
    drawn = {seed: counts(20, seed=seed) for seed in range(3)}
    assert drawn == {seed: counts(20, seed=seed) for seed in range(3)}
    assert len({str(each) for each in drawn.values()}) > 1
    order = [4, 2, 0, 3, 1]
    first, second = NextTokenSampler(seed=1), NextTokenSampler(seed=1)
    for _ in range(50):
        chosen = second.choose([TOKENS[n] for n in order], np.log(SHARES[order]))
        assert first.choose(TOKENS, np.log(SHARES)) == order[chosen]


def test_nothing_but_unknown_words_is_an_error():
    with pytest.raises(InvalidArgument, match="expected a token to go on with"):
        NextTokenSampler().choose(["[UNK]"], np.array([0.0]))
