import json

from gru_training.sentiment.evaluation.markdown import write_markdown


def test_summary_shows_the_baseline_beside_and_escapes_text(tiny_run):
    mistake = {"text": "a | b <br> c", "label": "x", "predicted": "y", "probability": 0.9}
    summary = write_markdown(tiny_run.metrics, tiny_run.classes, [mistake], True)
    lines = summary.split("\n")
    baseline = tiny_run.metrics["baselines"]["bag of words, logistic regression"]
    row = next(line for line in lines if line.startswith("| bag of words"))
    assert f"{baseline['test_accuracy']:.2%}" in row
    assert r"a \| b &lt;br> c" in summary
    assert "nan" not in summary.lower()


def test_summary_tells_what_the_temperature_changed(tiny_run):
    metrics = tiny_run.metrics
    calibration = metrics["calibration"]
    summary = write_markdown(metrics, tiny_run.classes, [], False)
    assert f"temperature {calibration['temperature']:.3f}" in summary
    for when, name in (("before", "as trained"), ("after", "after division")):
        values = calibration["test"][when]
        row = (
            f"| {name} | {values['negative_log_likelihood']:.4f} | "
            f"{values['expected_calibration_error']:.2%} |"
        )
        assert row in summary
    assert "gates.png" not in summary
    remarked = {**metrics, "calibration": {**calibration, "remark": "none is best"}}
    text = write_markdown(remarked, tiny_run.classes, [], True)
    assert f"temperature {calibration['temperature']:.3f}: none is best." in text


def test_no_likelihood_is_called_worse_that_is_shown_as_the_same(tiny_run):
    calibration = json.loads(json.dumps(tiny_run.metrics["calibration"]))
    test = calibration["test"]
    metrics = {**tiny_run.metrics, "calibration": calibration}
    for after, worse in ((0.64231, False), (0.6425, True), (0.5, False)):
        test["before"]["negative_log_likelihood"] = 0.64230
        test["after"]["negative_log_likelihood"] = after
        text = write_markdown(metrics, tiny_run.classes, [], False)
        assert ("made the likelihood worse" in text) is worse


def test_the_time_is_told_by_what_it_was_spent_on(tiny_run):
    assert list(tiny_run.metrics["stages"]) == ["network", "simple models", "report"]
    stages = {"network": 120.4, "simple models": 600.0, "report": 59.6}
    text = write_markdown({**tiny_run.metrics, "stages": stages}, tiny_run.classes, [], False)
    assert "\nNetwork 2 min, simple models 10 min, report 60 s.\n" in text


def test_pictures_of_the_report_are_there(tiny_run):
    text = (tiny_run.path / "report.md").read_text("utf-8")
    shown = [part.split(")")[0] for part in text.split("](")[1:]]
    pictures = [name for name in shown if name.endswith(".png")]
    assert len(pictures) == 6
    for name in pictures:
        assert (tiny_run.path / name).read_bytes().startswith(b"\x89PNG")
    assert shown.count("explanations.html") == 1
    page = (tiny_run.path / "explanations.html").read_text("utf-8")
    assert """<meta http-equiv="Content-Security-Policy" content="default-src 'none';""" in page
