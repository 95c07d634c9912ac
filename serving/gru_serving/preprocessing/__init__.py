"""What a model does to raw input before its network and to the answers behind it, as data.

A step is a class with two methods, one for each runtime; NumPy is all that servers need.
"""
