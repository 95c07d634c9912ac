"""What Weights & Biases keeps of a training offline."""

import json

import pytest

from gru_training.errors import DivergenceError
from gru_training.tracking.tracked_training import Tracked
from gru_training.tracking.tracker import TrackedData
from tests.training.tracking.wandb_file import records as kept_records
from tests.waiting import wait_until

DATA = TrackedData("tickets", "ab" * 32, {"train": 30, "test": 3})


def of_kind(folder, kind):
    """The records of a kind, once the process that writes them has written the last one."""
    found = []

    def ended():
        found[:] = kept_records(folder)
        return any(each.WhichOneof("record_type") == "exit" for each in found)

    wait_until(ended)
    return [getattr(each, kind) for each in found if each.WhichOneof("record_type") == kind]


def values(items):
    return {"/".join(each.nested_key) or each.key: json.loads(each.value_json) for each in items}


@pytest.mark.slow
def test_a_run_is_kept(tracked_config, console, shown, records, tiny_run, tmp_path):
    folder = tmp_path / "followed"
    config = tracked_config(track="wandb", track_to=str(folder), track_project="films")
    with Tracked(config, "sentiment", console) as tracked:
        tracked.begin(tmp_path / "tracked", DATA)
        for record in records:
            tracked.epoch(record)
        tracked.complete(tiny_run.path)
    run = of_kind(folder, "run")[0]
    settings = {each.key: json.loads(each.value_json) for each in run.config.update}
    assert (run.project, run.display_name, run.job_type) == ("films", "tracked", "sentiment")
    assert settings["settings"]["training.batch_size"] == 32
    assert settings["data"]["sha256"] == "ab" * 32
    history = [values(each.item) for each in of_kind(folder, "history")]
    told = [
        (row["epoch"], row["train/accuracy"], row["validation/loss"])
        for row in history
        if "train/accuracy" in row
    ]
    assert told == [(n, n / 8, 2 / n) for n in range(1, 5)]
    summary = {}
    for each in of_kind(folder, "summary"):
        summary |= values(each.update)
    assert summary["final/test/accuracy"] == tiny_run.metrics["model"]["test"]["accuracy"]
    (artifact,) = of_kind(folder, "artifact")
    files = {path.name for path in tiny_run.path.iterdir()}
    assert {each.path for each in artifact.manifest.contents} == files
    pictures = {path for each in of_kind(folder, "files") for path in (f.path for f in each.files)}
    assert sum("report/curves" in path for path in pictures) == 1
    assert [each.exit_code for each in of_kind(folder, "exit")] == [0]
    assert shown() == ""


def diverge(tracked, folder):
    tracked.begin(folder / "tracked", DATA)
    raise DivergenceError("the training loss became nan")


def test_a_failed_training_is_told(tracked_config, console, tmp_path):
    folder = tmp_path / "followed"
    config = tracked_config(track="wandb", track_to=str(folder))
    with pytest.raises(DivergenceError), Tracked(config, "sentiment", console) as tracked:
        diverge(tracked, tmp_path)
    assert [each.exit_code for each in of_kind(folder, "exit")] == [1]
