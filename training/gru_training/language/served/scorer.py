"""How likely a trained language model finds the texts of a table."""

from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from gru_training.language.network.model import LanguageModel
from gru_training.language.run import LanguageRun
from gru_training.language.served.likelihood import log_probabilities
from gru_training.scoring.scorer import BatchLimits
from gru_training.scoring.text_column import text_column
from gru_training.words.vocabulary import PADDING, TextPreprocessor
from keras_gru import portable

_FILES = ("config.json", "model.keras", "vocabulary.txt")


class LanguageScorer:
    """The model of a language run; answers as the signature `score` of its export does.

    A missing text is read as an empty one.

    Args:
        run: Complete.
    """

    inputs = ("text",)
    limits = BatchLimits(steps=1 << 14, rows=128)
    answers = pa.schema(
        [
            ("log_likelihood", pa.float32()),
            ("end_log_probability", pa.float32()),
            ("tokens", pa.int32()),
            ("perplexity", pa.float32()),
        ]
    )

    def __init__(self, run: LanguageRun) -> None:
        self.identity = {"run": run.digest(_FILES)}
        self.preprocessor: TextPreprocessor = run.preprocessor()
        self._graph = _graph(run.load_model())

    def read(self, rows: pa.RecordBatch) -> "ReadTexts":
        """Split texts into tokens.

        Raises:
            RowError: The column holds no texts.
        """
        texts = text_column(rows.column("text")).to_pylist()
        ids = self.preprocessor.ragged_ids(tf.constant(texts, tf.string), limit=False)
        return ReadTexts(self, ids.to_tensor(PADDING).numpy(), ids.row_lengths().numpy())

    def answer(self, ids: np.ndarray, lengths: np.ndarray) -> pa.RecordBatch:
        """Score texts of token ids, (B, T) int32, padded with 0."""
        found, of_end = (value.numpy() for value in self._graph(ids))
        likelihood = found.sum(axis=1)
        perplexity = np.exp(-(likelihood + of_end) / (lengths + 1)).astype(np.float32)
        columns = likelihood, of_end, lengths.astype(np.int32), perplexity
        return pa.RecordBatch.from_arrays(list(map(pa.array, columns)), schema=self.answers)


class ReadTexts:
    """N texts as token ids.

    Args:
        scorer: Answers them.
        ids: (N, T) int32, padded with 0.
        lengths: Tokens of each, (N,) int64.
    """

    def __init__(self, scorer: LanguageScorer, ids: np.ndarray, lengths: np.ndarray):
        self._scorer, self._ids, self.lengths = scorer, ids, lengths

    def answer(self, rows: np.ndarray) -> pa.RecordBatch:
        """How likely some of the texts are."""
        lengths = self.lengths[rows]
        return self._scorer.answer(self._ids[rows, : max(1, lengths.max())], lengths)


def _graph(model: LanguageModel) -> Any:
    """From token ids (B, T) to log-probabilities, as the exported model computes them."""

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)], autograph=False)
    def scores(ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        found: tuple[tf.Tensor, tf.Tensor] = log_probabilities(model, ids)
        return found

    with portable():  # else XLA would compile for every shape, which few files would repay
        return scores.get_concrete_function()
