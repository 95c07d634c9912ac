import math
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

from gru_training.errors import DivergenceError
from gru_training.loop.batches import Batch, LengthBucketedBatches
from gru_training.loop.fit import evaluate, fit, make_eval_step, make_train_step
from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.network.model import build_sentiment_model
from gru_training.sentiment.targets import accuracy, cross_entropy

BATCH_SIGNATURE = (tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32))

RNG = np.random.default_rng(1)
LENGTHS = [1, 2, 3, 5, 8, 13, 4, 4, 1, 6]
ROWS = [RNG.integers(1, 20, length).astype(np.int32) for length in LENGTHS]
TARGETS = np.array([0, 1, 2, 1, 0, 2, 2, 1, 0, 1], np.int32)


@pytest.fixture
def model():
    keras.utils.set_random_seed(0)
    config = ClassifierConfig(4, 3, 2, bidirectional=False, dropout=0.2, word_dropout=0.1)
    return build_sentiment_model(config, 20, 3)


def softmax_loss_and_accuracy(model, rows, targets):
    """In float64, row by row."""
    losses, right = [], []
    for row, target in zip(rows, targets, strict=True):
        logits = model(row[None], training=False).numpy()[0].astype(np.float64)
        losses.append(math.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[target])
        right.append(logits.argmax() == target)
    return np.mean(losses), np.mean(right)


@pytest.mark.slow
def test_evaluate_weighs_rows_not_batches(model):
    eval_step = make_eval_step(model, cross_entropy, {"accuracy": accuracy}, BATCH_SIGNATURE)
    loss, share = softmax_loss_and_accuracy(model, ROWS, TARGETS)
    for batch_size in (3, 4, 10):
        batches = LengthBucketedBatches(ROWS, TARGETS, batch_size)
        means = evaluate(eval_step, batches.in_length_order())
        np.testing.assert_allclose(means["loss"], loss, rtol=1e-5)
        np.testing.assert_allclose(means["accuracy"], share, rtol=1e-6)


def test_evaluate_needs_rows(model):
    eval_step = make_eval_step(model, cross_entropy, {}, BATCH_SIGNATURE)
    with pytest.raises(ValueError, match="at least one row"):
        evaluate(eval_step, [])


def test_a_step_changes_every_weight_and_a_training_in_one_graph_lowers_the_loss(model):
    metrics, traced = {"accuracy": accuracy}, []

    def loss(targets, logits):
        traced.append(logits)
        return cross_entropy(targets, logits)

    train_step = make_train_step(
        model, keras.optimizers.Adam(0.05), loss, metrics, BATCH_SIGNATURE, 1.0
    )
    eval_step = make_eval_step(model, cross_entropy, metrics, BATCH_SIGNATURE)
    batches = LengthBucketedBatches(ROWS, TARGETS, 3)
    before = evaluate(eval_step, batches.in_length_order())
    weights, shapes = [v.numpy() for v in model.trainable_variables], set()
    train_step(*next(iter(batches.epoch(0))))
    for variable, old in zip(model.trainable_variables, weights, strict=True):
        assert not np.array_equal(variable.numpy(), old), variable.path
    for epoch in range(30):
        for batch in batches.epoch(epoch):
            train_step(*batch)
            shapes.add(batch.inputs.shape)
    assert len(shapes) > 2
    assert len(traced) == 1
    after = evaluate(eval_step, batches.in_length_order())
    assert after["loss"] < 0.3 * before["loss"]
    assert after["accuracy"] == 1.0


@pytest.mark.slow_cases
@pytest.mark.parametrize("clip", [1e-3, 1e3])
def test_clipping_bounds_the_global_norm(clip):
    keras.utils.set_random_seed(0)
    model = build_sentiment_model(
        ClassifierConfig(embedding_size=4, units=3, dropout=0.0, word_dropout=0.0), 20, 3
    )
    repeated = np.array([[3, 3, 3, 5], [3, 5, 7, 7]], np.int32)  # rows of a sparse gradient
    batch = Batch(repeated, TARGETS[6:8])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(cross_entropy(batch.targets, model(batch.inputs)))
    gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)]
    norm = math.sqrt(sum(float(tf.reduce_sum(g**2)) for g in gradients))
    before = [v.numpy() for v in model.trainable_variables]
    step = make_train_step(
        model, keras.optimizers.SGD(1.0), cross_entropy, {}, BATCH_SIGNATURE, clip
    )
    step(*batch)
    for variable, old, gradient in zip(model.trainable_variables, before, gradients, strict=True):
        expected = gradient.numpy() * min(1.0, clip / norm)
        np.testing.assert_allclose(old - variable.numpy(), expected, rtol=1e-3, atol=1e-6)


class OneWeight:
    """A model whose weight counts the steps."""

    def __init__(self):
        self.weight = np.zeros(1)

    def get_weights(self):
        return [self.weight.copy()]

    def set_weights(self, weights):
        self.weight = weights[0].copy()


class Script:
    """Steps that follow a script of validation accuracies, three steps per epoch."""

    def __init__(self, accuracies, on_step=None, loss=1.0):
        self.model, self.accuracies, self.epochs_drawn = OneWeight(), accuracies, []
        self.on_step, self.loss, self.told = on_step, loss, []

    def __len__(self):
        return 3

    def epoch(self, number, best=None):
        if best is not None:  # like Progress
            self.told.append((number.epoch, best))
            return None
        self.epochs_drawn.append(number)
        return iter([Batch(np.zeros((2, 1), np.int32), np.zeros(2, np.int32))] * 3)

    def step(self, *_):
        pass

    def train_step(self, inputs, targets):
        self.model.weight += 1
        if self.on_step:
            self.on_step(int(self.model.weight[0]))
        return {"loss": self.loss * len(targets)}

    def eval_step(self, inputs, targets):
        return {"accuracy": self.accuracies[len(self.epochs_drawn) - 1] * len(targets)}

    def fit(self, epochs=9, patience=2):
        validation = [Batch(np.zeros((5, 1), np.int32), np.zeros(5, np.int32))]
        return fit(
            self.model,
            self.train_step,
            self.eval_step,
            self,
            lambda: validation,
            epochs=epochs,
            patience=patience,
            score=lambda means: (means["accuracy"],),
            learning_rate=lambda: 0.1,
            progress=self,
        )


def test_early_stopping_restores_the_best_epoch():
    script = Script([0.5, 0.8, 0.7, 0.8, 0.9])
    result = script.fit()
    assert result.best_epoch == 2
    assert [record.validation["accuracy"] for record in result.epochs] == [0.5, 0.8, 0.7, 0.8]
    assert script.told == [(1, True), (2, True), (3, False), (4, False)]
    assert script.model.weight == 6
    assert not result.interrupted


def test_stops_after_the_last_epoch():
    script = Script([0.1, 0.2, 0.3])
    assert script.fit(epochs=3).best_epoch == 3
    assert script.epochs_drawn == [1, 2, 3]


def interrupt_at(*steps):
    def on_step(step):
        if step in steps:
            signal.raise_signal(signal.SIGINT)

    return on_step


def test_interrupt_ends_the_step_and_keeps_the_best_epoch():
    handler = signal.getsignal(signal.SIGINT)
    script = Script([0.5, 0.4, 0.9], interrupt_at(8))
    result = script.fit()
    assert result.interrupted
    assert result.best_epoch == 1
    assert len(result.epochs) == 2
    assert script.model.weight == 3
    assert signal.getsignal(signal.SIGINT) is handler


def test_interrupted_first_epoch_counts():
    script = Script([0.5], interrupt_at(2))
    result = script.fit()
    assert result.interrupted
    assert (result.best_epoch, len(result.epochs)) == (1, 1)
    assert script.model.weight == 2


@pytest.fixture
def python_interrupt():
    """Python's own SIGINT handler: a job in the background inherits an ignored SIGINT."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.usefixtures("python_interrupt")
def test_second_interrupt_is_obeyed_at_once():
    def twice(step):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        Script([0.5], twice).fit()


def test_divergence_names_epoch_and_step():
    with pytest.raises(DivergenceError, match=r"became nan in epoch 1, step 1; .*--learning-rate"):
        Script([0.5], loss=math.nan).fit()


@pytest.mark.slow
def test_divergence_of_the_last_step(model):
    """The loss of a step is that of the weights before it; only the validation shows the rest.

    An infinite rate makes every weight that is updated infinite or NaN, under any rounding; among
    them are the biases of all logits.
    """
    metrics = {"accuracy": accuracy}
    batches = LengthBucketedBatches(ROWS, TARGETS, len(ROWS))
    with pytest.raises(DivergenceError, match=r"validation loss became (nan|inf) after epoch 1; "):
        fit(
            model,
            make_train_step(
                model, keras.optimizers.SGD(math.inf), cross_entropy, metrics, BATCH_SIGNATURE, 1.0
            ),
            make_eval_step(model, cross_entropy, metrics, BATCH_SIGNATURE),
            batches,
            batches.in_length_order,
            epochs=1,
            patience=1,
            score=lambda means: (means["accuracy"],),
            learning_rate=lambda: math.inf,
            progress=Script([]),
        )
