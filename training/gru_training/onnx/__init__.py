"""The ONNX graphs of native GRU nodes that exports write beside the SavedModel."""
