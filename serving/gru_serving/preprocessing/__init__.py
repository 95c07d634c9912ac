"""The steps from raw inputs to a network, and from a network to answers, as data.

A step computes the same with NumPy, which is all that servers need, and with TensorFlow operations.
"""
