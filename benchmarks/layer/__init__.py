"""`python -m benchmarks.layer`: the layer beside Keras, PyTorch and Flax."""
