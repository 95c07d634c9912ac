import json

import pytest

from gru_training.sentiment.evaluation.markdown import (
    beside_simple_models,
    what_the_network_adds,
    write_markdown,
)


def test_summary_shows_the_baseline_beside_and_escapes_text(tiny_run):
    mistake = {"text": "a | b <br> c", "label": "x", "predicted": "y", "probability": 0.9}
    summary = write_markdown(tiny_run.metrics, tiny_run.classes, [mistake])
    lines = summary.split("\n")
    baseline = tiny_run.metrics["baselines"]["bag of words, logistic regression"]
    row = next(line for line in lines if line.startswith("| bag of words"))
    assert f"{baseline['test_accuracy']:.2%}" in row
    assert r"a \| b &lt;br> c" in summary
    assert "nan" not in summary.lower()


def test_summary_tells_what_the_temperature_changed(tiny_run):
    metrics = tiny_run.metrics
    calibration = metrics["calibration"]
    summary = write_markdown(metrics, tiny_run.classes, [])
    assert f"temperature {calibration['temperature']:.3f}" in summary
    for when, name in (("before", "as trained"), ("after", "after division")):
        values = calibration["test"][when]
        row = (
            f"| {name} | {values['negative_log_likelihood']:.4f} | "
            f"{values['expected_calibration_error']:.2%} |"
        )
        assert row in summary
    remarked = {**metrics, "calibration": {**calibration, "remark": "none is best"}}
    text = write_markdown(remarked, tiny_run.classes, [])
    assert f"temperature {calibration['temperature']:.3f}: none is best." in text


def test_no_likelihood_is_called_worse_that_is_shown_as_the_same(tiny_run):
    calibration = json.loads(json.dumps(tiny_run.metrics["calibration"]))
    test = calibration["test"]
    metrics = {**tiny_run.metrics, "calibration": calibration}
    for after, worse in ((0.64231, False), (0.6425, True), (0.5, False)):
        test["before"]["negative_log_likelihood"] = 0.64230
        test["after"]["negative_log_likelihood"] = after
        text = write_markdown(metrics, tiny_run.classes, [])
        assert ("made the likelihood worse" in text) is worse


def test_the_time_is_told_by_what_it_was_spent_on(tiny_run):
    assert list(tiny_run.metrics["stages"]) == [
        "words",
        "network",
        "simple models",
        "combination",
        "report",
    ]
    stages = {"network": 120.4, "simple models": 600.0, "report": 59.6}
    text = write_markdown({**tiny_run.metrics, "stages": stages}, tiny_run.classes, [])
    assert "\nNetwork 2 min, simple models 10 min, report 60 s.\n" in text


def test_pictures_of_the_report_are_there(tiny_run):
    text = (tiny_run.path / "report.md").read_text("utf-8")
    shown = [part.split(")")[0] for part in text.split("](")[1:]]
    pictures = [name for name in shown if name.endswith(".png")]
    assert len(pictures) == 4
    for name in pictures:
        assert (tiny_run.path / name).read_bytes().startswith(b"\x89PNG")
    assert shown.count("report.html") == 1


@pytest.mark.parametrize(
    ("gru", "test", "said"),
    [
        (0.7, 0.80, "The network adds 5.0 points on the test rows to the regression on n-grams."),
        (0.7, 0.74, "adds nothing to the regression on n-grams, and costs 1.0 points: "),
        (0.7, 0.75, "adds nothing to the regression on n-grams: "),
        (0.0, 0.80, "has no share in the answers: for these texts the simple model does."),
    ],
)
def test_the_headline_says_what_the_network_adds(gru, test, said):
    floors = {"words": {"test_accuracy": 0.7}, "n-grams": {"test_accuracy": 0.75}}
    metrics = {
        "shares": {"gru": gru, "ngrams": 1.0},
        "regression": "n-grams",
        "baselines": floors,
        "model": {"test": {"accuracy": test}},
    }
    text = what_the_network_adds(metrics, "accuracy", lambda share: f"{100 * share:.1f} points")
    assert said in text


def test_the_headline_names_a_simple_model_that_only_the_test_rows_show(tiny_run):
    floors = {
        "by validation": {"validation_mae": 1.0, "test_mae": 3.0},
        "by test": {"validation_mae": 2.0, "test_mae": 2.5},
    }
    text = beside_simple_models({"baselines": floors}, "mae", "{:.3g}".format, -1)
    assert text == (
        "by validation, the best simple model by the validation rows, gets 3, and by test, better "
        "on the test rows, 2.5"
    )
    del floors["by test"]
    assert "better" not in beside_simple_models({"baselines": floors}, "mae", str, -1)
    report = (tiny_run.path / "report.md").read_text("utf-8")
    assert "the best simple model by the validation rows, gets" in report
    assert "to the regression on n-grams" not in report  # there is none
