"""What the client promises over both transports; the server's own rules are the kit's cases."""

import time

import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.errors import DeadlineExceeded, InvalidArgument, Unavailable
from tests.ports import free_ports


@pytest.fixture(scope="module", params=["rest", "grpc"])
def client(request, server):
    with connect(getattr(server, request.param), timeout=20) as client:
        yield client


def test_text_model(client):
    outputs = client.predict(["good great film", "bad", "unknown words"], "text")
    assert outputs.keys() == {"label", "probability", "scores"}
    assert outputs["label"].tolist() == [b"positive", b"negative", b"negative"]
    odds = np.exp([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    expected = odds / odds.sum(1, keepdims=True)
    assert outputs["scores"].dtype == np.float32
    np.testing.assert_allclose(outputs["scores"], expected, rtol=1e-6)
    np.testing.assert_allclose(outputs["probability"], expected.max(1), rtol=1e-6)


def test_two_inputs(client):
    x = np.random.default_rng(0).normal(size=(5, 3))
    b = np.arange(5.0)[:, None]
    outputs = client.predict({"x": x, "b": b}, "affine", version=1)
    kernel = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_allclose(outputs["y"], x @ kernel + b, rtol=1e-5)
    np.testing.assert_array_equal(outputs["doubled"], 2 * x.astype(np.float32))


@pytest.mark.parametrize(
    ("which", "factor"),
    [({}, 10), ({"version": 1}, 1), ({"label": "stable"}, 1), ({"label": "canary"}, 10)],
)
def test_versions_and_labels(client, which, factor):
    inputs = {"x": [[1, 0, 0]], "b": [[0.5]]}
    outputs = client.predict(inputs, "affine", **which)
    np.testing.assert_array_equal(outputs["y"], [[factor + 0.5, 2 * factor + 0.5]])


def test_output_filter(client):
    inputs = {"x": np.ones((2, 3)), "b": np.zeros((2, 1))}
    outputs = client.predict(inputs, "affine", output_filter=["y"])
    assert list(outputs) == ["y"]


def test_scalar_output_and_other_signature(client):
    outputs = client.predict(np.ones((4, 3)), "affine", signature="total")
    assert outputs["total"].shape == ()
    assert outputs["total"] == 12


EXTREMES = {
    "float64": [0.1, -1e300, 5e-324, np.inf, -np.inf, np.nan, 0.0],
    "int8": [-128, 127],
    "int16": [-32768, 32767],
    "int32": [-(2**31), 2**31 - 1],
    "int64": [-(2**63), 2**63 - 1],
    "uint8": [0, 255],
    "uint32": [0, 2**32 - 1],
    "uint64": [0, 2**64 - 1],
    "bool": [True, False],
}


@pytest.mark.parametrize("version", ["1", 1.0])
def test_a_version_that_is_no_integer_is_refused_by_name(client, version):
    with pytest.raises(ValueError, match=f"version must be .* an integer; got {version!r}"):
        client.predict({"x": [[1, 2, 3]], "b": [[0]]}, "affine", version=version)


def test_a_version_may_be_numpys_integer(client):
    assert client.status("affine", version=np.int64(1))[0].version == 1


def test_a_batch_without_rows_is_no_request_over_rest(client):
    """In JSON it is `[]`, which has one dimension."""
    inputs = {"x": np.zeros((0, 3)), "b": np.zeros((0, 1))}
    if client.url.startswith("grpc"):
        assert client.predict(inputs, "affine", version=1)["y"].shape == (0, 2)
        return
    with pytest.raises(InvalidArgument, match=r"input x: JSON has no form for .*\[0, 3\].*gRPC"):
        client.predict(inputs, "affine", version=1)


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("shape", [(-1,), (1, -1, 1), "scalar", "empty"])
def test_every_json_type_survives(client, name, shape):
    values = np.array(EXTREMES[name], name)
    if shape == "empty":
        values = values[:0]
    else:
        values = values[0] if shape == "scalar" else values.reshape(shape)
    got = client.predict({"x": values}, "echo", signature=name)["x"]
    assert got.dtype == np.dtype(name)
    np.testing.assert_array_equal(got, values)


@pytest.mark.parametrize(
    "texts",
    [
        ["", "naïve ☃ 😀", 'quote " \\ / \n\t\x01'],
        [["a", "b"], ["c", "d"]],
    ],
)
def test_strings_survive(client, texts):
    got = client.predict({"x": texts}, "echo", signature="string")["x"]
    expected = [
        t if isinstance(t, bytes) else t.encode() for t in np.ravel(np.array(texts, object))
    ]
    assert got.ravel().tolist() == expected
    assert got.shape == np.array(texts, object).shape


def test_metadata(client):
    metadata = client.metadata("affine")
    assert metadata.version == 3
    assert metadata.model == "affine"
    assert {"serving_default", "total", "spin"} <= metadata.signatures.keys()
    signature = metadata.signatures["serving_default"]
    assert {name: (info.dtype, info.shape) for name, info in signature.inputs.items()} == {
        "b": (1, (-1, 1)),
        "x": (1, (-1, 3)),
    }
    assert signature.outputs["y"].shape == (-1, 2)
    assert signature.method_name == "tensorflow/serving/predict"


def test_status(client):
    states = client.status("affine")
    assert [(s.version, s.state, s.error_code) for s in states] == [
        (3, "AVAILABLE", "OK"),
        (1, "AVAILABLE", "OK"),
    ]
    assert [s.version for s in client.status("affine", version=1)] == [1]


def test_deadline(client):
    client.metadata("affine")
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        client.predict(np.int64(10**12), "affine", signature="spin", timeout=0.5)
    assert time.monotonic() - started < 60


def test_large_request_and_answer(client):
    x = np.random.default_rng(1).normal(size=(20000, 3)).astype(np.float32)
    outputs = client.predict({"x": x, "b": np.zeros((20000, 1))}, "affine")
    np.testing.assert_array_equal(outputs["doubled"], 2 * x)


@pytest.mark.parametrize("scheme", ["http://", "grpc://"])
def test_server_down(scheme):
    (port,) = free_ports(1)
    with connect(f"{scheme}localhost:{port}", retries=1, timeout=60) as client:
        started = time.monotonic()
        flag = "rest_api_port" if scheme == "http://" else "port"
        with pytest.raises(
            Unavailable,
            match=f"no server answers at {scheme}localhost:{port} .*"
            f"gru-serve serve .*--{flag}={port}",
        ):
            client.status("m")
        assert 0.05 < time.monotonic() - started < 30


def test_many_threads_share_a_client(client):
    from concurrent.futures import ThreadPoolExecutor

    def ask(i):
        inputs = {"x": [[i, 0, 0]], "b": [[0]]}
        return client.predict(inputs, "affine", version=1)["y"][0, 0] == i

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(100)))
