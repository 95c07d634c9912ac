"""keras_gru: a GRU layer for Keras 3 that people can check by hand."""
