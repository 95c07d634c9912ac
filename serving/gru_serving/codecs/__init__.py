"""Bytes to arrays and back, shared by server and client. No TensorFlow."""
