"""Conversion between bytes and arrays, shared by server and client; without TensorFlow."""
