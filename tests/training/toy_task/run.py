"""A run of the tagger, and what is exported from it."""

from functools import cached_property, partial

import numpy as np
import tensorflow as tf

from gru_training.runs.directory import TaskRun
from gru_training.servable import Request, Servable
from keras_gru import portable
from tests.training.toy_task.config import TaggingConfig


class TaggingRun(TaskRun):
    @cached_property
    def config(self):
        return self._read_config("tagging", TaggingConfig)

    def test_rows(self):
        with np.load(self.path / "test.npz") as arrays:
            return dict(arrays)

    def test_tokens(self):
        return self.test_rows()["tokens"]


class Tagger(tf.Module):
    def __init__(self, model):
        super().__init__("tagger")
        self._model = partial(model, training=False)
        self._weights = [variable.value for variable in model.variables]

    def serve(self, tokens):
        return {"scores": tf.nn.softmax(self._model(tokens))}


class TaggingServable(Servable):
    def __init__(self, run):
        self._run, self._model = run, run.load_model()
        module = Tagger(self._model)
        tokens = tf.TensorSpec((None, None), tf.int32, "tokens")
        with portable():
            serve = tf.function(module.serve).get_concrete_function(tokens)
        super().__init__(module, {"serving_default": serve})

    def golden(self):
        tokens = self._run.test_tokens()[:3]
        scores = tf.nn.softmax(self._model(tokens, training=False)).numpy()
        return [Request("serving_default", {"tokens": tokens}, {"scores": scores})]
