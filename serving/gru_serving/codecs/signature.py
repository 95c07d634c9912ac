"""The inputs and outputs of a model, free of protobuf and TensorFlow objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gru_serving.errors import Internal, InvalidArgument

if TYPE_CHECKING:
    from gru_serving.protos.meta_graph_pb2 import SignatureDef

DEFAULT_SIGNATURE = "serving_default"
PREDICT_METHOD = "tensorflow/serving/predict"
CLASSIFY_METHOD = "tensorflow/serving/classify"
REGRESS_METHOD = "tensorflow/serving/regress"


@dataclass(frozen=True)
class TensorInfo:
    """One input or output.

    Attributes:
        name: Name of the graph's tensor, `x:0`; empty for sparse and composite tensors.
        dtype: DataType number (`gru_serving.codecs.dtypes`).
        shape: Static shape, -1 for an unknown dimension; None for an unknown rank.
    """

    name: str
    dtype: int
    shape: tuple[int, ...] | None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TensorInfo:
        """Read one entry of the REST metadata answer."""
        from gru_serving.codecs.dtypes import by_enum_name

        shape = value.get("tensor_shape") or {}
        dims = tuple(int(dim["size"]) for dim in shape.get("dim", ()))
        return cls(
            value.get("name", ""),
            by_enum_name(value["dtype"]).number,
            None if shape.get("unknown_rank") else dims,
        )


def fits_shape(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Tell whether a shape fits one of a signature, in which -1 is any size."""
    return len(shape) == len(wanted) and all(
        size in (-1, got) for size, got in zip(wanted, shape, strict=True)
    )


def shape_text(shape: Sequence[int] | None) -> str:
    """Write the sizes of a shape, with a question mark for an open one."""
    if shape is None:
        return "of any shape"
    return "[" + ", ".join("?" if size < 0 else str(size) for size in shape) + "]"


def sizes_text(shape: Sequence[int]) -> str:
    """Write the sizes of a shape as C++ does, `[2,3]`."""
    return f"[{','.join(map(str, shape))}]"


@dataclass(frozen=True)
class Signature:
    """Named inputs and outputs of one entry point of a model."""

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    method_name: str = PREDICT_METHOD
    defaults: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def from_proto(cls, proto: SignatureDef) -> Signature:
        """Read a `tensorflow.SignatureDef`."""
        from gru_serving.codecs.tensor_proto import decode_tensor

        return cls(
            inputs=_tensor_infos(proto.inputs),
            outputs=_tensor_infos(proto.outputs),
            method_name=proto.method_name,
            defaults={alias: decode_tensor(proto.defaults[alias]) for alias in proto.defaults},
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Signature:
        """Read the REST metadata answer; entries of unsupported types are left out."""
        return cls(
            inputs=_readable(value.get("inputs", {})),
            outputs=_readable(value.get("outputs", {})),
            method_name=value.get("method_name", ""),
        )

    def check_predict_method(self) -> None:
        """Check that the signature's method is one that Predict may use.

        Raises:
            Internal: Predict may not use the method; the message is TF Serving's.
        """
        if self.method_name not in (PREDICT_METHOD, CLASSIFY_METHOD, REGRESS_METHOD):
            raise Internal(
                "Expected prediction signature method_name to be one of "
                f"{{{PREDICT_METHOD}, {CLASSIFY_METHOD}, {REGRESS_METHOD}}}. "
                f"Was: {self.method_name}"
            )

    def check_input_names(self, names: Collection[str]) -> None:
        """Compare the inputs of a Predict request with the signature.

        Raises:
            InvalidArgument: The inputs are too many, too few, or others; the message is TF
                Serving's.
        """
        given, expected = set(names), set(self.inputs)
        if given == expected:
            return
        if len(given) > len(expected) or (len(given) < len(expected) and not self.defaults):
            raise InvalidArgument(
                f"input size does not match signature: {len(given)}!={len(expected)} "
                f"len({_set(given)}) != len({_set(expected)}). "
                f"Sent extra: {_set(given - expected)}. "
                f"Missing but required: {_set(expected - given)}."
            )
        for alias in sorted(expected - given):
            if alias not in self.defaults:
                raise InvalidArgument(
                    f"Signature input alias: {alias}(feed name: {self.inputs[alias].name}) not "
                    "found in request and no default value provided. Inputs expected to be in "
                    f"the request {_set(given)}, or default input alias set: "
                    f"{','.join(sorted(self.defaults))}"
                )
        if given - expected:
            raise InvalidArgument(
                "Inputs contains invalid name. Used request inputs: "
                f"{','.join(sorted(given & expected))}, request input: {','.join(sorted(given))}"
            )

    def select_outputs(self, output_filter: Collection[str]) -> list[str]:
        """Select the outputs that a request asks for: all, or those of its filter in its order.

        Raises:
            InvalidArgument: An alias is unknown or repeated; the message is TF Serving's.
        """
        if not output_filter:
            return sorted(self.outputs)
        seen: list[str] = []
        for alias in output_filter:
            if alias not in self.outputs:
                raise InvalidArgument(
                    f"output tensor alias not found in signature: {alias} "
                    f"Outputs expected to be in the set {_set(self.outputs)}."
                )
            if alias in seen:
                raise InvalidArgument(f"duplicate output tensor alias: {alias}")
            seen.append(alias)
        return seen


def _tensor_infos(entries: Any) -> dict[str, TensorInfo]:
    infos = {}
    for alias in sorted(entries):
        proto = entries[alias]
        shape = proto.tensor_shape
        dims = None if shape.unknown_rank else tuple(dim.size for dim in shape.dim)
        infos[alias] = TensorInfo(proto.name, proto.dtype, dims)
    return infos


def _readable(entries: Mapping[str, Any]) -> dict[str, TensorInfo]:
    infos = {}
    for alias, entry in sorted(entries.items()):
        try:
            infos[alias] = TensorInfo.from_json(entry)
        except InvalidArgument:  # DT_INVALID of __saved_model_init_op, DT_RESOURCE, ...
            continue
    return infos


def _set(names: Collection[str]) -> str:
    return "{" + ",".join(sorted(names)) + "}"
