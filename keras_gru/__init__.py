"""keras_gru: a GRU layer for Keras 3 that people can check by hand."""

from keras_gru import initializers
from keras_gru.cell import GRUCell
from keras_gru.encoder import GRUEncoder
from keras_gru.layer import GRU

__version__ = "0.1.0"

__all__ = ["GRU", "GRUCell", "GRUEncoder", "initializers"]
