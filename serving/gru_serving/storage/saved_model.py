"""The signatures of a SavedModel, read without TensorFlow."""

from collections.abc import Sequence
from pathlib import Path

from google.protobuf.message import DecodeError

from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap
from gru_serving.protos.meta_graph_pb2 import SavedModel


def read_signatures(version: Path, tags: Sequence[str]) -> SignatureDefMap | None:
    """Read the signatures of the MetaGraph with these tags; None if none can be read."""
    try:
        saved_model = SavedModel.FromString((version / "saved_model.pb").read_bytes())
    except (OSError, DecodeError):
        return None
    for graph in saved_model.meta_graphs:
        if set(graph.meta_info_def.tags) == set(tags):
            found = SignatureDefMap()
            for name, signature in graph.signature_def.items():
                found.signature_def[name].CopyFrom(signature)
            return found
    return None
