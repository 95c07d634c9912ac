"""What a model does to raw input before its network and to the answers behind it, as data.

A step does the same with NumPy, which is all that servers need, and by operations of TensorFlow.
"""
