"""keras_gru: a GRU layer for Keras 3 that people can check by hand."""

from keras_gru.missing_extra import naming_extra

with naming_extra("layer", "keras", "tensorflow"):
    import keras

from keras_gru import functional, initializers, trained_layers
from keras_gru.cell import GRUCell
from keras_gru.encoder import GRUEncoder
from keras_gru.kernel.execution import portable
from keras_gru.layer import GRU
from keras_gru.variants import MGU, CoupledGRU, CoupledGRUCell, MGUCell

if keras.config.backend() != "tensorflow":
    raise ImportError(
        "keras_gru needs Keras' TensorFlow backend: expected KERAS_BACKEND=tensorflow in the "
        f"environment; got {keras.config.backend()!r}"
    )

trained_layers.register()

__version__ = "0.1.0"

__all__ = [
    "GRU",
    "MGU",
    "CoupledGRU",
    "CoupledGRUCell",
    "GRUCell",
    "GRUEncoder",
    "MGUCell",
    "functional",
    "initializers",
    "portable",
]
