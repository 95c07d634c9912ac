"""Flags and text-proto files of `tensorflow_model_server`."""
