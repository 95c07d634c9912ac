"""Our loop and `fit` do the same work, and the figures printed are the figures timed."""

import json
import re

import numpy as np
import pytest

from benchmarks.sentiment import loop as sentiment_loop
from benchmarks.sentiment.loop import (
    FITS,
    LOOP,
    Result,
    contenders,
    main,
    markdown,
    prepare,
)
from gru_training.sentiment.config import (
    ClassifierConfig,
    SentimentDataConfig,
    SentimentTrainingConfig,
)


@pytest.mark.long
def test_all_contenders_end_with_the_same_weights(monkeypatch):
    built = []
    build = sentiment_loop.Contest.build
    monkeypatch.setattr(
        sentiment_loop.Contest, "build", lambda self: built.append(build(self)) or built[-1]
    )
    contest = prepare(
        SentimentDataConfig(reviews=200),
        ClassifierConfig(embedding_size=3, units=4),
        # Keras clips by another norm if a word occurs twice: our loop adds its gradients up first.
        SentimentTrainingConfig(batch_size=64, clip_norm=1e6),
    )
    losses = {name: epoch(0) for name, epoch in contenders(contest).items()}
    assert list(losses) == [LOOP, *FITS]
    assert max(losses.values()) - min(losses.values()) < 1e-5
    first = contest.build().get_weights()
    weights = [model.get_weights() for model in built[:3]]
    for start, one, *others in zip(first, *weights, strict=True):
        assert np.abs(one - start).max() > 1e-3  # the weights moved
        for other in others:
            np.testing.assert_allclose(other, one, atol=2e-5)


@pytest.mark.slow
def test_from_end_to_end(tmp_path, capsys):
    sizes = ["--reviews", "100", "--units", "2", "--embedding-size", "2", "--batch-size", "100"]
    path = tmp_path / "figures.json"
    assert main([*sizes, "--rounds", "2", "--json", str(path)]) == 0
    figures = json.loads(path.read_text())
    assert set(figures["contenders"]) == {LOOP, *FITS}
    assert all(len(one["seconds"]) == 2 for one in figures["contenders"].values())
    assert all(min(one["seconds"]) > 0 for one in figures["contenders"].values())
    printed = capsys.readouterr().out
    assert all(f"| {name} |" in printed for name in (LOOP, *FITS))


def test_the_loop_is_compared_with_the_faster_fit():
    slow, fast = FITS
    results = {
        LOOP: Result([3.0, 1.0, 8.0], [0.5] * 3),
        slow: Result([9.0, 9.0, 1.0], [0.5] * 3),
        fast: Result([2.0, 2.0, 2.5], [0.5] * 3),
    }
    text = markdown(results, 600)
    assert f"takes 1.50 times as long as {fast}" in text
    row = re.search(rf"\| {LOOP} \|(.*)", text).group(1)
    assert [cell.strip() for cell in row.split("|")][:3] == ["3.00 s", "1.00 to 8.00 s", "200"]
    assert "nan" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--rounds", "0"], "--rounds must be at least 1, got 0"), (["--data", "/no"], "/no")],
)
def test_what_cannot_be_run_is_said(arguments, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err
