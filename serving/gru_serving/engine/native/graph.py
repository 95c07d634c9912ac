"""A graph of ONNX in the runtime."""

from __future__ import annotations

from pathlib import Path

import onnxruntime as ort

from gru_serving.errors import Internal, InvalidArgument, ServingError


def open_graph(path: Path) -> ort.InferenceSession:
    """A graph, whose runs stay in the thread that asks for them.

    Raises:
        InvalidArgument: The file holds no graph that can be run.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong is raised
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise InvalidArgument(f"cannot load the ONNX graph {path}: {error}") from None


def refused(error: Exception) -> ServingError:
    """The error of a run: the input's fault, or the runtime's."""
    # The runtime's classes of errors have no public names.
    input_is_wrong = type(error).__name__ == "InvalidArgument" or isinstance(error, ValueError)
    kind = InvalidArgument if input_is_wrong else Internal
    return kind(f"ONNX Runtime: {error}")
