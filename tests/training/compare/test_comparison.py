import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from gru_training.compare.comparison import (
    compare_outcomes,
    differing,
    mcnemar_test,
    on_the_same_rows,
)
from gru_training.errors import RunDirectoryError
from tests.training.compare.answers import text_outcomes, window_outcomes


@pytest.fixture
def texts():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    skills = {"first": 1.0, "better": 4.0, "alike": 1.1, "worse": 0.0}
    outcomes = {name: text_outcomes(rng, labels, skill) for name, skill in skills.items()}
    outcomes["first"] = text_outcomes(
        rng, labels, 1.0, baselines={"bag of words": text_outcomes(rng, labels, 0.5).model}
    )
    return outcomes


def compared(outcomes):
    return compare_outcomes(outcomes, {name: {} for name in outcomes}, "rows.csv", 999, 0)


@pytest.mark.slow
def test_verdicts_of_texts(texts):
    comparison = compared(texts)
    found = {each.name: each for each in comparison.contenders}
    assert list(found) == ["first", "better", "alike", "worse", "bag of words"]
    verdicts = {name: each.verdict for name, each in found.items()}
    assert verdicts == {
        "first": "", "better": "better", "alike": "no difference shown", "worse": "worse",
        "bag of words": "",
    }  # fmt: skip
    tested = [
        mcnemar_test(each.model.right, texts["first"].model.right)
        for each in list(texts.values())[1:]
    ]
    assert [found[name].mcnemar for name in ("better", "alike", "worse")] == tested
    expected = multipletests([each.p_value for each in tested], method="holm")[1]
    adjusted = [found[name].adjusted for name in ("better", "alike", "worse")]
    assert adjusted == pytest.approx(expected)
    assert not found["bag of words"].is_run
    assert found["bag of words"].measures["accuracy"].difference is not None
    assert found["bag of words"].p_value is None
    assert comparison.reference.name == "first"
    assert (comparison.count, comparison.deciding) == (300, "accuracy")


@pytest.mark.slow
def test_verdicts_of_windows():
    rng = np.random.default_rng(1)
    errors = rng.normal(size=400)
    outcomes = {
        "first": window_outcomes(errors, 5),
        "noisier": window_outcomes(errors + rng.normal(size=400), 5),
        "nearer": window_outcomes(errors * 0.7, 5),
    }
    found = compared(outcomes)
    assert [each.verdict for each in found.contenders] == ["", "worse", "better"]
    assert found.overlap == 5
    assert found.contenders[1].mcnemar is None
    assert found.contenders[1].p_value == found.contenders[1].measures["MSE"].p_value
    assert all(each.adjusted >= each.p_value for each in found.contenders[1:])


@pytest.mark.slow
def test_a_run_and_its_copy_are_alike(texts):
    found = compared({"a": texts["better"], "b": texts["better"]})
    difference = found.contenders[1].measures["accuracy"].difference
    assert (difference.low, difference.value, difference.high) == (0, 0, 0)
    assert found.contenders[1].adjusted == 1
    assert found.contenders[1].verdict == "no difference shown"


def test_too_few_windows_are_not_judged():
    rng = np.random.default_rng(2)
    outcomes = {name: window_outcomes(rng.normal(size=40), 20) for name in "ab"}
    contender = compared(outcomes).contenders[1]
    assert (contender.p_value, contender.adjusted, contender.verdict) == (None, None, "")


@pytest.mark.slow
def test_rows_are_brought_into_one_order(texts):
    order = np.random.default_rng(3).permutation(300)
    shuffled = {**texts, "better": texts["better"].of_rows(order)}
    aligned = on_the_same_rows(shuffled, held_out=True)
    assert compared(aligned) == compared(texts)


def test_other_held_out_rows_are_refused(texts):
    fewer = {"first": texts["first"], "alike": texts["alike"].of_rows(np.arange(3, 203))}
    with pytest.raises(RunDirectoryError) as error:
        on_the_same_rows(fewer, held_out=True)
    message = str(error.value)
    assert message.startswith("alike: expected the 300 texts of first, got 200, of which 200 are")
    assert message.endswith("--data FILE")
    more = {"alike": fewer["alike"], "first": fewer["first"]}
    with pytest.raises(RunDirectoryError, match="expected the 200 texts of alike, got 300, of"):
        on_the_same_rows(more, held_out=True)


def test_of_a_file_the_rows_that_all_can_answer_count():
    rng = np.random.default_rng(4)
    outcomes = {name: window_outcomes(rng.normal(size=60), 5) for name in "ab"}
    outcomes["b"] = outcomes["b"].of_rows(np.arange(20, 50))
    found = on_the_same_rows(outcomes, held_out=False)
    assert [each.keys.tolist() for each in found.values()] == [
        [f"time {number}" for number in range(20, 50)]
    ] * 2
    outcomes["a"] = outcomes["a"].of_rows(np.arange(10))
    with pytest.raises(RunDirectoryError, match="got none that a shares with b"):
        on_the_same_rows(outcomes, held_out=False)


def test_settings_that_differ():
    settings = {"a": {"--units": "8", "--epochs": "3"}, "b": {"--units": "9", "--epochs": "3"}}
    assert differing(settings) == {"--units": {"a": "8", "b": "9"}}
    assert differing({"a": {}, "b": {"--new": "1"}}) == {"--new": {"a": "", "b": "1"}}
