"""The path of a request in ARCHITECTURE.md, beside the files that a request really crosses."""

import asyncio
import json
import re
import sys
import threading
import urllib.request

from gru_serving.config.files import single_model
from gru_serving.config.flags import Flags
from gru_serving.engine.predictor import CountedSession, Predictor
from gru_serving.engine.runtime import open_graph_session
from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.inference.service import Inference
from gru_serving.repository.repository import Repository
from gru_serving.server.additions import Additions
from gru_serving.server.byte_budget import ByteBudget
from gru_serving.server.rest.listener import RestListener
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.refusals import Refusals
from tests.packages import ROOT

FILE = re.compile(r"`(serving/[\w/]+\.py)`")
ELSEWHERE = {"serving/gru_serving/engine/batching/session.py"}  # where requests are merged


def crossed(repository):
    """The files of the package whose functions a warm predict over REST enters."""
    seen = set()

    def see(frame, event, _):
        if event == "call" and "<" not in frame.f_code.co_filename:
            seen.add(frame.f_code.co_filename)

    def ask(port):
        body = json.dumps({"instances": [{"x": [1, 0, 0], "b": [0.5]}]}).encode()
        url = f"http://127.0.0.1:{port}/v1/models/m:predict"
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as answer:
            return json.load(answer)

    async def serve():
        metrics, refusals = Metrics(), Refusals()
        flags = Flags(rest_api_port=0, bind_address="127.0.0.1")
        listener = RestListener(flags)
        port = listener._socket.getsockname()[1]
        # Threads take up a profile only where they begin.
        threading.setprofile(lambda *event: see(*event) if watching else None)
        with WorkerThreads(1, "test") as threads:
            await listener.start(
                Inference(repository, threads, metrics=metrics),
                metrics,
                "",
                ByteBudget(),
                Additions(flags, repository, None, refusals),
            )
            await asyncio.to_thread(ask, port)
            watching.append(True)
            sys.setprofile(see)
            answer = await asyncio.to_thread(ask, port)
            sys.setprofile(None)
            watching.clear()
            await listener.stop(5)
        listener.close()
        return answer

    watching = []
    try:
        answer = asyncio.run(serve())
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert answer["predictions"][0]["y"] == [1.5, 2.5]
    package = f"{ROOT}/"
    return {
        name.removeprefix(package)
        for name in seen
        if name.startswith(f"{package}serving/gru_serving/")
    }


def test_the_path_of_a_request(models, tmp_path):
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    path = text.split("## The path of a request\n")[1].split("\nOver gRPC")[0]
    steps = re.findall(r"^\d+\. ", path, re.MULTILINE)
    assert len(steps) <= 8
    (tmp_path / "m" / "1").mkdir(parents=True)

    def load(_):
        return Predictor(CountedSession(open_graph_session(models / "affine" / "1"), Metrics()))

    repository = Repository([single_model("m", str(tmp_path / "m"))], load)
    repository.start()
    try:
        assert set(FILE.findall(path)) - ELSEWHERE == crossed(repository)
    finally:
        repository.close()
