"""From made-up sequences to a run directory."""

import time

import keras
import numpy as np
import tensorflow as tf

from gru_training.data.digest import data_digest
from gru_training.loop.train import Objective, train
from gru_training.runs.summary import run_summary
from gru_training.runs.writer import TrainingRunWriter, run_name
from keras_gru import GRU
from tests.training.toy_task.data import Batches, make_up
from tests.training.toy_task.run import TaggingRun


def cross_entropy(tags, logits):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tags, logits)
    return tf.reduce_mean(losses, axis=1)


def accuracy(tags, logits):
    right = tf.equal(tf.argmax(logits, axis=-1, output_type=tags.dtype), tags)
    return tf.reduce_mean(tf.cast(right, tf.float32), axis=1)


OBJECTIVE = Objective(
    cross_entropy, {"accuracy": accuracy}, lambda means: (means["accuracy"],), "accuracy"
)


def train_tagging(config, console, resume):
    started, seed = time.perf_counter(), config.training.seed
    name = run_name(config, "tagging", "digits")
    with TrainingRunWriter(config, "tagging", name, resume) as writer:
        keras.utils.set_random_seed(seed)
        parts = make_up(config.data.sequences, seed)
        model = keras.Sequential(
            [
                keras.Input((None,), dtype="int32"),
                keras.layers.Embedding(10, 4),
                GRU(8, return_sequences=True, dropout=0.1),
                keras.layers.Dense(2),
            ]
        )
        sizes = tf.TensorSpec((None, None), tf.int32)
        result = train(
            model,
            Batches(parts["train"], config.training.batch_size, seed),
            lambda: [parts["validation"]],
            OBJECTIVE,
            config.training,
            signature=(sizes, sizes),
            console=console,
            checkpoint=lambda variables: writer.checkpoint(variables, data_digest(parts["train"])),
        )
        writer.write_model(model, result)
        answered = model.predict(parts["test"].tokens, verbose=0).argmax(-1)
        right = float(np.mean(answered == parts["test"].tags))
        np.savez(writer.path / "test.npz", **parts["test"]._asdict(), answered=answered)
        metrics = {"model": {"test": {"accuracy": right}}, **run_summary(result, seed, started)}
        writer.write_text("report.md", f"# Tagging\n\n{right:.1%} of the tags are right.\n")
        writer.write_json("metrics.json", metrics)
        return TaggingRun.open(writer.publish())
