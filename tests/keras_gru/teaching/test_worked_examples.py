"""The numbers of the texts compared with the trace, autodiff and central differences (float64)."""

from functools import cache

import numpy as np
import pytest

from keras_gru.teaching.trace import trace
from keras_gru.teaching.worked_example import AGREES, DIFFERS, evaluate
from tests.keras_gru.plain_network import by_autodiff, by_differences
from tests.keras_gru.teaching.worked_examples import EXAMPLES, WITH_NETWORK, names_at

VERDICTS = [(name, i) for name, example in EXAMPLES.items() for i in range(len(example.verdicts))]


def verdict_of(name, i):
    return EXAMPLES[name].verdicts[i]


def test_all_four_texts_are_covered():
    texts = {example.content["text"] for example in EXAMPLES.values()}
    assert texts == {
        "gru_explained",
        "gru_numerical_notes",
        "gru_architecture",
        "rnn_lstm_gru_notes",
    }
    assert len(EXAMPLES) == 12
    assert len(VERDICTS) > 450


@pytest.mark.parametrize(("name", "i"), VERDICTS)
def test_printed_number_is_right_or_has_an_erratum(name, i):
    verdict = verdict_of(name, i)
    errata = {erratum["id"] for erratum in EXAMPLES[name].errata}
    erratum = verdict.claim.get("erratum")
    assert erratum is None or erratum in errata
    assert verdict.status != DIFFERS or erratum is not None, f"{verdict.claim['where']}: {verdict}"
    assert verdict.status != AGREES or erratum is None, f"{verdict.claim['where']}: falsely accused"


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_erratum_has_a_wrong_number_or_a_correction(name):
    example = EXAMPLES[name]
    for erratum in example.errata:
        accused = [v for v in example.verdicts if v.claim.get("erratum") == erratum["id"]]
        if accused:
            assert any(verdict.status == DIFFERS for verdict in accused), erratum["id"]
        else:
            assert erratum["says"], erratum["id"]
            assert erratum["correct"], erratum["id"]
        assert erratum["cause"], erratum["id"]
        assert erratum["equation"], erratum["id"]


@cache
def autodiff(name, variant):
    return by_autodiff(EXAMPLES[name].network(variant))


@cache
def differences(name, variant):
    return by_differences(EXAMPLES[name].network(variant))


# Parts of a quantity that is itself compared; the plain forward pass does not name them.
PARTS = ("xW_", "hU_", "rhU_", "hV", "slope_")
CONFIRMED = [
    (name, i)
    for name, i in VERDICTS
    if name in WITH_NETWORK
    and "quantity" in verdict_of(name, i).claim
    and not any(part in verdict_of(name, i).quantity for part in PARTS)
]


@pytest.mark.parametrize("confirmation", [autodiff, differences])
@pytest.mark.parametrize(("name", "i"), CONFIRMED)
def test_our_value_is_that_of_autodiff_and_of_differences(name, i, confirmation):
    verdict = verdict_of(name, i)
    found = names_at(confirmation(name, verdict.claim.get("variant")), verdict.claim)
    value = evaluate(verdict.quantity, found)
    np.testing.assert_allclose(value, verdict.computed, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("variant", [None, *EXAMPLES["de_to_p"].variants])
@pytest.mark.parametrize("confirmation", [autodiff, differences])
def test_every_cell_completes_the_word_as_autodiff_and_differences_do(variant, confirmation):
    network = EXAMPLES["de_to_p"].network(variant)
    found = trace(network)
    steps, totals = confirmation("de_to_p", variant)
    for ours, theirs in zip((*found.steps, found.totals), (*steps, totals), strict=True):
        shared = set(ours) & set(theirs)
        assert shared
        for quantity in shared:
            np.testing.assert_allclose(
                ours[quantity], theirs[quantity], atol=1e-10, err_msg=quantity
            )
