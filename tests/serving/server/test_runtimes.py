"""Versions of different runtimes in one server: swapped under load, and listed."""

import shutil
import threading
import time

import httpx
import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.preprocessing.description import FOLDER
from tests.serving.scrape import page_of
from tests.serving.servers import RUNTIME, metrics_flag, running, wait_until

pytestmark = pytest.mark.skipif(RUNTIME != "auto", reason="the server chooses runtimes itself here")

TEXTS = {"text": ["Not bad at all.", "good"]}


def publish(exports, base, number, graphs):
    """Put the same export in place, with its graphs of ONNX or without."""
    aside = shutil.copytree(exports.version("one"), base.parent / f"aside-{number}")
    (aside / "assets.extra" / "digests.json").unlink()
    if not graphs:
        shutil.rmtree(aside / FOLDER)
    base.mkdir(exist_ok=True)
    aside.rename(base / str(number))


@pytest.mark.slow
def test_swaps_between_runtimes_under_load(exports, tmp_path, figures):
    """No request fails, and every answer is the same, whichever runtime gives it."""
    base = tmp_path / "m"
    publish(exports, base, 1, graphs=True)
    flags = (
        "--model_name=m",
        f"--model_base_path={base}",
        metrics_flag(tmp_path),
    )
    failures, scores, stop = [], [], threading.Event()
    with running(tmp_path / "log", *flags, cold=True) as server:

        def ask(url):
            with connect(url, timeout=30, retries=0) as client:
                while not stop.is_set():
                    try:
                        scores.append(client.predict(TEXTS, "m")["scores"])
                    except Exception as error:
                        failures.append(repr(error))
                    time.sleep(0.002)

        asking = [
            threading.Thread(target=ask, args=(url,))
            for url in (server.rest, f"grpc://{server.grpc}")
        ]
        for one in asking:
            one.start()
        try:
            assert "Importing TensorFlow" not in server.log.read_text()
            for number, graphs in ((2, False), (3, True), (4, False), (5, True)):
                publish(exports, base, number, graphs)
                said = f"Model m, version {number}: run by {'onnx' if graphs else 'tensorflow'}"
                wait_until(lambda said=said: said in server.log.read_text(), server)
                time.sleep(0.3)
                listed = httpx.get(f"{server.rest}/models", trust_env=False).json()["models"][0]
                assert listed["versions"][0]["version"] == number
                assert listed["versions"][0]["runtime"] == ("onnx" if graphs else "tensorflow")
                assert listed["versions"][0]["left_to_tensorflow"] == []
        finally:
            stop.set()
            for one in asking:
                one.join()
        page = page_of(server)
    assert failures == []
    assert len(scores) > 50
    np.testing.assert_allclose(scores, np.broadcast_to(scores[0], np.shape(scores)), atol=1e-5)
    # The series of a version go with it.
    assert 'gru_serve:model_runtime{model_name="m",version="2"' not in page
    assert 'gru_serve:model_runtime{model_name="m",version="5",runtime="onnx"} 1' in page
    figures(f"4 swaps between runtimes, {len(scores)} requests, none failed")


@pytest.mark.slow
def test_many_clients_in_batches(exports, tmp_path):
    """Merged runs give each request its own rows, and a bad request spoils no other."""
    parameters = tmp_path / "batching.config"
    parameters.write_text("max_batch_size { value: 32 } batch_timeout_micros { value: 2000 }")
    flags = (
        "--model_name=m",
        f"--model_base_path={exports.version('one').parent}",
        "--enable_batching",
        f"--batching_parameters_file={parameters}",
    )
    texts = [f"{word} film {i % 3 * 'good '}" for i, word in enumerate(["not", "a", "very"] * 8)]
    with running(tmp_path / "log", *flags, cold=True) as server, connect(server.rest) as client:
        assert "Importing TensorFlow" not in server.log.read_text()
        wanted = client.predict({"text": texts}, "m")["scores"]
        got = [None] * len(texts)

        def ask(place):
            with connect(f"grpc://{server.grpc}") as own:
                got[place] = own.predict({"text": texts[place : place + 1]}, "m")["scores"][0]

        asking = [threading.Thread(target=ask, args=(place,)) for place in range(len(texts))]
        for one in asking:
            one.start()
        for one in asking:
            one.join()
    np.testing.assert_allclose(got, wanted, atol=1e-6)
