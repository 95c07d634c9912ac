"""A Keras model of texts that contains preprocessing, classifier and calibrated probabilities."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from gru_serving.preprocessing.texts import RESERVED
from gru_training.sentiment.run import SentimentRun
from gru_training.words.tokens import Reading
from gru_training.words.vocabulary import TextPreprocessor, Vocabulary


@keras.saving.register_keras_serializable(package="gru_training")
class WordIds(keras.layers.Layer):
    """Converts texts (B,) to padded word ids (B, T).

    Args:
        tokens: The known words, without those for padding and unknown ones.
        max_tokens: Number of tokens that are kept; of longer texts the last ones.
        cleaned: Whether texts are cleaned before.
        reading: Kind of the tokens.
        backoff: Whether unknown words are read as known ones that begin alike.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        max_tokens: int,
        cleaned: bool = False,
        reading: Reading = "words",
        backoff: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        with tf.init_scope():  # the table must outlive the graph in which the layer may be made
            vocabulary = Vocabulary(tokens)
            self._preprocessor = TextPreprocessor(vocabulary, max_tokens, cleaned, reading, backoff)
        self.built = True

    def call(self, text: Any) -> Any:
        """Look up the words of texts (B,) string."""
        return self._preprocessor(text)

    def compute_output_spec(self, text: Any) -> keras.KerasTensor:
        """Return the spec of the word ids, (B, T) int32."""
        return keras.KerasTensor((text.shape[0], None), "int32")


def build_text_model(run: SentimentRun) -> keras.Model:
    """Build the model of a run, from texts (B,) string to probabilities (B, C) float32.

    For a number to estimate it answers the number, (B, 1).
    """
    tokens = list(run.vocabulary.tokens[len(RESERVED) :])
    text = keras.Input((), dtype="string", name="text")
    word_ids = WordIds(
        tokens, run.config.data.max_tokens, run.cleaned, run.reading, run.backoff, name="word_ids"
    )
    logits = run.load_model()(word_ids(text))
    if run.kind == "number":
        scale = keras.layers.Rescaling(run.scale.deviation, run.scale.mean, name="value")
        return keras.Model(text, scale(logits), name="text_regressor")
    divided = keras.layers.Rescaling(1 / run.temperature.value, name="temperature")(logits)
    function = "sigmoid" if run.kind == "labels" else "softmax"
    scores = keras.layers.Activation(function, name="scores")(divided)
    return keras.Model(text, scores, name="text_classifier")
