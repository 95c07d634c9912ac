"""Whether a search ends with the best settings or with the defaults."""

from dataclasses import replace

import numpy as np
import pytest

from gru_training.criterion import Criterion, caution, judged
from gru_training.tune.report import summary, write_report
from gru_training.tune.study import choose, claim

from .studies import SPACE, opened, run_trial

LOSS = Criterion("log loss", False, ".4f", "log_loss")
ROWS = np.random.default_rng(0).gamma(2.0, 0.2, 400)


def searched(folder, criterion, *losses, parts=20):
    """A study with a trial for each (N,) losses, the first of which has the defaults."""
    study = opened(folder, criterion)
    claim(folder, study, {"task": "sentiment"}, SPACE.defaults())
    sign = 1 if criterion.higher_is_better else -1
    for each in losses:
        found = judged(lambda kept, each=each: -sign * float(each[kept].mean()), len(each), parts)
        run_trial(study, lambda _, value=found.value: value, found.left_out)
    return study


def noise(seed, size):
    return np.random.default_rng(seed).normal(0, size, len(ROWS))


@pytest.mark.parametrize("higher_is_better", [False, True])
def test_a_clear_gain_is_taken(tmp_path, higher_is_better):
    criterion = LOSS._replace(higher_is_better=higher_is_better)
    study = searched(tmp_path, criterion, ROWS, ROWS - 0.02 + noise(1, 0.1), ROWS + 1)
    found = choose(tmp_path, SPACE, study, criterion)
    assert (found.trial.number, found.keeps_defaults) == (1, False)
    assert found.gain == pytest.approx(0.02, abs=0.01)
    # The differences of rows have a deviation of 0.1.
    assert found.error == pytest.approx(0.1 / np.sqrt(len(ROWS)), rel=0.4)
    line = summary(found, ())[1]
    assert line.endswith(f"better by {found.gain:.4f}, standard error {found.error:.4f}.")


def test_a_gain_that_chance_explains_is_not_taken(tmp_path):
    lucky = ROWS + noise(1, 0.5)
    lucky -= lucky.mean() - ROWS.mean() + 0.002  # a tenth of a standard error
    study = searched(tmp_path, LOSS, ROWS, lucky)
    found = choose(tmp_path, SPACE, study, LOSS)
    assert (found.best.number, found.trial.number, found.keeps_defaults) == (1, 0, True)
    assert found.trial.params == SPACE.defaults()
    assert summary(found, ())[2].startswith("The defaults are kept: chance")
    write_report(found, (), "gru-train sentiment --units 96")
    told = (tmp_path / "report.md").read_text()
    assert "those of the best trial all the same:\n\n```\ngru-train sentiment --units 96" in told


def test_with_too_little_to_choose_by_the_defaults_are_kept(tmp_path):
    few = LOSS._replace(caution="only 3 forecasts")
    study = searched(tmp_path, few, ROWS, ROWS - 0.1, parts=3)
    found = choose(tmp_path, SPACE, study, few)
    assert (found.trial.number, found.error) == (0, None)
    assert summary(found, ())[2:] == [
        "Caution: only 3 forecasts.",
        "The defaults are kept: there is too little to choose by.",
    ]


@pytest.mark.parametrize(("errors", "kept"), [(1.4, True), (2.6, False)])
def test_with_few_rows_the_best_must_win_by_two_standard_errors(tmp_path, errors, kept):
    rows, spread = ROWS[:73], noise(1, 0.5)[:73]
    parts = np.array([part.mean() for part in np.array_split(spread, 20)])
    gain = errors * parts.std(ddof=1) / np.sqrt(20)
    few = LOSS._replace(caution=caution("only 73 validation rows"))
    study = searched(tmp_path, few, rows, rows + spread - spread.mean() - gain)
    found = choose(tmp_path, SPACE, study, few)
    assert found.gain / found.error == pytest.approx(errors, rel=0.1)
    assert found.keeps_defaults is kept
    said = "\n".join(summary(found, ()))
    assert "the defaults are kept unless it is better by 2 standard errors" in said
    assert ("a gain of less than 2 standard errors on so few rows" in said) is kept


def test_where_trials_have_no_parts_the_best_is_taken(tmp_path):
    """As those of a language model."""
    study = searched(tmp_path, LOSS, ROWS, ROWS - 0.001, parts=1)
    found = choose(tmp_path, SPACE, study, LOSS)
    assert (found.trial.number, found.error, found.keeps_defaults) == (1, None, False)


def test_the_defaults_may_be_the_best_or_not_among_the_trials(tmp_path):
    study = searched(tmp_path, LOSS, ROWS, ROWS + 0.1)
    found = choose(tmp_path, SPACE, study, LOSS)
    assert (found.trial.number, found.keeps_defaults) == (0, False)
    assert len(summary(found, ())) == 2
    model = replace(SPACE.config.model, units=48)
    other = replace(SPACE, config=replace(SPACE.config, model=model))
    found = choose(tmp_path, other, study, LOSS)
    assert (found.trial.number, found.defaults) == (0, None)


def test_no_complete_trial(tmp_path):
    assert choose(tmp_path, SPACE, opened(tmp_path), LOSS) is None
