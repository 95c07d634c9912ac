"""Commands that ask servers which send too much, nothing, or something else."""

import json
import time

import grpc
import pytest

from gru_serving.__main__ import main
from gru_serving.config.files import read_model_config
from gru_serving.conformance.models import save_affine
from gru_serving.protos.get_model_metadata_pb2 import GetModelMetadataResponse
from gru_serving.protos.get_model_status_pb2 import GetModelStatusResponse
from gru_serving.protos.model_management_pb2 import ReloadConfigResponse
from tests.serving.commands.lying_server import EVIL, GOLDEN, RAW, Liar, metadata
from tests.serving.endless_answers import NEVER, STRANGE, TOO_LARGE
from tests.serving.strange_servers import bare, bytes_over_grpc, rpc, web

CONFIG = """
model_config_list {{
  config {{
    name: "m" base_path: "{base}" model_platform: "tensorflow"
    model_version_policy {{ specific {{ versions: 1 }} }}
    version_labels {{ key: "stable" value: 1 }}
  }}
}}
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    base = tmp_path_factory.mktemp("m")
    for version in (1, 2):
        save_affine(base / str(version))
    (base / "1" / "assets.extra").mkdir(exist_ok=True)
    (base / "1" / "assets.extra" / "golden.json").write_text(json.dumps(GOLDEN))
    return base


@pytest.fixture
def config(base, tmp_path):
    path = tmp_path / "models.config"
    path.write_text(CONFIG.format(base=base))
    return path


ROLLOUT = "--config CONFIG --model m --wait 1"
ASKING = {
    "predict": "predict --model m text",
    "explain": "explain --model m text",
    "stream": "stream --model m text",
    "complete": "complete --model m text",
    "verify": "verify BASE/1",
    "promote": f"promote {ROLLOUT}",
    "label": f"label {ROLLOUT} canary=2",
}


STEPS = (
    "waiting for the server",
    "putting the configuration back",
    "requests without label or version will go to version 2",
)
NO_ANSWER = {name: 1 if name == "predict" else 3 for name in ASKING}  # as their help says


@pytest.fixture
def ask(base, config, capsys):
    """Status, error and seconds: the error is one line beside the steps, without escapes."""

    def run(name, url, *more):
        words = ASKING[name].replace("BASE", str(base)).replace("CONFIG", str(config)).split()
        started = time.monotonic()
        status = main([words[0], "--url", url, *more, *words[1:]])
        took = time.monotonic() - started
        printed, complained = capsys.readouterr()
        assert not RAW.search(printed + complained), repr(complained)
        assert "Traceback" not in complained
        steps = [line for line in complained.splitlines() if any(step in line for step in STEPS)]
        assert printed == ""
        assert len(complained.splitlines()) - len(steps) == 1, complained
        return status, complained, took

    return run


# Of each kind one: the others are the client's, which all commands ask with.
@pytest.mark.parametrize("kind", ["headers byte by byte", "silence", "deep JSON", "gzip"])
@pytest.mark.parametrize("name", ASKING)
def test_over_rest(ask, config, name, kind):
    send = {**NEVER, **{key: send for key, (send, _) in STRANGE.items()}, **TOO_LARGE}[kind]
    before = read_model_config(str(config))
    limits = ("--timeout", "0.8", "--max_answer_bytes", str(1 << 20))
    with bare(send) as url:
        status, complained, took = ask(name, url, *limits)
    assert status == NO_ANSWER[name], complained
    assert took < 20
    assert read_model_config(str(config)) == before
    if name in ("promote", "label"):
        assert not config.with_name("models.config.history.jsonl").read_bytes()


HUGE = "9" * 5000
LIES = {
    "an error with escapes": {"error": EVIL},
    "a number": 7,
    "versions of any type": {"model_version_status": [{"version": [], "state": {}, "status": 1}]},
    "a huge version": {
        "model_version_status": [
            {"version": HUGE, "state": "AVAILABLE", "status": {"error_code": 0, "error_message": 0}}
        ],
        "model_spec": {"version": HUGE},
    },
    "signatures of any type": {**metadata(), "metadata": {"signature_def": [1]}},
}


@pytest.mark.parametrize("kind", LIES)
@pytest.mark.parametrize("name", ASKING)
def test_lies_over_rest(ask, name, kind):
    liar = Liar(**dict.fromkeys(("metadata", "m", "predict", "classify"), LIES[kind]))
    with web(200, liar, "application/json") as (_, url):
        status, complained, took = ask(name, url, "--timeout", "5")
    assert status == NO_ANSWER[name], complained
    assert took < 20


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", ASKING)
def test_a_server_that_is_down(ask, config, name):
    before = read_model_config(str(config))
    for url in ("http://localhost:1", "grpc://localhost:1"):
        status, complained, _ = ask(name, url, "--timeout", "0.8")
        assert status == NO_ANSWER[name], complained
        assert "no server answers at" in complained
    assert read_model_config(str(config)) == before


CODES = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
@pytest.mark.parametrize("name", ASKING)
def test_refusals_over_grpc(ask, name, code):
    with rpc(code, EVIL) as (_, url):
        status, complained, _ = ask(name, url, "--timeout", "5")
    assert status == NO_ANSWER[name], complained


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", ["promote", "label"])
def test_silence_over_grpc(ask, config, name):
    """The server accepts every call and answers none."""
    before = read_model_config(str(config))
    with rpc(grpc.StatusCode.OK, seconds=30) as (_, url):
        status, complained, took = ask(name, url, "--timeout", "1")
    assert status == 3, complained
    assert took < 20
    assert read_model_config(str(config)) == before


def states(version, state, message=""):
    response = GetModelStatusResponse()
    response.model_version_status.add(version=version, state=state).status.error_message = message
    return response.SerializeToString()


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("answers", "wanted"),
    [
        ({"HandleReloadConfigRequest": b"\xff"}, 3),
        ({"GetModelStatus": b"\xff\xff"}, 3),
        ({"GetModelStatus": states(2, 77)}, 3),
        ({"GetModelStatus": states(-1, 30)}, 1),
        ({"GetModelStatus": states(2, 30), "GetModelMetadata": b"\xff"}, 1),
        ({"GetModelStatus": b"\x0a\x00" * 1_000_000}, 1),
    ],
)
def test_lies_of_a_rollout_over_grpc(ask, config, answers, wanted):
    before = read_model_config(str(config))
    good = {
        "HandleReloadConfigRequest": ReloadConfigResponse().SerializeToString(),
        "GetModelStatus": states(2, 30),
        "GetModelMetadata": GetModelMetadataResponse().SerializeToString(),
    }
    with bytes_over_grpc({**good, **answers}) as url:
        status, complained, took = ask("promote", url)
    assert status == wanted, complained
    assert took < 60
    assert read_model_config(str(config)) == before
    assert not config.with_name("models.config.history.jsonl").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"signature_name": ["a"]},
        {"signature_name": None},
        {"outputs": {"label": None}},
        {"outputs": {"label": {}}},
        {"outputs": {"scores": [[1], [1, 2]]}},
        {"outputs": {"scores": [10**400]}},
        {"outputs": {"label": ["\ud800"]}},
        {"inputs": {"text": None}},
        {"inputs": {"text": 5}},
    ],
)
def test_golden_requests_of_any_type(base, tmp_path, capsys, change):
    version = tmp_path / "m" / "1"
    save_affine(version)
    (version / "assets.extra").mkdir(exist_ok=True)
    golden = [{**GOLDEN[0], **change}]
    (version / "assets.extra" / "golden.json").write_text(json.dumps(golden))
    for command in (["verify", version], ["diff", version, base / "1"],
                    ["example-request", version]):  # fmt: skip
        status = main([str(word) for word in command])
        printed, complained = capsys.readouterr()
        assert (status, printed, complained.count("\n")) == (2, "", 1), command
        assert "golden.json: request 0" in complained
    assert main(["inspect", str(version)]) in (0, 1)
