"""Word vectors: those learned in training, beside those learned before from unlabelled texts."""

from typing import Any

import keras
import numpy as np
from keras import ops

from training.vocabulary import PADDING, UNKNOWN


@keras.saving.register_keras_serializable(package="training")
class WordEmbedding(keras.layers.Layer):
    """A fixed vector for every word, and one that is trained for the first words.

    After the two channels of Kim (2014), "Convolutional Neural Networks for Sentence
    Classification", section 3.1: words that occur in no training text keep a meaning, and the
    trained part learns what the task needs.

    Args:
        vocabulary_size: V, number of ids, padding and unknown included.
        fixed_size: numbers in a fixed vector.
        trained_words: ids below it have a trained vector; the others share the unknown word's.
        trained_size: numbers in a trained vector; 0 for none.
    """

    def __init__(
        self,
        vocabulary_size: int,
        fixed_size: int,
        trained_words: int,
        trained_size: int,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.vocabulary_size, self.fixed_size = vocabulary_size, fixed_size
        self.trained_words, self.trained_size = trained_words, trained_size

    def build(self, input_shape: tuple[int | None, ...]) -> None:  # noqa: ARG002
        """Makes the tables (V, fixed_size) and (trained_words, trained_size)."""
        self.fixed = self.add_weight(
            (self.vocabulary_size, self.fixed_size), "zeros", trainable=False, name="fixed"
        )
        self.trained = None
        if self.trained_size:
            shape = (self.trained_words, self.trained_size)
            self.trained = self.add_weight(shape, "uniform", name="trained")

    def set_fixed(self, vectors: np.ndarray) -> None:
        """Sets the fixed vectors, (V, fixed_size)."""
        self.fixed.assign(vectors)

    def call(self, token_ids: Any) -> Any:
        """Maps ids (B, T) to vectors (B, T, fixed_size + trained_size)."""
        fixed = ops.take(self.fixed, token_ids, axis=0)
        if self.trained is None:
            return fixed
        unknown = ops.full_like(token_ids, UNKNOWN)
        known = ops.where(token_ids < self.trained_words, token_ids, unknown)
        return ops.concatenate([fixed, ops.take(self.trained, known, axis=0)], axis=-1)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:  # noqa: ARG002
        """Padding is masked."""
        return ops.not_equal(inputs, PADDING)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """(B, T) becomes (B, T, fixed_size + trained_size)."""
        return (*input_shape, self.fixed_size + self.trained_size)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "fixed_size": self.fixed_size,
            "trained_words": self.trained_words,
            "trained_size": self.trained_size,
        }
