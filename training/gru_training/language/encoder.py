"""The lower part of a language model, for a classifier to begin with; needs no TensorFlow."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gru_training.errors import ConfigError
from gru_training.language.data import load_language_data
from gru_training.words.text_encoder import EncoderWeights, TextEncoder

if TYPE_CHECKING:
    from gru_training.language.run import LanguageRun


def language_encoder(run: "LanguageRun") -> TextEncoder:
    """Embedding and GRUs of a run on words.

    Raises:
        ConfigError: It predicts characters.
    """
    if run.unit != "words":
        raise ConfigError(
            f"{run.path}: expected a language model of words, got one of {run.unit}; train one "
            "with gru-train language --unit words"
        )
    sizes = run.config.model
    return TextEncoder(
        sizes.embedding_size,
        sizes.units,
        sizes.layers,
        partial(_weights, run),
        lambda: load_language_data(run.config.data, run.config.training.seed).train,
    )


def _weights(run: "LanguageRun") -> EncoderWeights:
    """Those of the best epoch, without the end of a document, which no text holds as a word."""
    from gru_training.language.reading import END_ID

    model = run.load_model()
    vectors = np.delete(model.embedding.embeddings.numpy(), END_ID, axis=0)
    words = run.vocabulary.tokens[END_ID + 1 :]
    return EncoderWeights(words, vectors, tuple(tuple(gru.get_weights()) for gru in model.grus))
