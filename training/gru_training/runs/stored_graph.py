"""ONNX graphs that runs hold beside the Keras model, and that answer without TensorFlow."""

import os
from typing import Any, NamedTuple

from gru_training.errors import RunDirectoryError
from gru_training.runs.directory import TaskRun

_DIGEST = "run"
"""Key in the graph's metadata for the digest of the files from which it was made."""


class StoredGraph(NamedTuple):
    """The graph of a kind of run, which is tied to the files from which it was made."""

    name: str
    """File of the graph in a run."""
    files: tuple[str, ...]
    """Files that determine the answers, as far as a run has them."""

    def digest(self, run: TaskRun) -> str:
        """Compute the digest of the files that determine a run's answers."""
        return run.digest([name for name in self.files if (run.path / name).is_file()])

    def write(self, run: TaskRun, graph: Any) -> None:
        """Write a graph, an `onnx.ModelProto`, into a run that has all its other files."""
        graph.metadata_props.add(key=_DIGEST, value=self.digest(run))
        (run.path / self.name).write_bytes(graph.SerializeToString())

    def load(self, run: TaskRun, threads: int = 0) -> tuple[Any, str] | None:
        """Load the graph of a run, with the digest of its files.

        None if there is none that was made from its present files.

        Args:
            run: Complete run.
            threads: Number of threads of each answer; 0 for as many as there are cores.

        Raises:
            RunDirectoryError: The graph cannot be loaded.
        """
        path = run.path / self.name
        if not path.is_file():
            return None
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # it reports its use to its makers
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = threads
        options.log_severity_level = 4  # what goes wrong is raised
        try:
            graph = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise RunDirectoryError(f"cannot load {path}: {error}") from error
        made_from, present = (
            graph.get_modelmeta().custom_metadata_map.get(_DIGEST),
            self.digest(run),
        )
        return (graph, present) if made_from == present else None
