"""Models in ONNX Runtime: the graphs that an export writes beside its SavedModel."""
