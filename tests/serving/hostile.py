"""Requests that nobody should send: seeded, so that a failing one can be made again by its number.

Every function takes a `random.Random` and returns bytes or a message of tensorflow-serving-api.
"""

import gzip
import json
import os
import struct

from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    predict_pb2,
    regression_pb2,
)

FULL = os.environ.get("KERAS_GRU_ROBUSTNESS") == "full"


def inputs(quick, full):
    """How many inputs to try: a few in the ordinary test run, many in `make robustness`."""
    return full if FULL else quick


MODELS = ("text", "affine", "echo", "half/plus:two", "nix", "", "\u2603", "a" * 3000)
SIGNATURES = (
    "", "serving_default", "classify", "regress", "total", "float64", "int8", "string", "bool",
    "complex64", "uint64", "__saved_model_init_op", "nix", "\0",
)  # fmt: skip
ALIASES = ("x", "b", "text", "inputs", "steps", "", "\u2603")
SIZES = (0, 0, 1, 1, 2, 3, 3, 5, -1, -(2**63), 2**31, 2**40, 2**62, 2**63 - 1)
SCALARS = (
    "0", "-0", "1", "-1", "2.5", "1e5", "1E-400", "1e308", "1e999", "-1e999", "1" * 400,
    "0." + "3" * 5000, str(2**31), str(2**63), str(2**64), str(-(2**63) - 1), "NaN", "-NaN", "Inf",
    "-Infinity", "true", "false", "null", '""', '"good"', '"\\ud800"', '"\\udc00\\ud800"',
    '"\\u0000"', '"\xff"', '{"b64": "Z29vZA"}', '{"b64": "Z29vZA==="}', '{"b64": 1}',
    '{"b64": "\u2603"}', "[]", "{}", "[[]]", "[[], [1]]", "01", "+1", ".5", "1.", "1e", "--1",
    "tru", "'a'", "\x00",
)  # fmt: skip
KEYS = (
    "instances", "inputs", "signature_name", "examples", "context", "b64", "x", "b", "text",
    "instances", "inputs", "", "\u2603",
)  # fmt: skip


def value(rng, depth=0):
    """The JSON text of a value, often a wrong one."""
    kind = rng.random()
    if depth > 5 or kind < 0.5:
        return rng.choice(SCALARS)
    items = [value(rng, depth + 1) for _ in range(rng.choice((0, 1, 1, 2, 3, 7)))]
    if kind < 0.6 and items:
        items = items[:1] * rng.choice((1, 2, 50))
    if kind < 0.8:
        return "[" + ",".join(items) + "]"
    return "{" + ",".join(f"{json.dumps(rng.choice(KEYS))}:{item}" for item in items) + "}"


GOOD_BODIES = (
    b'{"instances": ["good", "bad film"]}',
    b'{"inputs": {"x": [[1, 2, 3]], "b": [[0.5]]}}',
    b'{"instances": [1.0, 2.0, 5.0]}',
    b'{"signature_name": "classify", "examples": [{"text": "good"}]}',
    b'{"signature_name": "int8", "inputs": [1, -128, 127]}',
)


def body(rng):
    """A REST body: well-formed, nearly so, or noise."""
    kind = rng.random()
    if kind > 0.75:
        good = rng.choice(GOOD_BODIES)
        return mutated(rng, good) if rng.random() < 0.6 else good
    if kind < 0.05:
        return rng.randbytes(rng.choice((0, 1, 10, 1000)))
    if kind < 0.1:
        deep = rng.choice((10, 100, 1000, 1000, 20_000))
        opening = rng.choice(("[", '{"x":', '{"instances":[', "[[1],"))
        return (rng.choice(('{"instances":', '{"x":', "")) + opening * deep).encode()
    pairs = [f'"{rng.choice(KEYS[:5])}":{value(rng)}' for _ in range(rng.choice((1, 1, 2, 3)))]
    if rng.random() < 0.3:
        pairs.append(f'"signature_name":{json.dumps(rng.choice(SIGNATURES))}')
    text = "{" + ",".join(pairs) + "}"
    raw = (
        text.encode("latin-1")
        if text.isascii() or (rng.random() < 0.1 and _latin(text))
        else (text.encode())
    )
    return mutated(rng, raw) if rng.random() < 0.3 else raw


def _latin(text):
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


def mutated(rng, raw):
    """The bytes with a few of them changed, dropped, doubled or moved."""
    out = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(out) + 1)
        kind = rng.random()
        if kind < 0.3 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind < 0.5:
            out[at:at] = rng.randbytes(rng.choice((1, 1, 4, 100)))
        elif kind < 0.7:
            del out[at : at + rng.choice((1, 1, 4, 100))]
        elif kind < 0.85:
            del out[at:]
        else:
            out[at:at] = out[max(0, at - 20) : at + 20]
    return bytes(out)


FIELDS = (
    "float_val", "double_val", "int_val", "int64_val", "bool_val", "half_val", "string_val",
    "uint32_val", "uint64_val", "scomplex_val", "dcomplex_val",
)  # fmt: skip


def tensor(rng, proto):
    """Fill a TensorProto whose type, shape and values seldom agree."""
    proto.dtype = rng.choice((1, 1, 1, 7, 7, *range(31), 101, 2**31 - 1))
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 70, 300))):
        proto.tensor_shape.dim.add(size=rng.choice(SIZES))
    proto.tensor_shape.unknown_rank = rng.random() < 0.05
    if rng.random() < 0.4:
        proto.tensor_content = rng.choice(
            (
                b"\x80" * 300,
                b"\xff" * 12,
                struct.pack("<3f", 1, 2, 3),
                rng.randbytes(rng.randrange(40)),
                b"\x04good",
            )
        )
    for field in rng.sample(FIELDS, rng.choice((0, 1, 1, 2))):
        listed = getattr(proto, field)
        count = rng.choice((0, 1, 1, 3, 3, 100))
        if field == "string_val":
            listed.extend(rng.randbytes(rng.randrange(9)) for _ in range(count))
        elif field == "bool_val":
            listed.extend(rng.random() < 0.5 for _ in range(count))
        elif field in ("float_val", "double_val", "scomplex_val", "dcomplex_val"):
            listed.extend(rng.choice((0.5, float("nan"), float("inf"))) for _ in range(count))
        else:
            signed = field in ("int_val", "int64_val", "half_val")
            wide = 63 if "64" in field else 31
            listed.extend(rng.randrange(-signed << wide, 1 << wide) for _ in range(count))
    return proto


def spec(rng, message):
    """Set the name of a model, a signature and a version, seldom ones that exist."""
    message.name = rng.choice(MODELS)
    message.signature_name = rng.choice(SIGNATURES)
    kind = rng.random()
    if kind < 0.1:
        message.version.value = rng.choice((1, 3, -1, 2**63 - 1))
    elif kind < 0.2:
        message.version_label = rng.choice(("stable", "nix", "\u2603"))


def examples(rng, message):
    """Fill an Input."""
    listed = message.example_list.examples
    if rng.random() < 0.3:
        listed = message.example_list_with_context.examples
        message.example_list_with_context.context.features.feature["text"].Clear()
    for _ in range(rng.choice((0, 1, 1, 3))):
        feature = listed.add().features.feature[rng.choice(("text", "x", "nix"))]
        kind = rng.choice(("bytes_list", "float_list", "int64_list", None))
        if kind:
            one = {"bytes_list": b"\xff", "float_list": float("nan"), "int64_list": -1}[kind]
            getattr(feature, kind).value.extend([one] * rng.choice((0, 1, 2)))


def predict(rng):
    """A PredictRequest."""
    message = predict_pb2.PredictRequest()
    if rng.random() < 0.25:
        message.model_spec.name = "half/plus:two"
        good = message.inputs["x"]
        good.dtype = 1
        good.tensor_shape.dim.add(size=rng.choice((1, 2, 3, 1000)))
        good.float_val.append(2.0)
        return message
    if rng.random() < 0.95:
        spec(rng, message.model_spec)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        tensor(rng, message.inputs[rng.choice(ALIASES)])
    message.output_filter.extend(rng.choices(("y", "x", "", "total"), k=rng.choice((0, 0, 1, 3))))
    return message


def call(rng):
    """(method, serialized request) of any method that changes nothing."""
    kind = rng.choice(("Predict",) * 4 + ("Classify", "Regress", "MultiInference", "Metadata",
                                          "Status"))  # fmt: skip
    if kind == "Predict":
        method, message = "PredictionService/Predict", predict(rng)
    elif kind in ("Classify", "Regress"):
        method = f"PredictionService/{kind}"
        module = classification_pb2 if kind == "Classify" else regression_pb2
        message = getattr(
            module, f"{'Classification' if kind == 'Classify' else 'Regression'}Request"
        )()
        spec(rng, message.model_spec)
        examples(rng, message.input)
    elif kind == "MultiInference":
        method, message = "PredictionService/MultiInference", inference_pb2.MultiInferenceRequest()
        for _ in range(rng.choice((0, 1, 2))):
            task = message.tasks.add(
                method_name=rng.choice(
                    ("tensorflow/serving/classify", "tensorflow/serving/regress", "")
                )
            )
            spec(rng, task.model_spec)
        examples(rng, message.input)
    elif kind == "Metadata":
        method = "PredictionService/GetModelMetadata"
        message = get_model_metadata_pb2.GetModelMetadataRequest(
            metadata_field=rng.choices(("signature_def", "", "x"), k=rng.choice((0, 1, 2)))
        )
        spec(rng, message.model_spec)
    else:
        method, message = (
            "ModelService/GetModelStatus",
            get_model_status_pb2.GetModelStatusRequest(),
        )
        spec(rng, message.model_spec)
    raw = message.SerializeToString(deterministic=True)
    if rng.random() < 0.25:
        raw = mutated(rng, raw) if rng.random() < 0.9 else rng.randbytes(rng.randrange(200))
    return f"/tensorflow.serving.{method}", raw


TARGETS = (
    "/v1/models", "/v1/models/", "/v1/models/text", "/v1/models/affine/versions/1",
    "/v1/models/affine/versions/99999999999999999999",
    "/v1/models/affine/versions/" + "9" * 6000, "/v1/models/affine/labels/stable",
    "/v1/models/text/metadata", "/v1/models/text:predict", "/v1/models/echo:predict",
    "/v1/models/affine:predict", "/v1/models/text:classify", "/v1/models/text:regress",
    "/v1/models/half%2Fplus%3Atwo:predict", "/v1/models/nix:predict", "/v1/models/%ff%fe:predict",
    "/v1/models/%00", "/v1/models/%", "/v1/models/text:explain", "/v1/", "/", "/readyz", "/healthz",
    "/v1/models/text?x=1", "/monitoring/prometheus/metrics", "*", "http://other/v1/models/text",
    "//", "/../../etc/passwd", "/v1/models/text#f", "/v1/models/" + "a" * 60_000, "",
)  # fmt: skip


def target(rng):
    """A request target."""
    chosen = rng.choice(TARGETS).encode()
    return mutated(rng, chosen) if rng.random() < 0.2 else chosen


def http_request(rng):
    """All bytes of an HTTP/1.1 request that asks for the connection to be closed."""
    content = body(rng)
    method = rng.choice(
        (b"POST",) * 6 + (b"GET",) * 3 + (b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"PATCH",
                                         b"TRACE", b"CONNECT", b"BREW", b"")
    )  # fmt: skip
    headers = [b"Host: localhost", b"Connection: close"]
    kind = rng.random()
    if kind < 0.1:
        content = gzip.compress(content)
        headers.append(b"Content-Encoding: gzip")
        content = mutated(rng, content) if rng.random() < 0.5 else content
    elif kind < 0.15:
        headers.append(b"Content-Encoding: " + rng.choice((b"gzip", b"br", b"x", b"gzip, gzip")))
    if rng.random() < 0.2:
        headers.append(
            rng.choice(
                (
                    b"Content-Type: text/plain; charset=\xff",
                    b"Expect: 100-continue",
                    b"Upgrade: websocket",
                    b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
                    b"Transfer-Encoding: gzip",
                    b"Content-Length: -1",
                    b"Content-Length: 9999999999999999999999",
                    b"Content-Length: 3\r\nContent-Length: 5",
                    b"X: " + b"y" * 70_000,
                    b"\r\n".join(b"X%d: y" % i for i in range(500)),
                    b": no name",
                    b"no colon",
                    b"X\x00: y",
                    b" folded",
                    b"Accept: */*\r\n\tfolded",
                    b"Origin: http://x",
                )
            )
        )
    if rng.random() < 0.15:
        headers.append(b"Transfer-Encoding: chunked")
        sizes = rng.choice((b"%x", b"%x;ext=1", b"0%x", b"-%x", b"zz%x"))
        content = sizes % len(content) + b"\r\n" + content + b"\r\n0\r\n\r\n"
    elif content or method == b"POST":
        headers.append(b"Content-Length: %d" % len(content))
    version = rng.choice((b"HTTP/1.1",) * 8 + (b"HTTP/1.0", b"HTTP/9.9", b""))
    raw = method + b" " + target(rng) + b" " + version + b"\r\n"
    raw += b"\r\n".join(headers) + b"\r\n\r\n" + content
    return mutated(rng, raw) if rng.random() < 0.1 else raw
