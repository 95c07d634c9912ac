"""The export of a training run to a SavedModel; only here keras_gru or training are imported."""
