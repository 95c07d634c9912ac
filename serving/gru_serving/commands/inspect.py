"""`gru-serve inspect`: show what an exported version contains."""

import argparse
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from gru_serving.codecs.dtypes import by_number
from gru_serving.codecs.signature import DEFAULT_SIGNATURE, Signature, TensorInfo, shape_text
from gru_serving.commands.example_request import example_request, render
from gru_serving.commands.terminal import (
    command_parser,
    run_command,
    safe_json,
    safe_text,
    waiting,
)
from gru_serving.engine.golden import VerificationError, read_golden
from gru_serving.engine.imports import quiet_stderr
from gru_serving.errors import InvalidArgument
from gru_serving.protos.meta_graph_pb2 import SignatureDef
from gru_serving.release.interface import read_card
from gru_serving.storage.publishing import find_version

_WARMUP = Path("assets.extra") / "tf_serving_warmup_requests"
_LONGEST_EXAMPLE = 1_000
"""Greatest number of characters of a request that is printed."""
_MOST_OPS = 8

_EXAMPLES = """examples:
  gru-serve inspect models/tickets          # its highest version
  gru-serve inspect models/tickets/1 --json | jq .signatures

exit status: 0; 1 where a signature is not portable or not pure; 2 where there is no SavedModel
"""


def main(argv: Sequence[str]) -> int:
    """Describe a version; returns the exit status, as described in the help."""
    parser = command_parser(
        "inspect",
        "Describe a version: signatures, sizes, operations, whether it is portable and "
        "pure, its model card, and an example request. Any SavedModel will do.",
        _EXAMPLES,
    )
    parser.add_argument(
        "version",
        type=Path,
        metavar="MODEL",
        help="directory of a version, or a base path for its highest",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return run_command(parser, argv, _inspect)


def _inspect(arguments: argparse.Namespace) -> int:
    version = find_version(arguments.version)
    with waiting(f"reading {version}"):
        found = inspect_version(version)
    if arguments.json:
        print(safe_json(json.dumps(found, ensure_ascii=False, indent=1)))
    else:
        _print(version, found)
    return 1 if found["faults"] else 0


def inspect_version(version: Path) -> dict[str, Any]:
    """Describe a version as JSON values.

    Args:
        version: Directory of the version.

    Raises:
        ServingError: The directory holds no SavedModel that can be read.
    """
    with quiet_stderr():
        import tensorflow as tf
        from google.protobuf.message import DecodeError
        from tensorflow.core.protobuf import saved_model_pb2

        from gru_serving.engine.portability import portability_faults, signature_nodes
    path = version / "saved_model.pb"
    try:
        proto = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    except (OSError, DecodeError) as error:
        raise InvalidArgument(f"{path}: expected a SavedModel; got: {error}") from None
    signatures = {
        name: Signature.from_proto(SignatureDef.FromString(definition.SerializeToString()))
        for meta_graph in proto.meta_graphs
        for name, definition in sorted(meta_graph.signature_def.items())
        if not name.startswith("__")
    }
    index = version / "variables" / "variables"
    shapes: dict[str, list[int]] = {}
    if index.with_suffix(".index").exists():
        try:
            shapes = tf.train.load_checkpoint(str(index)).get_variable_to_shape_map()
        except tf.errors.OpError as error:
            raise InvalidArgument(
                f"{index}.index: expected variables; got: {error.message}"
            ) from None
    weights = {k: v for k, v in shapes.items() if not k.startswith("_CHECKPOINTABLE")}
    operations: dict[str, Counter[str]] = {name: Counter() for name in signatures}
    for name, node in signature_nodes(version):
        operations[name][node.op] += 1
    return {
        "path": str(version),
        "files": {
            str(file.relative_to(version)): file.stat().st_size
            for file in sorted(version.rglob("*"))
            if file.is_file()
        },
        "signatures": {name: _described(one) for name, one in signatures.items()},
        "variables": len(weights),
        "numbers": sum(math.prod(shape) for shape in weights.values()),
        "operations": {name: dict(count.most_common()) for name, count in operations.items()},
        "faults": [str(fault) for fault in portability_faults(version)],
        "card": read_card(version),
        "golden_requests": _golden_counts(version),
        "warmup": (version / _WARMUP).exists(),
    }


def _described(signature: Signature) -> dict[str, Any]:
    return {
        "method": signature.method_name,
        "inputs": {name: _tensor(info) for name, info in signature.inputs.items()},
        "outputs": {name: _tensor(info) for name, info in signature.outputs.items()},
    }


def _tensor(info: TensorInfo) -> str:
    try:
        name = by_number(info.dtype).name
    except InvalidArgument:
        name = f"DataType {info.dtype}"
    return f"{name} {shape_text(info.shape)}"


def _golden_counts(version: Path) -> dict[str, int]:
    try:
        golden = read_golden(version)
    except VerificationError:
        return {}
    return dict(Counter(request["signature_name"] for request in golden))


def _print(version: Path, found: dict[str, Any]) -> None:
    print(f"{version}")
    size = sum(found["files"].values())
    print(
        f"  {size / 1e6:.2f} MB in {len(found['files'])} files; {found['variables']} variables "
        f"with {found['numbers']:,} numbers"
    )
    print("\nsignatures")
    for name, signature in found["signatures"].items():
        method = signature["method"].rpartition("/")[2] or "no method"
        print(safe_text(f"  {name} ({method})"))
        for arrow, side in (("<-", "inputs"), ("->", "outputs")):
            for alias, shape in signature[side].items():
                print(safe_text(f"    {arrow} {alias}: {shape}"))
    print("\noperations")
    for name, count in found["operations"].items():
        shown = [f"{op} {n}" for op, n in list(count.items())[:_MOST_OPS]]
        kinds = f"{sum(count.values())} of {len(count)} kinds: {', '.join(shown)}, ..."
        print(safe_text(f"  {name}: {kinds}"))
    if found["faults"]:
        print("\nNOT portable and pure:")
        for fault in found["faults"]:
            print(safe_text(f"  {fault}"))
    else:
        print("portable and pure: nothing bound to a device, compiler or Python; no random number;")
        print("  no variable written")
    golden = ", ".join(f"{name} {count}" for name, count in found["golden_requests"].items())
    print(safe_text(f"golden requests: {golden or 'none'}"))
    print(f"warmup requests: {'yes' if found['warmup'] else 'none'}")
    if found["card"] is not None:
        print("\nmodel card")
        _print_card(found["card"])
    _print_example(version)


def _print_card(card: dict[str, Any]) -> None:
    for key, value in card.items():
        if isinstance(value, dict | list):
            value = json.dumps(value, ensure_ascii=False)
            value = value if len(value) <= 160 else f"{value[:157]}..."
        print(safe_text(f"  {key}: {value}"))


def _print_example(version: Path) -> None:
    try:
        request = example_request(version, DEFAULT_SIGNATURE)
    except VerificationError:
        return
    folder = version.resolve().parent
    shown = render("curl", request, folder.name, "", "http://localhost:8501", "")
    if len(shown) > _LONGEST_EXAMPLE:  # a history of many rows
        shown = f"gru-serve example-request {quote(str(version))} --only curl"
    print("\nexample (more with gru-serve example-request)")
    print(f"  {shown}")
