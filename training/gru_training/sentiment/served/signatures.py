"""What an exported text classifier answers: its signatures, with the preprocessing in the graph."""

from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from gru_training.sentiment.network.attribution import Attribution
from gru_training.sentiment.network.steps import SentimentSteps
from gru_training.sentiment.served.head import Head
from gru_training.words.vocabulary import PADDING, TextPreprocessor
from keras_gru import portable

_NAMES_SHOWN = 8


class SentimentSignatures(tf.Module):
    """A text classifier with its preprocessing: raw strings in, labels out.

    B texts, C classes, T tokens of the longest text, L layers, R directions, U units, S the size
    of the streaming state.

    Args:
        model: From word ids (B, T) to logits (B, C).
        preprocessor: From texts (B,) to word ids.
        head: From logits to answers.
    """

    def __init__(
        self,
        model: keras.Model,
        preprocessor: TextPreprocessor,
        head: Head,
    ) -> None:
        super().__init__(name="sentiment")
        # Bare functions: of a model as attribute the writer would save Keras' own graphs too.
        self._logits = partial(
            tf.function(  # one graph for all signatures that call it
                partial(model, training=False),
                input_signature=[tf.TensorSpec((None, None), tf.int32)],
                autograph=False,
            )
        )
        self._weights = [variable.value for variable in model.variables]
        steps = SentimentSteps(model, self._logits)
        self._unroll, self._advance = partial(steps.unroll), partial(steps.advance)
        self._streams = steps.streams
        self.state_size = steps.state_size if steps.streams else 0
        self._attribution = Attribution(model)
        self._preprocessor = preprocessor
        # Also one graph each: to clean a text takes a hundred operations.
        texts = [tf.TensorSpec((None,), tf.string)]
        self.ids, self._read = (
            partial(tf.function(read, input_signature=texts, autograph=False))
            for read in (preprocessor.__call__, preprocessor.tokens)
        )
        self._answers_of, self._scores_of = partial(head.answers), partial(head.scores)
        self._foremost, self._contrast = partial(head.foremost), partial(head.contrast)
        more = ", ..." if len(head.names) > _NAMES_SHOWN else ""
        self._named = ", ".join(head.names[:_NAMES_SHOWN]) + more
        self._middle = np.float32(head.middle)
        self._kind, self._classes = head.kind, tf.constant(head.names, tf.string)

    def by_name(self) -> dict[str, Any]:
        """The concrete functions by signature name; `step` only where the model can stream."""
        # Not attributes of the module: the writer would trace and save those a second time.
        text = tf.TensorSpec((None,), tf.string, "text")
        inputs = tf.TensorSpec((None,), tf.string, "inputs")
        with portable():
            signatures = {
                "serving_default": tf.function(
                    self.serving_default, autograph=False
                ).get_concrete_function(text),
                "gates": tf.function(self.gates, autograph=False).get_concrete_function(text),
            }
            api = self.regress if self._kind == "number" else self.classify
            name = "regress" if self._kind == "number" else "classify"
            signatures[name] = tf.function(api, autograph=False).get_concrete_function(inputs)
            chosen = [] if self._kind == "number" else [tf.TensorSpec((None,), tf.string, "label")]
            attribution = tf.function(self.attribution, autograph=False)
            signatures["attribution"] = attribution.get_concrete_function(text, *chosen)
            if self._streams:
                signatures["step"] = tf.function(self.step, autograph=False).get_concrete_function(
                    tf.TensorSpec((None,), tf.string, "token"),
                    tf.TensorSpec((None, self.state_size), tf.float32, "state"),
                )
        return signatures

    def serving_default(self, text: Any) -> dict[str, Any]:
        """Classify texts.

        Args:
            text: (B,) string.

        Returns:
            `label` (B,) string, `probability` of that label (B,) and `scores` of all
            classes (B, C), float32. Of several labels `labels` (B, C) string, those that apply
            in front and empty texts behind them, `scores` and `thresholds` (B, C). Of a number
            `value` (B,) and `quantiles` (B, 4).
        """
        return self._answers(self._logits(self.ids(text)))

    def classify(self, inputs: Any) -> dict[str, Any]:
        """Classify tf.Examples, for TF Serving's Classify API.

        Args:
            inputs: (B,) string, each a serialized tf.Example with one string feature `text`.

        Returns:
            `classes` (B, C) string, the same in each row, and their `scores` (B, C), float32. Of
            several labels all are there, whatever their thresholds: the API has as many in each
            row, and clients read from it which column of `scores` is which label.
        """
        features = tf.io.parse_example(inputs, {"text": tf.io.FixedLenFeature((), tf.string)})
        scores = self._scores(self._logits(self.ids(features["text"])))
        return {
            "classes": tf.broadcast_to(self._classes, tf.shape(scores)),
            "scores": scores,
        }

    def regress(self, inputs: Any) -> dict[str, Any]:
        """Estimate the number of tf.Examples, for TF Serving's Regress API.

        Args:
            inputs: As for `classify`.

        Returns:
            `outputs` (B,) float32.
        """
        features = tf.io.parse_example(inputs, {"text": tf.io.FixedLenFeature((), tf.string)})
        return {"outputs": self._scores(self._logits(self.ids(features["text"])))[:, 0]}

    def gates(self, text: Any) -> dict[str, Any]:
        """Show what the gates did at each token.

        Args:
            text: (B,) string.

        Returns:
            `tokens` (B, T) string, as the model reads them, padded with empty strings;
            `update_gate`, `reset_gate` and `state` (B, T, L, R, U) float32, the forward
            direction first; `scores` (B, T, C) float32, the answer to the text up to that
            token, a number in its own units. Zero where there is padding.
        """
        ids = self.ids(text)
        shown = self._unroll(ids)
        mask = tf.cast(tf.not_equal(ids, PADDING), tf.float32)[..., tf.newaxis]
        return {
            "tokens": self._tokens(text, ids),
            "update_gate": shown.update_gate,
            "reset_gate": shown.reset_gate,
            "state": shown.state,
            "scores": self._scores(shown.logits) * mask,
        }

    def attribution(self, text: Any, label: Any = None) -> dict[str, Any]:
        """Say which words an answer is due to, by integrated gradients.

        Args:
            text: (B,) string.
            label: (B,) string, the class or label to explain; where it is empty, the one answered.
                A model of numbers has no such input.

        Returns:
            `tokens` (B, T) string, padded with empty strings; `attribution` (B, T) float32, above
            0 for words that speak for it and 0 where there is padding; `label` (B,) string, what
            is explained; `value` and `baseline` (B,) float32, its score for the text and for as
            many words without any meaning. The attributions add up to `value - baseline`. Scores
            are log-odds: of a class against the mean of the others, of a label by itself. Of a
            number they are in its own units, and there is no `label`.
        """
        ids = self.ids(text)
        logits = self._logits(ids)
        place = self._foremost(logits) if label is None else self._chosen(label, logits)
        weights = self._contrast(place)
        outputs = {
            "tokens": self._tokens(text, ids),
            "attribution": self._attribution(ids, weights),
            "value": tf.reduce_sum(logits * weights, axis=1) + self._middle,
            "baseline": tf.reduce_sum(self._attribution.baseline(ids) * weights, axis=1)
            + self._middle,
        }
        if label is not None:
            outputs["label"] = tf.gather(self._classes, place)
        return outputs

    def _chosen(self, label: Any, logits: Any) -> Any:
        """The numbers of labels, (B,); what is answered where they are empty."""
        found = tf.equal(label[:, tf.newaxis], self._classes)
        given = tf.not_equal(label, "")
        unknown = given & ~tf.reduce_any(found, axis=1)
        got = tf.strings.reduce_join(tf.boolean_mask(label, unknown)[:1])
        message = tf.strings.join(
            [f"label: expected an empty text or one of {self._named}; got ", got]
        )
        known = tf.debugging.Assert(~tf.reduce_any(unknown), [message], name="known")
        with tf.control_dependencies([known]):
            return tf.where(given, tf.argmax(found, axis=1), self._foremost(logits))

    def step(self, token: Any, state: Any) -> dict[str, Any]:
        """Read on: the answer to everything read so far. The caller keeps the state.

        Args:
            token: (B,) string, the next word of each row's text; a longer piece is read token by
                token, and a blank one changes nothing.
            state: (B, S) float32, zeros at the beginning, then what the step before returned.

        Returns:
            the outputs of `serving_default`, and the new
            `state` (B, S).
        """
        logits, after = self._advance(self._preprocessor(token, limit=False), state)
        return {**self._answers(logits), "state": after}

    def _tokens(self, text: Any, ids: Any) -> Any:
        """The tokens, padded with empty strings to the length of the ids (B, T)."""
        tokens = self._read(text).to_tensor("")
        return tf.pad(tokens, [[0, 0], [0, tf.shape(ids)[1] - tf.shape(tokens)[1]]])

    def _answers(self, logits: Any) -> dict[str, Any]:
        return self._answers_of(logits)

    def _scores(self, logits: Any) -> Any:
        return self._scores_of(logits)
