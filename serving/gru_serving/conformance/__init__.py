"""A conformance kit for TensorFlow Serving's API: cases as data, and what asks any server them."""
