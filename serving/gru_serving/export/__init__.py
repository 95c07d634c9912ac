"""From a training run to a SavedModel; the only folder that imports keras_gru or training."""
