"""The steps of a request, as seen by a transport of the test: which, where, and how many."""

import asyncio
import json
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from gru_serving.codecs.large_request import Measured
from gru_serving.codecs.signature import Signature
from gru_serving.config.files import single_model
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.errors import Internal, NotFound
from gru_serving.inference.service import (
    Inference,
    LoopLimits,
    Question,
    Request,
    Target,
    Work,
)
from gru_serving.inference.turns import LONG_BYTES
from gru_serving.repository.repository import Repository
from gru_serving.server.grpc.services import PredictCall
from gru_serving.server.rest.app import PredictPost
from gru_serving.telemetry.request_record import RequestRecord


class CountingThreads(WorkerThreads):
    trips = 0

    async def run(self, call, *args, **kwargs):
        self.trips += 1
        return await super().run(call, *args, **kwargs)


class Model:
    """Takes the place of a loaded version; requests of this test run themselves."""

    def close(self):
        pass


class Steps(Request):
    """Records its steps: name, thread, and whether the version is held; runs itself."""

    api = "Predict"
    kind = "predict"
    limits = LoopLimits(read=1000, write=1000)
    brief = False
    timeout_ms = 0
    signature_name = ""

    def __init__(self, repository, size=0, answer_size=0, quick=True, batched=False):
        self.size = size
        if not quick:
            self.limits = LoopLimits(read=-1, write=1000)
        self.batched = batched
        self._answer_size = answer_size
        self._repository = repository
        self.steps = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()

    def _note(self, step):
        held = any(one.in_use for one in self._repository.models["m"].known.values())
        where = threading.current_thread()
        self.steps.append((step, "loop" if where is threading.main_thread() else "thread", held))

    def parse(self):
        self._note("parse")
        return Question(Target("m"), self.signature_name, None)

    def decode(self, content, predictor, by):
        assert isinstance(predictor, Model)
        self._note("decode")
        return Work(self, self.encode, lambda *answer: (b"request", answer[-1]), lambda _: self)

    def run(self, timeout_ms):
        self._note("run")
        self.begun.set()
        assert self.go.wait(60)
        return {"y": np.zeros(self._answer_size, np.int8)}

    async def run_in_batch(self, timeout_ms, trace):
        self._note("run")
        return {"y": np.zeros(self._answer_size, np.int8)}

    def encode(self, outputs):
        self._note("encode")
        return b"answer"


@contextmanager
def repository_of(tmp_path, load):
    (tmp_path / "m" / "1").mkdir(parents=True, exist_ok=True)
    repository = Repository([single_model("m", str(tmp_path / "m"))], load)
    repository.start()
    try:
        yield repository
    finally:
        repository.close()


@pytest.fixture
def repository(tmp_path):
    with repository_of(tmp_path, lambda _: Model()) as repository:
        yield repository


def record():
    return RequestRecord("REST", "POST")


def answered(repository, *requests, check=lambda: None, threads=8):
    """The answers to simultaneous requests, and the number of trips to a thread."""

    async def ask():
        with CountingThreads(threads, "test") as workers:
            inference = Inference(repository, workers)
            asked = [asyncio.ensure_future(inference.answer(one, record())) for one in requests]
            await asyncio.to_thread(check)
            return await asyncio.wait_for(asyncio.gather(*asked), 60), workers.trips

    return asyncio.run(ask())


STEPS = ("parse", "decode", "run", "encode")


def where(steps):
    return dict(zip(STEPS, steps, strict=True))


LOOP, THREAD = "loop", "thread"


@pytest.mark.parametrize(
    ("options", "trips", "places"),
    [
        ({"size": 1000}, 1, (LOOP, LOOP, THREAD, LOOP)),
        ({"size": 1000, "answer_size": 1001}, 1, (LOOP, LOOP, THREAD, THREAD)),
        ({"size": 1001}, 1, (THREAD, THREAD, THREAD, THREAD)),
        ({"size": 2 * LONG_BYTES}, 1, (THREAD, THREAD, THREAD, THREAD)),
        ({"size": 1, "answer_size": LONG_BYTES}, 1, (LOOP, LOOP, THREAD, THREAD)),
        ({"size": 2 * LONG_BYTES, "answer_size": LONG_BYTES + 1}, 2,
         (THREAD, THREAD, THREAD, THREAD)),
        ({"size": 1, "quick": False}, 1, (THREAD, THREAD, THREAD, THREAD)),
        ({"size": 1, "batched": True}, 0, (LOOP, LOOP, LOOP, LOOP)),
        ({"size": 1, "batched": True, "answer_size": 1001}, 1, (LOOP, LOOP, LOOP, THREAD)),
        ({"size": 1001, "batched": True}, 1, (THREAD, THREAD, LOOP, LOOP)),
        ({"size": 2 * LONG_BYTES, "batched": True, "answer_size": 2 * LONG_BYTES}, 2,
         (THREAD, THREAD, LOOP, THREAD)),
    ],
)  # fmt: skip
def test_where_the_steps_are_taken(repository, options, trips, places):
    request = Steps(repository, **options)
    assert answered(repository, request) == ([b"answer"], trips)
    assert [step for step, _, _ in request.steps] == list(STEPS)
    assert [place for _, place, _ in request.steps] == list(places)
    # A version is held while it is needed, and no longer.
    assert [held for _, _, held in request.steps] == [False, True, True, False]


def test_long_requests_that_run_keep_no_turn(repository):
    """At most two are read at a time, however many may run."""
    requests = [Steps(repository, size=2 * LONG_BYTES) for _ in range(5)]
    for request in requests:
        request.go.clear()

    def check():
        for request in requests:
            assert request.begun.wait(60)
        for request in requests:
            request.go.set()

    answers, trips = answered(repository, *requests, check=check)
    assert (answers, trips) == ([b"answer"] * 5, 5)


@pytest.mark.parametrize("size", [1, 2 * LONG_BYTES])
def test_a_request_that_is_cancelled_holds_its_version_until_its_run_ends(repository, size):
    request = Steps(repository, size=size)
    request.go.clear()
    version = repository.models["m"].known[1]

    async def cancel():
        with CountingThreads(1, "test") as workers:
            inference = Inference(repository, workers)
            asked = asyncio.ensure_future(inference.answer(request, record()))
            await asyncio.to_thread(request.begun.wait, 60)
            asked.cancel()
            await asyncio.sleep(0.1)
            assert version.in_use == 1
            request.go.set()
            await asyncio.wait({asked})
            assert asked.cancelled()

    asyncio.run(cancel())
    assert version.in_use == 0


@pytest.mark.parametrize("step", ["parse", "decode", "run", "encode"])
@pytest.mark.parametrize("size", [1, 2 * LONG_BYTES])
def test_a_step_that_fails_frees_all(repository, step, size):
    request = Steps(repository, size=size)

    def fail(*_):
        raise Internal(step)

    setattr(request, step, fail)

    async def ask():
        with CountingThreads(1, "test") as workers:
            inference = Inference(repository, workers)
            for _ in range(3):  # more than there are turns
                with pytest.raises(Internal, match=step):
                    await asyncio.wait_for(inference.answer(request, record()), 60)
            assert await inference.answer(Steps(repository, size=size), record()) == b"answer"

    asyncio.run(ask())
    assert repository.models["m"].known[1].in_use == 0


def test_notes_for_the_logs(repository):
    async def ask(request):
        kept = record()
        with WorkerThreads(1, "test") as workers:
            await Inference(repository, workers).answer(request, kept)
        return kept

    for size in (1, 2 * LONG_BYTES):
        request = Steps(repository, size)
        request.signature_name = "s"
        kept = asyncio.run(ask(request))
        assert (kept.model, kept.version, kept.signature) == ("m", 1, "s")
        assert kept.exchange.kind == "predict"
        assert kept.exchange.messages() == (b"request", b"answer")


def test_status_and_metadata_of_nobody():
    with WorkerThreads(1, "test") as workers:
        inference = Inference(Repository([]), workers)
        with pytest.raises(NotFound, match="Could not find any versions of model nix"):
            inference.status(Target("nix"))
        with pytest.raises(NotFound, match=r"Servable not found for request: Latest\(nix\)"):
            inference.metadata(Target("nix"), RequestRecord("REST", "GET"))


class Context:
    """As from a gRPC call without a deadline."""

    def time_remaining(self):
        return None


def predict_call(x, b):
    import tensorflow as tf
    from tensorflow_serving.apis.predict_pb2 import PredictRequest

    message = PredictRequest()
    message.model_spec.name = "m"
    for name, array in (("x", x), ("b", b)):
        message.inputs[name].CopyFrom(tf.make_tensor_proto(array))
    raw = message.SerializeToString()
    return PredictCall(raw, Measured(raw, {}, 0), Context())


def predict_post(x, b):
    body = json.dumps({"inputs": {"x": x.tolist(), "b": b.tolist()}}).encode()
    return PredictPost(Target("m"), body, 0)


def read_message(answer):
    import tensorflow as tf
    from tensorflow_serving.apis.predict_pb2 import PredictResponse

    return tf.make_ndarray(PredictResponse.FromString(answer).outputs["y"])


@pytest.mark.parametrize(
    ("make", "read"),
    [
        (predict_call, read_message),
        (predict_post, lambda answer: np.array(json.loads(answer)["outputs"]["y"])),
    ],
)
@pytest.mark.parametrize("rows", [1, 7000])
def test_requests_of_both_transports_are_checked_once_and_take_one_trip(
    models, tmp_path, monkeypatch, make, read, rows
):
    checked = []
    check = Signature.check_input_names
    monkeypatch.setattr(
        Signature,
        "check_input_names",
        lambda self, names: (checked.append(sorted(names)), check(self, names))[1],
    )
    rng = np.random.default_rng(rows)
    x, b = (rng.normal(size=(rows, n)).astype(np.float32) for n in (3, 1))
    with repository_of(tmp_path, lambda _: Predictor(models / "affine" / "1")) as repository:
        request = make(x, b)
        (answer,), trips = answered(repository, request)
    assert checked == [["b", "x"]]
    assert trips == 1
    expected = x.astype(float) @ [[1, 2], [3, 4], [5, 6]] + b
    np.testing.assert_allclose(read(answer), expected, rtol=1e-5, atol=1e-5)
