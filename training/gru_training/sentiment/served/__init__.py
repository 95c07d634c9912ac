"""The uses of a trained text classifier: scoring, exports, a Keras model of texts."""
