import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from gru_training.errors import RunDirectoryError
from gru_training.runs.directory import RunDirectory, RunWriter
from gru_training.sentiment.run import SentimentRun
from tests.serving.full_disk import largest_file


@pytest.fixture
def copied_run(tiny_run, tmp_path):
    return SentimentRun.open(shutil.copytree(tiny_run.path, tmp_path / "copy"))


def test_holds_what_it_promises(tiny_run):
    names = {path.name for path in tiny_run.path.iterdir()}
    assert names == {
        "config.json", "settings.toml", "classes.json", "vocabulary.txt", "model.keras",
        "metrics.json",
        "history.json", "test_predictions.jsonl", "test_baselines.json", "curves.png",
        "confusion_matrix.png", "precision_recall.png", "decision.json",
        "text_rules.json", "marked_texts.json",
        "temperature.json", "calibration.png",
        "report.html", "report.md", "manifest.json",
        "training_texts.npy", "model.onnx", "tokens.json",
    }  # fmt: skip
    run = SentimentRun.open(str(tiny_run.path))
    assert run.classes == ("negative", "positive")
    assert run.config.model.units == 5
    assert len(run.history) == 2
    assert run.metrics["data"]["rows"] == {"train": 320, "validation": 40, "test": 40}
    for name in ("curves.png", "confusion_matrix.png"):
        assert (run.path / name).read_bytes().startswith(b"\x89PNG")


def test_the_loaded_model_repeats_the_stored_predictions(tiny_run):
    rows = list(tiny_run.test_predictions())
    ids = tiny_run.preprocessor()(tf.constant([row.text for row in rows]))
    assert tiny_run.temperature.value != 1
    scores = tf.nn.softmax(tiny_run.load_model()(ids) / tiny_run.temperature.value).numpy()
    np.testing.assert_allclose(scores, [row.scores for row in rows], rtol=1e-4, atol=1e-6)
    assert [row.predicted for row in rows] == [tiny_run.classes[k] for k in scores.argmax(axis=1)]
    right = np.mean([row.label == row.predicted for row in rows])
    assert right == pytest.approx(tiny_run.metrics["model"]["test"]["accuracy"])


@pytest.mark.parametrize("name", ["model.keras", "vocabulary.txt", "metrics.json"])
def test_a_missing_file_is_named(copied_run, name):
    (copied_run.path / name).unlink()
    with pytest.raises(RunDirectoryError, match=f"not a complete run: {name} is missing"):
        RunDirectory.open(copied_run.path)


def test_a_cut_file_is_named(copied_run):
    path = copied_run.path / "model.keras"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RunDirectoryError, match=rf"model\.keras has 100 bytes, expected {size}"):
        RunDirectory.open(copied_run.path)


def test_no_run_no_manifest_no_folder(copied_run, tmp_path):
    (copied_run.path / "manifest.json").unlink()
    with pytest.raises(RunDirectoryError, match=r"manifest\.json is missing"):
        RunDirectory.open(copied_run.path)
    with pytest.raises(RunDirectoryError, match="there is no run directory"):
        RunDirectory.open(tmp_path / "nowhere")
    assert RunDirectoryError.exit_code == 2


def test_damaged_content_of_right_size(copied_run):
    path = copied_run.path / "model.keras"
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(RunDirectoryError, match=r"cannot load .*model\.keras"):
        SentimentRun.open(copied_run.path).load_model()
    config = copied_run.path / "config.json"
    values = json.loads(config.read_text())
    values["model"]["units"] = "many"
    config.write_text(json.dumps(values))
    with pytest.raises(RunDirectoryError, match="units must be int, got 'many'"):
        _ = SentimentRun(copied_run.path).config
    config.write_text('{"task": "forecasting"}')
    with pytest.raises(RunDirectoryError, match="expected a sentiment run, got task 'forecasting'"):
        _ = SentimentRun(copied_run.path).config


def test_damaged_weights_and_classes(copied_run):
    path = copied_run.path / "model.keras"
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(2000) + whole[middle + 2000 :])
    with pytest.raises(RunDirectoryError, match=r"cannot load .*model\.keras"):
        SentimentRun.open(copied_run.path).load_model()
    path.write_bytes(whole)
    classes = copied_run.path / "classes.json"
    classes.write_text('["negative", "neutral", "positive"]')
    with pytest.raises(RunDirectoryError, match=r"model\.keras, 2; got 3 in classes\.json"):
        SentimentRun(copied_run.path).load_model()
    classes.write_text("{}")
    with pytest.raises(RunDirectoryError, match=r"classes\.json: expected a list of names, got {}"):
        _ = SentimentRun(copied_run.path).classes


def test_nothing_under_the_final_name_until_published(tmp_path):
    with RunWriter(tmp_path / "runs", "a") as writer:
        writer.write_json("x.json", {"a": 1})
        assert not (tmp_path / "runs" / "a").exists()
        assert writer.path.name.startswith(".a.partial-")
        path = writer.publish()
    assert path == RunDirectory.open(path).path == tmp_path / "runs" / "a"
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["a"]
    assert json.loads((path / "manifest.json").read_text()) == {"x.json": 13}


@pytest.mark.parametrize("error", [RuntimeError("crash"), KeyboardInterrupt()])
def test_a_failure_leaves_nothing(tmp_path, error):
    def crash():
        with RunWriter(tmp_path, "a") as writer:
            writer.write_text("x", "y")
            raise error

    with pytest.raises(type(error)):
        crash()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path):
    with (
        pytest.raises(RunDirectoryError, match=r"cannot write the run .*No space left"),
        RunWriter(tmp_path, "a"),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("room", [3_000, 9_000])
def test_a_full_disk_names_the_file_that_found_no_room(tmp_path, room):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8)])

    def write():
        with RunWriter(tmp_path, "a") as writer, largest_file(room):
            writer.write_text("small.txt", "x" * 2_000)
            writer.write_text("text.json", "x" * 5_000)
            model.save(writer.path / "model.keras")

    name = "text.json" if room < 5_000 else "model.keras"
    with pytest.raises(RunDirectoryError) as caught:
        write()
    assert str(caught.value) == f"cannot write {tmp_path / 'a' / name}: File too large"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["config.json", "metrics.json", "manifest.json"])
def test_json_that_is_nested_too_deep_is_told(tmp_path, name):
    run = tmp_path / "a"
    run.mkdir()
    (run / "manifest.json").write_text("{}")
    (run / name).write_text("[" * 200_000)
    with pytest.raises(RunDirectoryError, match=f"cannot read .*{name}"):
        RunDirectory.open(run)._json(name)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("metrics", "[]", r"metrics\.json: expected an object, got \[\]"),
        ("history", '[{"loss": 1}, 2]', r"history\.json: expected a list of objects, got \[\{"),
    ],
)
def test_measures_of_another_form_are_refused(tmp_path, name, content, said):
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / f"{name}.json").write_text(content)
    with pytest.raises(RunDirectoryError, match=said):
        getattr(RunDirectory.open(tmp_path), name)


def test_a_name_that_no_file_can_have_is_missing(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"a" * 300: 1}))
    with pytest.raises(RunDirectoryError, match=r"not a complete run: a{300} is missing"):
        RunDirectory.open(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1]", "expected answers by the name of a model"),
        ('{"a": [[1], [2, 3]]}', "expected answers by the name of a model"),
        ('{"a": ["b"]}', "expected numbers as answers of 'a', got \\['b'\\]"),
    ],
)
def test_baselines_of_another_form_are_refused(tmp_path, content, said):
    (tmp_path / "test_baselines.json").write_text(content)
    with pytest.raises(RunDirectoryError, match=rf"test_baselines\.json: {said}"):
        SentimentRun(tmp_path).baseline_predictions()


def test_an_existing_run_is_never_touched(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "old").write_text("old")
    with pytest.raises(RunDirectoryError, match="a exists already"), RunWriter(tmp_path, "a"):
        pass
    with RunWriter(tmp_path, "b") as writer:
        (tmp_path / "b").mkdir()  # another process was faster
        with pytest.raises(RunDirectoryError, match="exists already"):
            writer.publish()
    assert (tmp_path / "a" / "old").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(RunDirectoryError, match=r"cannot write to .*file/runs: Not a directory"),
        RunWriter(tmp_path / "file" / "runs", "a"),
    ):
        pass
