"""From made-up sequences to a run directory, and what is exported of it."""

import time
from functools import cached_property

import keras
import numpy as np
import tensorflow as tf

from gru_training.data.digest import data_digest
from gru_training.loop.batches import Batch, LengthBucketedBatches
from gru_training.loop.train import Objective, train
from gru_training.runs.directory import TaskRun
from gru_training.runs.writer import TrainingRunWriter, run_name, run_summary
from gru_training.servable import Request, Servable
from keras_gru import GRU, portable

from .task import TaggingConfig

TASK, SEQUENCES = "tagging", tf.TensorSpec((None, None), tf.int32, "tokens")


def cross_entropy(tags, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tags, logits), axis=1)


def accuracy(tags, logits):
    return tf.reduce_mean(tf.cast(tf.argmax(logits, -1, tags.dtype) == tags, tf.float32), axis=1)


OBJECTIVE = Objective(cross_entropy, {"accuracy": accuracy}, lambda m: (m["accuracy"],), "accuracy")


def train_tagging(config, console, resume):
    started, seed = time.perf_counter(), config.training.seed
    tokens = np.random.default_rng(seed).integers(0, 10, (config.data.sequences, 8), np.int32)
    tags = np.pad(tokens[:, 1:] < tokens[:, :-1], ((0, 0), (1, 0))).astype(np.int32)
    borders = [len(tokens) * 3 // 5, len(tokens) * 4 // 5]
    learned, validation, test = map(Batch, np.split(tokens, borders), np.split(tags, borders))
    with TrainingRunWriter(config, TASK, run_name(config, TASK, "digits"), resume) as writer:
        keras.utils.set_random_seed(seed)
        gru = GRU(8, return_sequences=True, dropout=0.1)
        layers = [keras.layers.Embedding(10, 4), gru, keras.layers.Dense(2)]
        model = keras.Sequential([keras.Input((None,), dtype="int32"), *layers])
        batches = LengthBucketedBatches(*learned, config.training.batch_size, seed)
        result = train(
            model, batches, lambda: [validation], OBJECTIVE, config.training,
            signature=(SEQUENCES, SEQUENCES), console=console,
            checkpoint=lambda variables: writer.checkpoint(variables, data_digest(learned)),
        )  # fmt: skip
        writer.write_model(model, result)
        np.save(writer.path / "test.npy", test.inputs)
        right = float(np.mean(model.predict(test.inputs, verbose=0).argmax(-1) == test.targets))
        summary = run_summary(result, seed, started)
        writer.write_json("metrics.json", {"model": {"test": {"accuracy": right}}, **summary})
        return TaggingRun.open(writer.publish())


class TaggingRun(TaskRun):
    @cached_property
    def config(self):
        return self._read_config(TASK, TaggingConfig)


class TaggingServable(Servable):
    def __init__(self, run):
        module = tf.Module("tagger")
        model, self._tokens = run.load_model(), np.load(run.path / "test.npy")[:3]
        module.weights = [variable.value for variable in model.variables]
        self._serve = lambda tokens: {"scores": tf.nn.softmax(model(tokens))}
        graph = tf.function(self._serve, input_signature=[SEQUENCES])
        with portable():
            super().__init__(module, {"serving_default": graph.get_concrete_function()})

    def golden(self):
        return [Request("serving_default", {"tokens": self._tokens}, self._serve(self._tokens))]
