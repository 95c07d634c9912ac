"""What the extras for training promise: the wheel trains, exports and reports.

Pieces and trackers add to the environment of `train`, which first says that they are missing.
"""

import pytest

pytestmark = [pytest.mark.wheel, pytest.mark.slow]
TINY = ("gru-train", "sentiment", "--preset", "demo", "--set", "reviews=200", "--epochs", "1",
        "--runs-dir", "runs")  # fmt: skip


def test_train(environment, exported):
    train = environment("train")
    assert {"starlette", "mlflow", "wandb"}.isdisjoint(train.packages())
    assert train.succeeds("gru-train", "--help").startswith("usage: gru-train")
    (train.work / "in.csv").write_text("text\ngood film\nbad film\n")
    train.succeeds("gru-train", "predict", "runs/small", "--data=in.csv", "--output=out.csv")
    header, *rows = (train.work / "out.csv").read_text().splitlines()
    assert header == "text,label,probability,negative,positive"
    assert [row.split(",")[0] for row in rows] == ["good film", "bad film"]
    assert (train.work / "runs" / "small" / "report.html").is_file()
    assert (exported / "1" / "assets.extra" / "onnx").is_dir()
    train.asks_for("serve", "gru-serve", "serve", "--port=1", "--model_name=small",
                   f"--model_base_path={exported}")  # fmt: skip


def test_forecasting(environment):
    """The default data come with a dependency."""
    train = environment("train")
    train.succeeds("gru-train", "forecasting", "--no-combine", "--no-refit", "--epochs", "1",
                   "--runs-dir", "runs", "--name", "co2")  # fmt: skip
    train.succeeds("gru-train", "forecast", "runs/co2", "--output", "next.csv")
    assert (train.work / "next.csv").read_text().count("\n") > 1


@pytest.mark.parametrize(
    ("tracker", "variables", "written"),
    [
        ("tensorboard", {}, "runs/tensorboard/**/events.out.tfevents.*"),
        ("mlflow", {"MLFLOW_TRACKING_URI": "sqlite:///mlflow.db"}, "mlflow.db"),
        ("wandb", {"WANDB_MODE": "offline"}, "runs/wandb/offline-run-*"),
    ],
)
def test_trackers(environment, tracker, variables, written):
    train = environment("train")
    command = (*TINY, "--name", f"with-{tracker}", "--track", tracker)
    train.asks_for(tracker, *command)
    train.add(tracker)
    train.succeeds(*command, **variables, DO_NOT_TRACK="true")
    assert list(train.work.glob(written))
