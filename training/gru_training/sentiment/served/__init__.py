"""A trained text classifier as others use it: scoring, exports, a Keras model of texts."""
