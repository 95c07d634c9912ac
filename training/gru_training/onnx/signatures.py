"""A model's signatures as graphs of ONNX, and what happens to a request before one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Step = Mapping[str, Any]
"""One step of `gru_serving.engine.onnx.steps`, as JSON: `{"do": …, "from": …, "to": …}`."""


@dataclass(frozen=True)
class OnnxSignature:
    """One signature.

    Attributes:
        graph: Name of the graph that answers it; None where the steps make all outputs.
        outputs: Outputs of the graph, or values of the steps, by the name that the signature gives.
        steps: Steps from inputs of the signature to those of the graph; like names need none.
        rows_per_run: Rows that the graph takes at once; None for any number.
    """

    graph: str | None
    outputs: Mapping[str, str]
    steps: Sequence[Step] = ()
    rows_per_run: int | None = None


@dataclass(frozen=True)
class OnnxModel:
    """All that an export writes for ONNX Runtime.

    Attributes:
        graphs: `onnx.ModelProto` by name.
        signatures: Signatures by name.
        left: Reasons why the other signatures are left to TensorFlow, by name.
        texts: Files that the steps name, by file name.
    """

    graphs: Mapping[str, Any] = field(default_factory=dict)
    signatures: Mapping[str, OnnxSignature] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
