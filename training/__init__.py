"""Training pipelines built on keras_gru."""
