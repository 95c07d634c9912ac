"""Runs that are interrupted anywhere and resumed end with exactly the same weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from gru_training.errors import CheckpointError
from gru_training.loop.batches import LengthBucketedBatches
from gru_training.loop.checkpoint import Checkpoint, FitState, checkpoint_path, read_settings
from gru_training.loop.fit import fit, make_eval_step, make_train_step
from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.network.model import build_sentiment_model
from gru_training.sentiment.targets import accuracy, cross_entropy
from tests.serving.full_disk import largest_file

BATCH_SIGNATURE = (tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32))

RNG = np.random.default_rng(3)
ROWS = [RNG.integers(1, 20, length).astype(np.int32) for length in RNG.integers(1, 9, 24)]
TARGETS = RNG.integers(0, 3, 24).astype(np.int32)
EPOCHS, STEPS = 3, 6


class Killed(BaseException):
    """Stands for the end of the process."""


class Progress:
    """Ends the process after this many steps; records what it was told."""

    def __init__(self, steps_left=None, at_epoch_end=False):
        self.steps_left, self.at_epoch_end = steps_left, at_epoch_end
        self.steps, self.records, self.best = [], [], None

    def step(self, epoch, step, loss):
        self.steps.append((epoch, step, loss))
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left <= 0 and not self.at_epoch_end:
                raise Killed

    def epoch(self, record, best):
        self.records.append((record.epoch, record.train, record.validation))
        self.best = record.epoch if best else self.best
        if self.steps_left is not None and self.steps_left <= 0:
            raise Killed


def accuracy_then_loss(means):
    return means["accuracy"], -means["loss"]


def train(path, progress, patience=EPOCHS, score=accuracy_then_loss, seconds_between=0.0, units=3):
    """As a separate process would; returns all variables and the result."""
    keras.utils.set_random_seed(5)
    config = ClassifierConfig(embedding_size=4, units=units, dropout=0.3, bidirectional=False)
    model = build_sentiment_model(config, 20, 3)
    schedule = keras.optimizers.schedules.CosineDecay(0.02, EPOCHS * STEPS)
    optimizer = keras.optimizers.Adam(schedule)
    metrics = {"accuracy": accuracy}
    train_step = make_train_step(model, optimizer, cross_entropy, metrics, BATCH_SIGNATURE, 1.0)
    eval_step = make_eval_step(model, cross_entropy, metrics, BATCH_SIGNATURE)
    batches = LengthBucketedBatches(ROWS, TARGETS, 4, seed=1)
    checkpoint = Checkpoint(
        path, {"task": "test"}, [*model.variables, *optimizer.variables], seconds_between
    )
    result = fit(
        model,
        train_step,
        eval_step,
        batches,
        lambda: LengthBucketedBatches(ROWS, TARGETS, 7).in_length_order(),
        epochs=EPOCHS,
        patience=patience,
        score=score,
        learning_rate=lambda: float(optimizer.learning_rate),
        progress=progress,
        checkpoint=checkpoint,
    )
    return [np.array(v) for v in (*model.variables, *optimizer.variables)], result


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    progress = Progress()
    path = tmp_path_factory.mktemp("whole") / "checkpoint"
    values, result = train(path, progress)
    assert len(progress.steps) == EPOCHS * STEPS
    return values, result, progress


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("breaks", "seconds_between"),
    [
        ([STEPS], 0.0),
        ([3, 2, 7], 0.0),
        ([STEPS + 2], 1e9),
        pytest.param([1], 0.0, marks=pytest.mark.long),
        pytest.param([2 * STEPS + 5], 0.0, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_broken_off_and_continued_equals_uninterrupted(
    tmp_path, uninterrupted, breaks, seconds_between
):
    path = tmp_path / "checkpoint"
    for steps in breaks:
        with pytest.raises(Killed):
            train(path, Progress(steps), seconds_between=seconds_between)
    progress = Progress()
    values, result = train(path, progress, seconds_between=seconds_between)
    wanted, wanted_result, whole = uninterrupted
    for value, expected in zip(values, wanted, strict=True):
        np.testing.assert_array_equal(value, expected)
    assert progress.steps == whole.steps[-len(progress.steps) :]
    # The checkpoint of the last step had not been written when the process was killed.
    done = STEPS if seconds_between else sum(count - 1 for count in breaks)
    assert progress.steps[0][:2] == (done // STEPS + 1, done % STEPS + 1)
    assert progress.records == whole.records
    assert progress.best == whole.best
    if breaks != [1]:  # before the first checkpoint
        assert 0 < result.earlier_seconds < sum(record.seconds for record in result.epochs)
    assert wanted_result.earlier_seconds == 0
    assert result.best_epoch == wanted_result.best_epoch
    assert [r.validation for r in result.epochs] == [r.validation for r in wanted_result.epochs]
    assert [r.learning_rate for r in result.epochs] == [
        r.learning_rate for r in wanted_result.epochs
    ]


@pytest.mark.slow
def test_broken_off_after_the_last_epoch_trains_no_further(tmp_path, uninterrupted):
    path = tmp_path / "checkpoint"
    train(path, Progress())
    progress = Progress()
    values, result = train(path, progress)
    assert progress.steps == []
    assert result.best_epoch == uninterrupted[1].best_epoch
    for value, expected in zip(values, uninterrupted[0], strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.slow
def test_early_stopping_goes_on_counting(tmp_path):
    """No epoch is better than the first, and the training is broken off in the second."""
    path, alike = tmp_path / "checkpoint", {"patience": 1, "score": lambda _: (0.0,)}
    with pytest.raises(Killed):
        train(path, Progress(STEPS + 2), **alike)
    _, result = train(path, Progress(), **alike)
    assert (len(result.epochs), result.best_epoch) == (2, 1)


def test_settings_are_kept(tmp_path):
    path = checkpoint_path(tmp_path / "run")
    assert path.parent == tmp_path
    Checkpoint(path, {"task": "sentiment", "data": {"text": "é"}}, []).save(FitState(), [])
    assert read_settings(path) == {"task": "sentiment", "data": {"text": "é"}}
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.slow
def test_another_model_is_refused(tmp_path):
    path = tmp_path / "checkpoint"
    with pytest.raises(Killed):
        train(path, Progress(3))
    with pytest.raises(CheckpointError, match="got one of another model"):
        train(path, Progress(), units=4)


def test_other_data_are_refused_where_a_checkpoint_knows_its_own(tmp_path):
    weight = keras.Variable(np.zeros(3))

    def checkpoint(name, data):
        return Checkpoint(tmp_path / name, {}, [weight], data=data)

    checkpoint("new", "a" * 64).save(FitState(), [])
    checkpoint("old", None).save(FitState(), [])  # as written before digests were kept
    weight.assign(np.ones(3))
    with pytest.raises(CheckpointError, match=r"SHA-256 a{12}\.\.\.\), got other data \(bbbb"):
        checkpoint("new", "b" * 64).restore()
    np.testing.assert_array_equal(weight, np.ones(3))
    for name, data in (("new", "a" * 64), ("new", None), ("old", "b" * 64)):
        weight.assign(np.ones(3))
        assert checkpoint(name, data).restore() == (FitState(), [])
        np.testing.assert_array_equal(weight, np.zeros(3))


@pytest.mark.parametrize("keep", [0, 10, 200, -1])
def test_a_damaged_checkpoint_is_told(tmp_path, keep):
    path = tmp_path / "checkpoint"
    weight = keras.Variable(np.zeros(3))
    checkpoint = Checkpoint(path, {"task": "test"}, [weight])
    checkpoint.save(FitState(), [])
    weight.assign(np.ones(3))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="damaged, or is not a checkpoint"):
        read_settings(path)
    with pytest.raises(CheckpointError, match="damaged, or is not a checkpoint"):
        checkpoint.restore()
    np.testing.assert_array_equal(weight, np.ones(3))


def test_a_text_file_is_told(tmp_path):
    path = tmp_path / "checkpoint"
    path.write_text("epoch 3 of 5")
    with pytest.raises(CheckpointError, match="damaged, or is not a checkpoint"):
        read_settings(path)


def test_no_checkpoint_is_told(tmp_path):
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        read_settings(tmp_path / "none")


def test_folder_that_is_gone_is_told(tmp_path):
    checkpoint = Checkpoint(tmp_path / "gone" / "checkpoint", {}, [])
    with pytest.raises(CheckpointError, match="cannot write the checkpoint"):
        checkpoint.save(FitState(), [])


def test_full_disk_names_the_way_on(tmp_path):
    path = checkpoint_path(tmp_path / "my run")
    weight = keras.Variable(np.zeros(50_000))
    checkpoint = Checkpoint(path, {"task": "test"}, [weight])
    full = f"cannot write the checkpoint {path}: File too large; free some space there, then "
    with largest_file(100_000), pytest.raises(CheckpointError) as first:
        checkpoint.save(FitState(), [])
    assert str(first.value) == full + "start again: there is no earlier checkpoint"
    assert list(tmp_path.iterdir()) == []
    checkpoint.save(FitState(epoch=2), [])
    with largest_file(100_000), pytest.raises(CheckpointError) as second:
        checkpoint.save(FitState(epoch=3), [])
    way = f"continue from the previous one with `gru-train resume '{tmp_path / 'my run'}'`"
    assert str(second.value) == full + way
    assert list(tmp_path.iterdir()) == [path]
    assert checkpoint.restore() == (FitState(epoch=2), [])


def test_settings_nested_too_deep_are_told(tmp_path):
    path = tmp_path / "checkpoint"
    with path.open("wb") as file:
        np.savez(file, meta=np.array("[" * 200_000))
    with pytest.raises(CheckpointError, match="damaged, or is not a checkpoint"):
        read_settings(path)
