"""The Keras model of a run: as a scorer, where ONNX cannot express it, and as a model of texts."""

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import pyarrow as pa
import tensorflow as tf

from gru_serving.preprocessing.texts import RESERVED
from gru_training.scoring.class_columns import TokenizedTexts, answer_columns
from gru_training.scoring.scorer import BatchLimits
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.served.head import Head
from gru_training.sentiment.served.scorer import SLICE, STORED, strings
from gru_training.words.tokens import Reading
from gru_training.words.vocabulary import TextPreprocessor, Vocabulary
from keras_gru import portable


class KerasScorer:
    """The model of a sentiment run in TensorFlow, with the answers of the exported model.

    A missing text counts as empty; its answer is about the shares of the classes.

    Args:
        run: A complete run.
    """

    inputs = ("text",)
    limits = BatchLimits(steps=1 << 14, rows=512, in_flight=2)  # the fastest on two cores

    def __init__(self, run: SentimentRun) -> None:
        self.identity = {"run": STORED.digest(run)}
        self._columns = answer_columns(run.kind, run.classes)
        self.answers = self._columns.schema
        self._preprocessor = run.preprocessor()
        self._answers = _answers(run.load_model(), run.head())

    def read(self, rows: pa.RecordBatch) -> TokenizedTexts:
        """Tokenize texts, in the background.

        Raises:
            RowError: The column holds no texts.
        """
        parts = _tokenized(strings(rows.column("text")), self._preprocessor)
        return TokenizedTexts(self.answer, lambda: parts)

    def answer(self, ids: np.ndarray) -> pa.RecordBatch:
        """Label texts of word ids, (B, T) int32, padded with 0."""
        outputs = {name: value.numpy() for name, value in self._answers(ids).items()}
        return self._columns.batch(outputs)


def _answers(model: keras.Model, head: Head) -> Any:
    """Trace the computation from word ids (B, T) to answers by name, as in the exported model."""

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)], autograph=False)
    def answers(ids: tf.Tensor) -> dict[str, tf.Tensor]:
        return head.answers(model(ids, training=False))

    with portable():  # else XLA would compile for every shape, which few files would repay
        return answers.get_concrete_function()


def _tokenized(
    texts: list[bytes], preprocessor: TextPreprocessor
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield word ids and their counts, slice by slice.

    Started at once on TensorFlow's own threads.
    """

    def read(part: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        ids = preprocessor.ragged_ids(part)
        return ids.flat_values, ids.row_lengths()

    slices = tf.data.Dataset.from_tensor_slices(tf.constant(texts, tf.string)).batch(SLICE)
    parts = slices.map(read, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return iter(parts.as_numpy_iterator())


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
