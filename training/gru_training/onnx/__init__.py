"""What an export holds for ONNX Runtime, beside the SavedModel: graphs of native GRU nodes."""
