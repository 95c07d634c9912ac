"""Exports of training runs as SavedModels; only this package imports keras_gru or training."""
