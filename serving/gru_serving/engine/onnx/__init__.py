"""Models in ONNX Runtime: the graphs that an export holds beside its SavedModel."""
