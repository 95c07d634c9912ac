import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, log_loss

from gru_training.compare.diebold_mariano import diebold_mariano
from gru_training.compare.estimates import of_independent_rows, of_rows_in_time, pseudo_values
from gru_training.outcomes import Answers, Outcomes, mean_measure, ratio_measure
from gru_training.sentiment.outcomes import label_answers
from tests.training.compare.answers import classifier, text_outcomes, window_outcomes


@pytest.mark.parametrize("classes", [2, 3, 12])
def test_measures_are_those_of_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, classes, 90)
    labels[labels == 1] = 0  # a class that is predicted but never right
    predicted, scores = classifier(rng, labels, 1.0, classes)
    expected = {
        "accuracy": accuracy_score(labels, predicted),
        "macro F1": f1_score(labels, predicted, average="macro"),
        "log loss": log_loss(labels, scores, labels=range(classes)),
    }
    answers = label_answers(labels, predicted, scores, classes)
    assert {each.name: each.value for each in answers.measures} == pytest.approx(expected)
    np.testing.assert_array_equal(answers.right, labels == predicted)
    without = label_answers(labels, predicted, None, classes)
    assert [each.name for each in without.measures] == ["accuracy", "macro F1"]


def test_a_class_that_is_nowhere_does_not_count():
    labels = predicted = np.array([0, 0, 2])
    assert label_answers(labels, predicted, None, 4).measures[1].value == 1.0


def test_a_probability_of_zero_is_not_endless():
    answers = label_answers(np.array([0, 1]), np.array([0, 0]), np.eye(2)[[0, 0]], 2)
    assert answers.measures[2].value == pytest.approx(-np.log(np.finfo(np.float32).eps) / 2)


@pytest.mark.slow
def test_the_bootstrap_is_scipys_of_paired_rows():
    """The same draws; each measure by scikit-learn on the rows drawn."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 80)
    (first, _), (second, _) = (classifier(rng, labels, skill, 3) for skill in (1.0, 2.0))
    answers = [label_answers(labels, predicted, None, 3) for predicted in (first, second)]
    found = of_independent_rows(answers, 999, seed=7)

    def difference(labels, first, second):
        return f1_score(labels, second, average="macro") - f1_score(labels, first, average="macro")

    expected = stats.bootstrap(
        (labels, first, second), difference, paired=True, vectorized=False, n_resamples=999,
        method="percentile", random_state=np.random.default_rng(7),
    ).confidence_interval  # fmt: skip
    macro = found[1]["macro F1"].difference
    assert (macro.low, macro.high) == pytest.approx((expected.low, expected.high))
    assert macro.value == pytest.approx(difference(labels, first, second))
    assert found[0]["macro F1"].difference is None
    assert found == of_independent_rows(answers, 999, seed=7)
    assert found != of_independent_rows(answers, 999, seed=8)


def test_pairing_makes_intervals_narrow():
    """Two models that are right on nearly the same rows; unpaired, the interval would be wider."""
    rng = np.random.default_rng(2)
    right = rng.random(400) < 0.7
    other = right ^ (np.arange(400) % 40 == 0)
    pair = [Answers((mean_measure("a", each, True),), each) for each in (right, other)]
    found = of_independent_rows(pair, 1999, 0)[1]["a"]
    width, alone = (each.high - each.low for each in (found.difference, found.value))
    assert width < alone / 2


def test_bootstrap_intervals_cover():
    rng = np.random.default_rng(3)
    tries, inside = 300, 0
    for _ in range(tries):
        one, other = rng.normal(size=(2, 120)) ** 2 * [[1.0], [1.5]]
        pair = [Answers((mean_measure("loss", each, False),)) for each in (one, other)]
        found = of_independent_rows(pair, 999, 0)[1]["loss"].difference
        inside += found.low <= 0.5 <= found.high
    assert 0.9 < inside / tries < 0.98


def test_windows_are_tested_by_the_differences_of_their_losses():
    rng = np.random.default_rng(4)
    first, second = (window_outcomes(rng.normal(size=250) * scale, 4) for scale in (1, 1.2))
    found = of_rows_in_time([first.model, second.model], 4)
    for name, measure, reference in zip(
        ("MSE", "MAE"), second.model.measures, first.model.measures, strict=True
    ):
        losses = (measure.columns[:, 0] - reference.columns[:, 0]) / 4
        test = diebold_mariano(losses, 4)
        assert found[1][name].p_value == pytest.approx(test.p_value)
        difference = found[1][name].difference
        assert (difference.value, difference.low, difference.high) == pytest.approx(
            (test.mean, *test.interval())
        )
    assert found[0]["MSE"].difference is found[0]["MSE"].p_value is None
    assert found[0]["MSE"].value.low < first.model.measures[0].value < found[0]["MSE"].value.high


def test_pseudo_values_of_a_mean_are_its_rows():
    values = np.random.default_rng(5).normal(size=30)
    np.testing.assert_allclose(pseudo_values(mean_measure("a", values, True)), values)


def test_pseudo_values_of_a_ratio_have_its_standard_error():
    """Windows with missing values weigh less: the delta method's error of a ratio of means."""
    rng = np.random.default_rng(6)
    counts = rng.integers(1, 9, 500)
    sums = counts * rng.gamma(2, size=500)
    rows = pseudo_values(ratio_measure("MSE", sums, counts))
    ratio = sums.sum() / counts.sum()
    linear = (sums - ratio * counts) / counts.mean()
    assert rows.mean() == pytest.approx(ratio, rel=1e-3)
    assert rows.std() == pytest.approx(linear.std(), rel=1e-2)


def test_too_few_windows_have_no_intervals():
    outcomes = window_outcomes(np.random.default_rng(7).normal(size=20), 8)
    found = of_rows_in_time([outcomes.model, outcomes.model], 8)[1]["MSE"]
    assert found.value.low is found.difference.low is found.p_value is None
    assert found.difference.value == 0


def test_outcomes_are_of_rows_in_time_or_right_or_wrong():
    answers = Answers((mean_measure("a", np.zeros(3), True),))
    with pytest.raises(ValueError, match="expected rows in time"):
        Outcomes("rows", np.array(["1", "2", "3"]), answers)


def test_rows_can_be_chosen():
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 3, 20)
    outcomes = text_outcomes(rng, labels, 1.0)
    few = outcomes.of_rows(np.array([4, 2]))
    assert few.keys.tolist() == ["text 4", "text 2"]
    np.testing.assert_array_equal(few.model.right, outcomes.model.right[[4, 2]])
    np.testing.assert_array_equal(
        few.model.measures[1].columns, outcomes.model.measures[1].columns[[4, 2]]
    )
