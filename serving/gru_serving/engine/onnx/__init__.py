"""Models in ONNX Runtime: the graphs that an export writes beside its SavedModel."""

import os

# ONNX Runtime reports its use to its makers from version 1.31 on, unless told not to.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
