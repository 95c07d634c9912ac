"""docs/fitting.md: both ways of training learn, and what is exported answers as the model does."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

PAGE = (Path(__file__).parents[2] / "docs" / "fitting.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The names that the page leaves behind, and what it printed."""
    names = {"__name__": "__main__"}
    with (
        contextlib.chdir(tmp_path_factory.mktemp("fitting")),
        contextlib.redirect_stdout(io.StringIO()) as out,
    ):
        for block in BLOCKS:
            exec(compile(block, "fitting.md", "exec"), names)
        names["exported"] = tf.saved_model.load("models/adding/1")
    return names, out.getvalue()


def test_both_ways_learn_the_task(ran):
    names, said = ran
    always_one = float(np.mean((names["test_y"] - 1) ** 2))
    assert always_one == pytest.approx(1 / 6, abs=0.03)
    for way in ("fit", "tape"):
        assert float(re.search(rf"{way}: ([\d.e-]+)", said)[1]) < 0.1 * always_one


def test_both_ways_end_at_a_learning_rate_of_zero(ran):
    names, _ = ran
    for optimizer in (names["model"].optimizer, names["optimizer"]):
        assert float(optimizer.learning_rate) == pytest.approx(0.0, abs=3e-3)


def test_what_is_saved_and_exported_answers_alike(ran):
    names, said = ran
    assert float(said.splitlines()[1]) == 0.0
    expected = names["model"].predict(names["test_x"], verbose=0)
    served = names["exported"].signatures["serving_default"]
    (answer,) = served(tf.constant(names["test_x"])).values()
    np.testing.assert_allclose(answer, expected, atol=1e-5)
