"""`assets.extra/onnx/signatures.json` of a version: which graph answers which signature, and how.

The file is written by `gru-serve export`::

    {"format": 1,
     "signatures": {
       "serving_default": {
         "graph": "classify.onnx",
         "steps": [{"do": "tokenize", "from": "text", "by": "tokens.json", …}, …],
         "outputs": {"scores": "scores", …},
         "rows_per_run": null}},
     "left_to_tensorflow": {"gates": "why"}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from gru_serving.errors import InvalidArgument
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap
from gru_serving.protos.meta_graph_pb2 import SavedModel

FOLDER = Path("assets.extra", "onnx")
FILE = "signatures.json"
FORMAT = 1


@dataclass(frozen=True)
class GraphCall:
    """The way to answer one signature.

    Attributes:
        graph: File of the graph, beside the manifest; None where the steps make all outputs.
        outputs: Outputs of the graph, or values of the steps, by the name that the signature gives.
        steps: Steps before the graph, of the kinds in `gru_serving.engine.onnx.steps`.
        rows_per_run: Rows that the graph takes at once; None for any number.
    """

    graph: str | None
    outputs: Mapping[str, str]
    steps: Sequence[Mapping[str, Any]] = ()
    rows_per_run: int | None = None


@dataclass(frozen=True)
class Manifest:
    """The manifest of a version's graphs for ONNX Runtime.

    Attributes:
        signatures: Calls by signature name.
        left: Reasons why the other signatures are left to TensorFlow, by name.
    """

    signatures: Mapping[str, GraphCall] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the file into a folder."""
        content = {
            "format": FORMAT,
            "signatures": {name: asdict(call) for name, call in self.signatures.items()},
            "left_to_tensorflow": dict(self.left),
        }
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (folder / FILE).write_text(f"{text}\n", "utf-8")

    @classmethod
    def read(cls, version: Path) -> Manifest | None:
        """Read the manifest of a version; None where it has none.

        Raises:
            InvalidArgument: The file is not what an export writes.
        """
        path = version / FOLDER / FILE
        try:
            content = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InvalidArgument(f"{path}: expected JSON, got {error}") from None
        try:
            if content["format"] != FORMAT:
                raise InvalidArgument(
                    f"{path}: expected format {FORMAT}, got {content['format']!r}; it was written "
                    "by another release"
                )
            calls = {name: GraphCall(**call) for name, call in content["signatures"].items()}
            return cls(calls, content["left_to_tensorflow"])
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidArgument(f"{path}: not a table of signatures: {error!r}") from None


def read_signatures(version: Path, tags: Sequence[str]) -> SignatureDefMap | None:
    """Read the signatures of the MetaGraph with these tags; None where none can be read."""
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
