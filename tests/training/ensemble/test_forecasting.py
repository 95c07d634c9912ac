"""`gru-train ensemble` on runs that forecast a series."""

import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.export.run import export_run
from gru_training.__main__ import main
from gru_training.compare.command import compare_runs
from gru_training.forecasting.ensembles.members import plan_of
from gru_training.forecasting.ensembles.teacher import Teacher
from gru_training.forecasting.run import ForecastingRun
from gru_training.forecasting.scores.evaluation import calibrate, make_predictor
from gru_training.forecasting.windows import TEACHER_SHARE, SeriesBatches, WindowBatches
from tests.made_once import made_once, own_copy
from tests.serving.conftest import running
from tests.training.conftest import write_waves

pytestmark = pytest.mark.long

SMALL = ["--epochs", "2", "--units", "6", "--horizon", "6"]


def gru_train(*arguments):
    return main(list(map(str, arguments)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    def make(folder):
        data = write_waves(folder / "waves.csv")
        common = ["--data", data, "--runs-dir", folder, "--name", "one"]
        assert gru_train("forecasting", *SMALL, *common) == 0
        assert gru_train("ensemble", folder / "one", "--seeds", "3", "--distil") == 0

    return own_copy(made_once("forecast_ensemble_runs", make), tmp_path_factory)


@pytest.fixture(scope="module")
def runs(folder):
    names = ("one", "one-seed1", "one-seed2", "one-ensemble", "one-ensemble-distilled")
    return [ForecastingRun.open(folder / name) for name in names]


def test_forecasts_are_the_mean_of_those_of_the_runs(runs):
    *members, whole, _ = runs
    data = plan_of(members[0]).data
    histories = data.windows("test").histories()
    for load in (ForecastingRun.load_model, ForecastingRun.delivered_model):
        each = [make_predictor(load(run), data)(histories) for run in members]
        assert not np.allclose(each[0], each[1], atol=1e-3)
        mean = np.mean(np.asarray(each, np.float64), axis=0)
        np.testing.assert_allclose(make_predictor(load(whole), data)(histories), mean, atol=1e-4)
    names = [layer.name for layer in whole.load_model().layers]
    assert len(set(names)) == len(names)
    shares = whole.combination["shares"]
    assert sum(share["weight"] for share in shares) == pytest.approx(1)
    predict = make_predictor(whole.load_model(), data)
    offsets = calibrate(predict, data.windows("validation"), False, whole.levels)
    np.testing.assert_allclose(whole.offsets, offsets, atol=1e-5)


def test_the_plan_of_a_run_is_that_of_its_training(runs):
    first, second = runs[:2]
    plan = plan_of(first)
    linear = [share for share in first.combination["shares"] if not share["network"]]
    assert [each.forecaster.name for each in plan.candidates] == [each["name"] for each in linear]
    assert plan.network_lookback == first.combination["network_lookback"]
    # So the simple forecasters of runs with other seeds are the same.
    for one, two in zip(first.combination["shares"], second.combination["shares"], strict=True):
        assert one["name"] == two["name"]
        if not one["network"]:
            assert one["validation_mse"] == pytest.approx(two["validation_mse"])
    # Trained by it once more, the first run comes out again.
    model = first.load_model()
    errors = first.metrics["model"]["test"]["mse"]
    predict = make_predictor(model, plan.data)
    windows = plan.data.windows("test")
    found = (predict(windows.histories())[..., 0] - windows.futures()) ** 2
    assert np.nanmean(found) == pytest.approx(errors, rel=1e-3)


def test_reports_show_what_was_gained_and_kept(runs):
    *members, whole, distilled = runs
    figures = whole.metrics["ensemble"]
    errors = [run.metrics["model"]["test"]["mse"] for run in members]
    assert figures["mean"]["test"]["mse"] == pytest.approx(np.mean(errors))
    gain = np.mean(errors) - whole.metrics["model"]["test"]["mse"]
    assert figures["gain"]["test"]["mse"] == pytest.approx(gain)
    assert gain > 0  # the error of a mean is below the mean of the errors
    assert "| `one-seed1` |" in (whole.path / "report.md").read_text()
    kept = distilled.metrics["distilled"]
    assert kept["average"]["test"]["mse"] == pytest.approx(whole.metrics["model"]["test"]["mse"])
    assert "| their average |" in (distilled.path / "report.md").read_text()
    assert distilled.load_model().count_params() <= members[0].load_model().count_params() * 1.5
    comparison = compare_runs([run.path for run in runs])
    assert len([each for each in comparison.contenders if each.is_run]) == len(runs)


def test_networks_learn_the_mean_of_what_came_and_what_the_teacher_says(runs):
    whole = runs[3]
    plan = plan_of(runs[0])
    data, model = plan.data, whole.load_model()
    windows = data.windows("train", plan.training_lookback)
    taught = Teacher(model, model).teach(windows, data)
    late = windows.origins >= data.shape.lookback
    assert late.any()
    answers = make_predictor(model, data)(data.windows("train").histories())[..., 0]
    expected = windows.futures()
    expected[late] = TEACHER_SHARE * answers + (1 - TEACHER_SHARE) * expected[late]
    batches = WindowBatches(taught, data.preprocessor, len(windows))
    (batch,) = batches.in_order()
    np.testing.assert_allclose(batch.targets, expected, atol=1e-5)
    single = SeriesBatches(taught, data.preprocessor, expected.shape[0] * expected.shape[2], 1)
    (batch,) = single.in_order(10**9)
    pairs = single._pairs
    rows, columns = np.divmod(pairs, expected.shape[2])
    np.testing.assert_allclose(batch.targets[..., 0], expected[rows, :, columns], atol=1e-5)


@pytest.mark.parametrize("name", ["one-ensemble", "one-ensemble-distilled"])
def test_an_export_forecasts_as_the_run_with_both_engines(runs, folder, tmp_path, name):
    run = ForecastingRun.open(folder / name)
    export_run(run.path, tmp_path / "models")  # verified in a process of its own
    histories = run.test_windows(4)
    answers = {}
    for runtime in ("tensorflow", "onnx"):
        with (
            running(
                tmp_path / f"{runtime}.log",
                f"--model_base_path={tmp_path / 'models'}",
                "--model_name=waves",
                f"--runtime={runtime}",
            ) as server,
            connect(server.rest) as client,
        ):
            answers[runtime] = client.predict({"history": histories}, "waves")["forecast"]
    data = plan_of(run).data
    predicted = make_predictor(run.delivered_model(), data)(histories)
    wanted = data.preprocessor.restore(predicted, None).numpy()[..., 0]
    for found in answers.values():
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-2)


def test_an_average_is_tested_again_and_forecasts(runs, folder, tmp_path, capsys):
    assert gru_train("backtest", folder / "one-ensemble", "--folds", "2", "--refit") == 0
    assert (folder / "one-ensemble-backtest" / "backtest.md").is_file()
    assert gru_train("forecast", folder / "one-ensemble", "--output", tmp_path / "next.csv") == 0
    assert (tmp_path / "next.csv").is_file()


def test_runs_that_cannot_be_averaged(runs, folder, tmp_path, capsys, forecasting_run):
    one = folder / "one"

    def refused(*paths, flags=()):
        assert gru_train("ensemble", *paths, "--runs-dir", tmp_path, *flags) == 2
        return capsys.readouterr().err

    assert "expected a run that combines" in refused(one, forecasting_run.path)
    assert "expected a run that combines" in refused(forecasting_run.path, flags=["--seeds", "2"])
    data = ["--data", folder / "waves.csv", "--runs-dir", tmp_path]
    longer = [*SMALL[:-1], "12"]
    assert gru_train("forecasting", *longer, *data, "--name", "longer", "--no-refit") == 0
    capsys.readouterr()
    assert "expected the horizon of" in refused(one, tmp_path / "longer")
    assert "got an average" in refused(one, folder / "one-ensemble")
