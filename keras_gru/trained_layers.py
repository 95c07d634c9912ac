"""The layers of models written by `gru-train`, registered with Keras before they are imported.

After `import keras_gru`, `keras.models.load_model("runs/NAME/model.keras")` works. A placeholder
imports the package of its layer only when a model with this layer is loaded, so this package does
not need `gru_training`.
"""

import importlib
from functools import partial
from types import SimpleNamespace
from typing import Any

import keras

PACKAGE = "gru_training"
"""The package under which the layers of training are registered."""
MODULES = {
    "AttentionPooling": "gru_training.sentiment.network.pooling",
    "EpochDecay": "gru_training.loop.optimizers",
    "InChunks": "gru_training.sentiment.network.model",
    "LanguageModel": "gru_training.language.model",
    "LastPooling": "gru_training.sentiment.network.pooling",
    "MaskedMaxPooling": "gru_training.sentiment.network.pooling",
    "MaskedMeanPooling": "gru_training.sentiment.network.pooling",
    "NgramLogits": "gru_training.words.ngrams",
    "SegmentGRU": "gru_training.forecasting.layers",
    "TensorSum": "gru_training.forecasting.layers",
    "WindowLinear": "gru_training.forecasting.layers",
    "WindowNormalisation": "gru_training.forecasting.layers",
    "WordDropout": "gru_training.sentiment.network.model",
    "WordEmbedding": "gru_training.words.embedding",
    "WordIds": "gru_training.sentiment.served.keras_model",
}


def _load(name: str, config: dict[str, Any]) -> Any:
    """Import the layer of a name and build it from a configuration.

    Raises:
        ImportError: A package for training is missing; the message says how to install it.
    """
    module = MODULES[name]
    try:
        layer = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise ImportError(
            f"this model holds the layer {name} of {module}, which needs {error.name}; "
            "install it with pip install 'keras-gru[train]'",
            name=error.name,
        ) from error
    return layer.from_config(config)


def register() -> None:
    """Register the layers that are not imported yet."""
    known = keras.saving.get_custom_objects()
    for name in MODULES:
        placeholder = SimpleNamespace(from_config=partial(_load, name))
        known.setdefault(f"{PACKAGE}>{name}", placeholder)
