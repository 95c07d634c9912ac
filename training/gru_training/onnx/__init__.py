"""The graphs of native GRU nodes that an export holds for ONNX Runtime, beside the SavedModel."""
