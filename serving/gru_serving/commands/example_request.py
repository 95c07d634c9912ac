"""`gru-serve example-request`: examples that query a model, to paste into a shell or a program."""

import argparse
import base64
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from gru_serving.codecs.example import encode_input, example_values
from gru_serving.codecs.signature import DEFAULT_SIGNATURE
from gru_serving.codecs.tensor_proto import encode_tensor
from gru_serving.commands.terminal import command_parser, run_command, safe_json
from gru_serving.engine.golden import VerificationError, read_golden
from gru_serving.protos.classification_pb2 import ClassificationRequest
from gru_serving.protos.model_pb2 import ModelSpec
from gru_serving.protos.predict_pb2 import PredictRequest
from gru_serving.protos.regression_pb2 import RegressionRequest
from gru_serving.storage.publishing import find_version

KINDS = {
    "curl": "curl, over REST",
    "python": "Python with nothing installed, over REST",
    "client": "Python with this project's client, over gRPC (or REST: change the URL)",
    "grpc": "Python with tensorflow-serving-api, over gRPC",
    "h2load": "throughput and latency over REST and gRPC, with h2load (Debian's nghttp2-client)",
}

_EXAMPLES = """examples:
  gru-serve example-request models/tickets
  gru-serve example-request models/tickets --signature step --only curl | sh
  gru-serve example-request models/tickets --only grpc --label stable > ask.py
  gru-serve example-request models/tickets --only h2load | sh
"""


def main(argv: Sequence[str]) -> int:
    """Print the lines; returns the exit status, 2 where the version has no golden requests."""
    parser = command_parser(
        "example-request",
        "Print commands and programs that query a served model with one of its golden requests.",
        _EXAMPLES,
    )
    parser.add_argument(
        "version",
        type=Path,
        metavar="MODEL",
        help="directory of a version, or a base path for its highest",
    )
    parser.add_argument("--only", choices=tuple(KINDS), help="print only this kind of example")
    parser.add_argument("--model", help="name on the server (default: the base path's name)")
    parser.add_argument("--label", default="", help="version label to ask (default: none)")
    parser.add_argument(
        "--signature",
        default=DEFAULT_SIGNATURE,
        help="entry point of the model (default: %(default)s)",
    )
    parser.add_argument(
        "--rest",
        default="http://localhost:8501",
        metavar="[http://]HOST:PORT",
        help="REST address of the server (default: %(default)s)",
    )
    parser.add_argument(
        "--grpc",
        default="localhost:8500",
        metavar="[grpc://]HOST:PORT",
        help="gRPC address of the server (default: %(default)s)",
    )
    return run_command(parser, argv, _print, errors=(VerificationError,))


def _print(arguments: argparse.Namespace) -> int:
    version = find_version(arguments.version)
    example = example_request(version, arguments.signature)
    model = arguments.model or version.resolve().parent.name
    for kind in (arguments.only,) if arguments.only else KINDS:
        if not arguments.only:
            print(f"# {KINDS[kind]}")
        print(render(kind, example, model, arguments.label, arguments.rest, arguments.grpc))
        if not arguments.only:
            print()
    return 0


def example_request(version: Path, signature: str) -> dict[str, Any]:
    """Return a golden request for a signature, with its first row that has a text and all values.

    Raises:
        VerificationError: There is none; names the signatures that have one.
    """
    golden = read_golden(version)
    fitting = [request for request in golden if request["signature_name"] == signature]
    if not fitting:
        known = sorted({request["signature_name"] for request in golden})
        raise VerificationError(f"--signature: expected one of {known}; got {signature!r}")
    for request in fitting:
        rows: list[dict[str, Any]]
        if "examples" in request:
            rows = [{"examples": [example]} for example in request["examples"]]
        else:
            count = len(next(iter(request["inputs"].values())))
            rows = [
                {"inputs": {name: values[i : i + 1] for name, values in request["inputs"].items()}}
                for i in range(count)
            ]
        for row in rows:
            # Golden requests include the empty text and missing values.
            if not any(odd in json.dumps(row) for odd in ('""', "NaN")):
                return {**request, **row}
    return fitting[0]


def render(kind: str, request: dict[str, Any], model: str, label: str, rest: str, grpc: str) -> str:
    """Render the lines of one kind.

    Args:
        kind: Key of `KINDS`.
        request: Request that `example_request` returns.
        model: Name on the server.
        label: Version label; empty for the highest version.
        rest: URL of the REST API, or its `host:port`.
        grpc: `host:port` of the gRPC API, also after `grpc://`, or after `grpcs://` for TLS.
    """
    method, signature = request.get("method", "predict"), request["signature_name"]
    body: dict[str, Any] = {"signature_name": signature}
    body.update({key: request[key] for key in ("inputs", "examples") if key in request})
    site = rest.rstrip("/") if "://" in rest else f"http://{rest.rstrip('/')}"
    path = f"{site}/v1/models/{quote(model, safe='')}"
    path += f"/labels/{quote(label, safe='')}:{method}" if label else f":{method}"
    address = grpc if "://" in grpc else f"grpc://{grpc}"
    if kind == "curl":
        text = safe_json(json.dumps(body, ensure_ascii=False))
        return f"curl -sS -d {shlex.quote(text)} {shlex.quote(path)}"
    if kind == "python":
        return (
            "import json\nimport urllib.request\n\n"
            f"body = {_python(body)}\n"
            f"request = urllib.request.Request({path!r}, json.dumps(body).encode())\n"
            "print(json.load(urllib.request.urlopen(request)))"
        )
    if kind == "client":
        argument = _python(request["inputs"] if method == "predict" else request["examples"])
        which = f", label={label!r}" if label else ""
        return (
            "from gru_serving.client import connect\n\n"
            f"with connect({address!r}) as client:\n"
            f"    print(client.{method}({argument}, {model!r}, signature={signature!r}{which}))"
        )
    if kind == "h2load":
        return _load(request, method, model, label, json.dumps(body), path, address)
    return _stock_grpc(request, method, model, label, address)


def _load(
    request: dict[str, Any],
    method: str,
    model: str,
    label: str,
    body: str,
    rest_url: str,
    grpc: str,
) -> str:
    """Render shell commands that measure both transports with four clients for ten seconds."""
    try:
        json.dumps(request, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return f"# h2load: expected names and texts that are Unicode, {error.reason}"
    spec = ModelSpec(name=model, signature_name=request["signature_name"])
    if label:  # an empty one, once set, is asked for by name
        spec.version_label = label
    message: Any
    if method == "predict":
        message = PredictRequest(model_spec=spec)
        for name, values in request["inputs"].items():
            dtype = object if _dtype(values) == "string" else np.float32
            message.inputs[name].CopyFrom(encode_tensor(np.array(values, dtype)))
    else:
        kinds = {"classify": ClassificationRequest, "regress": RegressionRequest}
        message = kinds[method](
            model_spec=spec, input=encode_input(example_values(request["examples"]))
        )
    payload = message.SerializeToString()
    # The frame of gRPC over HTTP/2: a byte for "not compressed", then the length.
    frame = base64.b64encode(b"\0" + len(payload).to_bytes(4, "big") + payload).decode()
    clients = "-c 4 -t 1 -m 1 -D 10 --warm-up-time 1"
    site = grpc.replace("grpc", "http", 1)
    url = f"{site}/tensorflow.serving.PredictionService/{method.capitalize()}"
    return "\n".join(
        [
            f"printf %s {shlex.quote(body)} > body.json",
            f"h2load --h1 {clients} -d body.json -H 'content-type: application/json' "
            f"{shlex.quote(rest_url)}",
            f"echo {frame} | base64 -d > body.grpc",
            f"h2load {clients} -d body.grpc -H 'te: trailers' "
            f"-H 'content-type: application/grpc' {shlex.quote(url)}",
        ]
    )


def _stock_grpc(request: dict[str, Any], method: str, model: str, label: str, grpc: str) -> str:
    if method == "predict":
        module, message = "predict_pb2", "PredictRequest"
        fill = [
            f"request.inputs[{name!r}].CopyFrom(tf.make_tensor_proto({_python(values)}, "
            f"dtype={_dtype(values)!r}))"
            for name, values in request["inputs"].items()
        ]
    else:
        module = {"classify": "classification_pb2", "regress": "regression_pb2"}[method]
        message = {"classify": "ClassificationRequest", "regress": "RegressionRequest"}[method]
        fill = []
        for example in request["examples"]:
            fill.append("example = request.input.example_list.examples.add()")
            for name, value in example.items():
                field = "bytes_list" if isinstance(value, str) else "float_list"
                shown = repr(value.encode()) if isinstance(value, str) else repr(value)
                fill.append(f"example.features.feature[{name!r}].{field}.value.append({shown})")
    scheme, _, address = grpc.partition("://")
    channel = f"insecure_channel({address!r})"
    if scheme == "grpcs":
        channel = f"secure_channel({address!r}, grpc.ssl_channel_credentials())"
    spec = [f"request.model_spec.version_label = {label!r}"] if label else []
    lines = [
        "import grpc",
        *(["import tensorflow as tf"] if method == "predict" else []),
        f"from tensorflow_serving.apis import {module}, prediction_service_pb2_grpc",
        "",
        f"request = {module}.{message}()",
        f"request.model_spec.name = {model!r}",
        f"request.model_spec.signature_name = {request['signature_name']!r}",
        *spec,
        *fill,
        f"channel = grpc.{channel}",
        "stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)",
        f"print(stub.{method.capitalize()}(request, 30.0))",
    ]
    return "\n".join(lines)


def _python(value: Any) -> str:
    """Write a Python literal, with rows of zeros shortened."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_python(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        if len(value) > 8 and all(item == 0 and isinstance(item, float) for item in value):
            return f"[0.0] * {len(value)}"
        return "[" + ", ".join(map(_python, value)) + "]"
    return repr(value)


def _dtype(values: Any) -> str:
    while isinstance(values, list):
        values = values[0]
    return "string" if isinstance(values, str) else "float32"
