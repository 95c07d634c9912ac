"""Servers that are wrong in one way each: the kit finds every one, and names what is wrong."""

import json
import time

import pytest

from gru_serving.conformance import kit
from gru_serving.conformance.differences import parsed
from gru_serving.conformance.server import Server
from gru_serving.protos.predict_pb2 import PredictResponse
from tests.serving.strange_servers import bare, bytes_over_grpc, rpc, web

ALL = {case.name: case for case in kit.all_cases()}
JSON = "application/json"
ROWS = "row and column format: " + '{"instances": [2.0, 3.0, 4.0]}' + " (rest)"
REFUSED, PREDICT = "unknown model (rest)", "a shape is not compared with the signature (grpc)"
RIGHT = b'{"predictions": [3.0, 3.5, 4.0]}'


def verdict(case, rest=None, grpc=None, timeout=5.0):
    """(verdict, reason) of one case, and the seconds that it took."""
    with Server(grpc, rest, timeout=timeout) as server:
        (outcome,) = kit.ask(server, [ALL[case]], {})
    return outcome.verdict, outcome.reason


@pytest.mark.parametrize(
    ("case", "status", "body", "kind", "reason"),
    [
        (ROWS, 200, RIGHT, JSON, ""),
        (ROWS, 200, b'{"predictions": [3.0000001, 3.5, 4.0]}', JSON, ""),
        (ROWS, 201, RIGHT, JSON, "status: expected 200; got 201"),
        (ROWS, 200, RIGHT, "text/json",
         "header content-type: expected application/json; got text/json"),
        (ROWS, 200, b'{"predictions": [3.0, 3.5]}', JSON, "predictions: expected 3 entries; got 2"),
        (ROWS, 200, b'{"predictions": [3.0, 3.6, 4.0]}', JSON,
         "predictions[1]: expected 3.5; got 3.6"),
        (ROWS, 200, b'{"predictions": [3, 3.5, 4.0]}', JSON, "predictions[0]: expected 3.0; got 3"),
        (ROWS, 200, b'{"predictions": ["3.0", 3.5, 4.0]}', JSON,
         "predictions[0]: expected 3.0; got '3.0'"),
        (ROWS, 200, b'{"outputs": [3.0, 3.5, 4.0]}', JSON,
         "answer: the field 'predictions' is missing"),
        (ROWS, 200, RIGHT[:-1] + b', "id": 1}', JSON, "answer: the field 'id' is not TF Serving's"),
        (ROWS, 200, b"<p>hello", JSON, "body: expected JSON; got '<p>hello'"),
        (ROWS, 200, b"[" * 100_000, JSON, "body: expected JSON; got '[[[[..."),
        (REFUSED, 404, b'{"error": "Servable not found for request: Latest(nix)"}', JSON, ""),
        (REFUSED, 400, b'{"error": "Servable not found for request: Latest(nix)"}', JSON,
         "status: expected 404; got 400"),
        (REFUSED, 404, b'{"error": "no model nix"}', JSON,
         "text: expected 'Servable not found for request: Latest(nix)'; got 'no model nix'"),
        (REFUSED, 404, b'{"error": {"code": 5}}', JSON,
         "text: expected 'Servable not found for request: Latest(nix)'; got {\"code\": 5}"),
    ],
)  # fmt: skip
def test_over_rest(case, status, body, kind, reason):
    with web(status, body, kind) as (_, url):
        verdict_of, said = verdict(case, url)
    assert verdict_of == (kit.DEVIATES if reason else kit.SAME)
    assert said == reason or (reason.endswith("...") and said.startswith(reason[:-3]))


@pytest.mark.parametrize(
    ("status", "body"), [(404, b'{"detail":"Not Found"}'), (405, b"<h1>no</h1>"), (501, b"")]
)
def test_a_method_that_is_not_there_is_not_offered(status, body):
    with web(status, body, JSON) as (_, url):
        assert verdict(ROWS, url) == (kit.NOT_OFFERED, "the server has no such method")
    with rpc() as (_, url):
        assert verdict(PREDICT, grpc=url) == (kit.NOT_OFFERED, "the server has no such method")


def test_slow_servers():
    begun = time.monotonic()
    with web(200, RIGHT, JSON, seconds=3) as (site, url):
        site.handle_error = lambda *_: None  # the kit has left when the answer comes
        assert verdict(ROWS, url, timeout=0.3) == (kit.DEVIATES, "no answer within 0.3 s")
        assert time.monotonic() - begun < 3
    with bytes_over_grpc(b"", seconds=3) as url:
        assert verdict(PREDICT, grpc=url, timeout=0.3)[1].startswith(
            "code: expected OK; got DEADLINE"
        )


@pytest.mark.parametrize(
    ("length", "reason"),
    [
        (len(RIGHT) + 9, "the body ended after 32 of 41 bytes"),
        (len(RIGHT) - 9, 'body: expected JSON; got \'{"predictions": [3.0, 3'),
    ],
)
def test_lengths_that_are_lies(length, reason):
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nContent-Length: {length}\r\n\r\n"

    def answer(line):
        line.sendall(head.encode() + RIGHT)

    with bare(answer) as url:
        verdict_of, said = verdict(ROWS, url)
    assert verdict_of == kit.DEVIATES
    assert said.startswith(reason)


def test_a_connection_that_is_closed():
    with bare(lambda _: None) as url:
        assert verdict(ROWS, url)[1].startswith("no answer: Remote end closed connection")


def response(
    tensor, spec='name: "half_plus_two" signature_name: "serving_default" version { value: 1 }'
):
    text = f'model_spec {{ {spec} }} outputs {{ key: "y" value {{ {tensor} }} }}'
    return parsed(text, PredictResponse).SerializeToString()


ONE_TWO = "tensor_shape { dim { size: 1 } dim { size: 2 } }"
TWO = "tensor_shape { dim { size: 2 } }"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (response(f"dtype: DT_FLOAT {TWO} float_val: [2.5, 3]"), ""),
        (response(f"dtype: DT_DOUBLE {TWO} double_val: [2.5, 3]"),
         "outputs.y: the field 'float_val' is missing"),
        (response(f"dtype: DT_DOUBLE {TWO} float_val: [2.5, 3]"),
         "outputs.y.dtype: expected 'DT_FLOAT'; got 'DT_DOUBLE'"),
        (response(f"dtype: DT_FLOAT {TWO} tensor_content: 'abcdefgh'"),
         "outputs.y: the field 'float_val' is missing"),
        (response(f"dtype: DT_FLOAT {TWO} float_val: [2.5, 4]"),
         "outputs.y.float_val[1]: expected 3.0; got 4.0"),
        (response(f"dtype: DT_FLOAT {ONE_TWO} float_val: [2.5, 3]"),
         "outputs.y.tensor_shape.dim: expected 1 entries; got 2"),
        (response(f"dtype: DT_FLOAT {TWO} float_val: [2.5, 3]", 'name: "half_plus_two"'),
         "model_spec: the field 'signature_name' is missing"),
        (b"", "answer: the field 'model_spec' is missing"),
        (b"\xff\xff", "message: got 2 bytes that are no PredictResponse"),
    ],
)  # fmt: skip
def test_over_grpc(answer, reason):
    with bytes_over_grpc(answer) as url:
        assert verdict(PREDICT, grpc=url) == (kit.DEVIATES if reason else kit.SAME, reason)


def test_codes_and_texts_over_grpc():
    import grpc

    case = "unknown model (grpc)"
    text = "Servable not found for request: Latest(nix)"
    for code, said, reason in (
        (grpc.StatusCode.NOT_FOUND, text, ""),
        (grpc.StatusCode.INTERNAL, text, f"code: expected NOT_FOUND; got INTERNAL: '{text}'"),
        (grpc.StatusCode.NOT_FOUND, "nix?", f"text: expected '{text}'; got 'nix?'"),
    ):
        with rpc(code, said) as (_, url):
            assert verdict(case, grpc=url) == (kit.DEVIATES if reason else kit.SAME, reason)


def test_a_documented_deviation_keeps_its_reason(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[deviations]\n"row and column format: ... (rest)" = "we count from four"\n')
    with web(200, b'{"predictions": [4.0]}', JSON) as (_, url), Server(None, url) as server:
        (outcome,) = kit.ask(server, [ALL[ROWS]], kit.read_deviations(file))
    assert outcome.verdict == kit.DOCUMENTED
    assert outcome.reason == "we count from four (predictions: expected 3 entries; got 1)"
    file.write_text("[other]\n")
    with pytest.raises(ValueError, match=r"expected a table \[deviations\]"):
        kit.read_deviations(file)


def test_answers_of_two_servers_are_compared_by_their_files():
    """What is equal gives equal bytes, whatever the address and the order."""
    made = []
    for _ in range(2):
        with web(200, RIGHT, JSON) as (_, url), Server(None, url) as server:
            made.append(json.dumps(kit.as_record(kit.ask(server, [ALL[ROWS], ALL[REFUSED]], {}))))
    assert made[0] == made[1]
    assert json.loads(made[0])["verdicts"][kit.DEVIATES] == 1
