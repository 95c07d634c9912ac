"""What an exported language model answers: its signatures, with the reading in the graph."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from gru_training.language.network.model import LanguageModel
from gru_training.language.reading import END_ID
from gru_training.language.served.likelihood import log_probabilities
from gru_training.words.vocabulary import PADDING, TextPreprocessor
from keras_gru import portable

MOST_NEXT = 128
"""Next tokens that `step` names, at most."""


class LanguageSignatures(tf.Module):
    """A language model that reads raw strings.

    B texts, T tokens of the longest text, K next tokens, S the size of the streaming state.

    Args:
        model: From token ids to log-odds.
        preprocessor: From texts to token ids.
        tokens: V, the vocabulary.
        shown: V, what each token adds to a text.
    """

    def __init__(
        self,
        model: LanguageModel,
        preprocessor: TextPreprocessor,
        tokens: Sequence[str],
        shown: Sequence[str],
    ) -> None:
        super().__init__(name="language")
        # Bare functions: of a model as attribute the writer would save Keras' own graphs too.
        self._log_probabilities = partial(log_probabilities, model)
        self._read, self._logits = partial(model.read), partial(model.logits)
        self._project = partial(model.projection)
        self._weights = [variable.value for variable in model.variables]
        self._preprocessor = preprocessor
        self._tokens = tf.constant(list(tokens), tf.string)
        self._shown = tf.constant(list(shown), tf.string)
        self._units = [gru.units for gru in model.grus]
        self.state_size = sum(self._units) + 1
        self.next_count = min(len(tokens) - 1, MOST_NEXT)

    def by_name(self) -> dict[str, Any]:
        """The concrete functions by signature name."""
        # Not attributes of the module: the writer would trace and save those a second time.
        text = tf.TensorSpec((None,), tf.string, "text")
        with portable():
            score = tf.function(self.score, autograph=False).get_concrete_function(text)
            step = tf.function(self.step, autograph=False).get_concrete_function(
                tf.TensorSpec((None,), tf.string, "token"),
                tf.TensorSpec((None, self.state_size), tf.float32, "state"),
            )
        return {"serving_default": score, "score": score, "step": step}

    def score(self, text: Any) -> dict[str, Any]:
        """Say how likely texts are.

        Args:
            text: (B,) string.

        Returns:
            `log_likelihood` (B,) float32, natural logarithm of the probability that a document
            begins so; `end_log_probability` (B,), to add where it also ends so; `tokens` (B, T)
            string as the model reads them, padded with empty strings, and `log_probabilities`
            (B, T) of each given those before it, zero where there is padding; `length` (B,) int32,
            how many tokens there are. A token that the model does not know has the probability of
            all unknown ones together.
        """
        ids = self._preprocessor(text, limit=False)
        found, of_end = self._log_probabilities(ids)
        tokens = self._preprocessor.tokens(text, limit=False).to_tensor("")
        missing = tf.shape(ids)[1] - tf.shape(tokens)[1]
        return {
            "log_likelihood": tf.reduce_sum(found, axis=1),
            "end_log_probability": of_end,
            "tokens": tf.pad(tokens, [[0, 0], [0, missing]]),
            "log_probabilities": found,
            "length": tf.math.count_nonzero(ids, axis=1, dtype=tf.int32),
        }

    def step(self, token: Any, state: Any) -> dict[str, Any]:
        """Read on, and say what may come next. The caller keeps the state.

        Args:
            token: (B,) string, the next word or character of each row's text; a longer piece is
                read token by token, and an empty one changes nothing.
            state: (B, S) float32, zeros at the beginning of a document, then what the step before
                returned.

        Returns:
            `next_token` (B, K) string, the likeliest first: `[END]` is the end of the document and
            `[UNK]` any token that the model does not know; `next_text` (B, K), what each adds to
            the text so far, a word its blank; `log_probability` (B, K) float32, natural logarithms,
            of which those of all tokens add up to a probability of 1; and the new `state` (B, S).
        """
        ids = self._preprocessor(token, limit=False)
        *carried, begun = tf.split(state, [*self._units, 1], axis=-1)
        _, behind_end = self._read(tf.fill([1, 1], END_ID))
        states = [
            tf.where(begun > 0, own, first) for own, first in zip(carried, behind_end, strict=True)
        ]
        _, states = self._read(ids, states, mask=tf.not_equal(ids, PADDING))
        logits = self._logits(self._project(states[-1]))  # the output of a GRU is its state
        values, classes = tf.math.top_k(tf.nn.log_softmax(logits), self.next_count)
        return {
            "next_token": tf.gather(self._tokens, classes + 1),
            "next_text": tf.gather(self._shown, classes + 1),
            "log_probability": values,
            "state": tf.concat([*states, tf.ones_like(begun)], axis=-1),
        }
