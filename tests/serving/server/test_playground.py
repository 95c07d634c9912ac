"""The playground's routes as a foreign client sees them; its pages are tested in tests/browser."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from gru_serving.commands.playground import find_models
from gru_serving.errors import InvalidArgument
from gru_serving.server.playground.routes import ASSETS, FILES
from tests import waiting
from tests.ports import free_ports
from tests.serving.servers import running

TOKEN = "0123456789abcdef0123456789abcdef"
DATA = ("server.json", "card.json?model=text&version=1", "golden.json?model=text&version=1")


@pytest.fixture(scope="module")
def base_path(tmp_path_factory, models):
    """A model with a card and golden requests."""
    path = tmp_path_factory.mktemp("playground") / "text"
    shutil.copytree(next(p for p in (models / "text").iterdir() if p.name.isdigit()), path / "1")
    extra = path / "1" / "assets.extra"
    extra.mkdir(exist_ok=True)
    (extra / "model_card.json").write_text('{"task": "<b>text</b>"}')
    (extra / "golden.json").write_text('[{"inputs": {"x": [NaN]}}]')
    return path


@pytest.fixture(scope="module")
def playground(tmp_path_factory, base_path):
    log = tmp_path_factory.mktemp("log") / "server.log"
    flags = (f"--model_base_path={base_path}", "--model_name=text", "--enable_playground")
    with running(log, *flags) as server:
        yield server


@pytest.fixture(scope="module")
def client(playground):
    with httpx.Client(base_url=playground.rest, trust_env=False, timeout=20) as client:
        yield client


def test_no_page_unless_asked_for(server):
    for path in ("/playground", *FILES, *(f"/playground/{name}" for name in DATA)):
        assert httpx.get(server.rest + path, trust_env=False).status_code == 404


def test_files(client):
    assert client.get("/playground").headers["location"] == "/playground/"
    for path, (name, kind) in FILES.items():
        response = client.get(path)
        assert response.content == (ASSETS / name).read_bytes()
        assert response.headers["content-type"] == kind
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"


def test_what_a_version_brings_along(client):
    card = client.get("/playground/card.json", params={"model": "text", "version": 1})
    assert card.json() == {"task": "<b>text</b>"}
    assert card.headers["content-type"] == "application/json"
    golden = client.get("/playground/golden.json", params={"model": "text", "version": 1})
    assert golden.text == '[{"inputs": {"x": [NaN]}}]'
    assert client.get("/playground/server.json").json()["tokens"] is False


def test_a_version_that_brings_nothing(tmp_path, models):
    flags = (f"--model_base_path={models / 'echo'}", "--model_name=echo", "--enable_playground")
    with running(tmp_path / "log", *flags) as server:
        url = f"{server.rest}/playground/card.json?model=echo&version=123"
        assert httpx.get(url, trust_env=False).json() is None


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("model=text&version=2", 404, "Specific(text, 2)"),
        ("model=../text&version=1", 404, "Specific(../text, 1)"),
        ("model=text&version=../1", 400, "version: expected a number"),
        ("model=text&version=%D9%A1", 400, "version: expected a number"),
        ("version=1", 400, "no name"),
        ("", 400, "version: expected a number"),
    ],
)
def test_refusals(client, query, status, words):
    response = client.get(f"/playground/card.json?{query}")
    assert response.status_code == status
    assert words in response.json()["error"]


def test_hosts_and_origins_are_checked(client):
    assert client.get("/playground/", headers={"host": "evil.example"}).status_code == 421
    foreign = {"origin": "https://evil.example"}
    assert client.get("/playground/server.json", headers=foreign).status_code == 403
    assert "access-control-allow-origin" not in client.get("/playground/server.json").headers


def test_only_the_page_itself_is_open_without_a_token(tmp_path, base_path):
    (tmp_path / "tokens").write_text(TOKEN)
    flags = (
        f"--model_base_path={base_path}", "--model_name=text", "--enable_playground",
        f"--auth_token_file={tmp_path / 'tokens'}",
    )  # fmt: skip
    with (
        running(tmp_path / "log", *flags) as server,
        httpx.Client(base_url=server.rest, trust_env=False) as client,
    ):
        for path in FILES:
            assert client.get(path).status_code == 200
        good = {"authorization": f"Bearer {TOKEN}"}
        for path in ("/models", "/playground/nothing", *(f"/playground/{d}" for d in DATA)):
            assert client.get(path).status_code == 401
            status = client.get(path, headers=good).status_code
            assert status == (404 if path.endswith("nothing") else 200)


def test_the_flag_needs_a_rest_port(tmp_path):
    with running(
        tmp_path / "log", "--model_base_path=/none", "--enable_playground", "--rest_api_port=0",
        ready=False,
    ) as server:  # fmt: skip
        assert server.process.wait(60) == 255
    assert "--enable_playground needs --rest_api_port" in server.log.read_text()


def test_models_of_a_folder(tmp_path):
    for name in ("a/1", "a/2", "b/7", "empty", "other/x"):
        (tmp_path / name).mkdir(parents=True)
        if name[-1].isdigit():
            (tmp_path / name / "saved_model.pb").touch()
    assert find_models(tmp_path) == {"a": tmp_path / "a", "b": tmp_path / "b"}
    assert find_models(tmp_path / "b") == find_models(tmp_path / "b/7") == {"b": tmp_path / "b"}
    for folder in (tmp_path / "empty", tmp_path / "other", tmp_path / "nowhere"):
        with pytest.raises(InvalidArgument, match="expected a folder with models"):
            find_models(folder)


def test_assets_are_small():
    """The pages of all three packages together."""
    root = Path(__file__).resolve().parents[3]
    pages = [
        root / "training/gru_training/runs/report.html",
        root / "keras_gru/teaching/trace.html",
    ]
    assert sum(path.stat().st_size for path in [*ASSETS.iterdir(), *pages]) <= 250_000
    version = json.loads((root / "web/package.json").read_text())["devDependencies"]["uplot"]
    for page in (ASSETS / "playground.js", pages[0]):
        text = page.read_text("utf-8")
        assert f"uPlot {version}" in text
        assert "Permission is hereby granted" in text


@pytest.mark.slow
def test_the_command_serves_a_folder(base_path, tmp_path):
    (rest_port,) = free_ports(1)
    command = [sys.executable, "-m", "gru_serving", "playground", str(base_path.parent)]
    flags = ["--no-browser", f"--rest_api_port={rest_port}", "--trial_load=never"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*command, *flags], stdout=log, stderr=log)
    try:
        url = f"http://localhost:{rest_port}"
        waiting.wait_until(lambda: f"{url}/playground/" in (tmp_path / "log").read_text(), 120)
        with httpx.Client(base_url=url, trust_env=False, timeout=20) as client:
            assert client.get("/playground/").status_code == 200
            about = client.get("/playground/server.json").json()
            assert "gru_serve:" in client.get(about["metrics_path"]).text
            names = [model["name"] for model in client.get("/models").json()["models"]]
            assert names == ["text"]
    finally:
        process.terminate()
        assert process.wait(60) == 0
