"""REST bodies, request targets and whole HTTP requests as nobody should send them, as bytes."""

import gzip
import json

from tests.serving.hostile import SIGNATURES, mutated

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
