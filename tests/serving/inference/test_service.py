"""The steps of a request, as seen by a transport of the test: which, where, and how many."""

import asyncio
import json
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from gru_serving.codecs.signature import Signature
from gru_serving.config.files import single_model
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.errors import Internal, NotFound
from gru_serving.inference.request import Request, Target
from gru_serving.inference.service import Inference, LoopLimits
from gru_serving.inference.turns import LONG
from gru_serving.repository.repository import Repository
from gru_serving.server.grpc.requests import PredictCall
from gru_serving.server.rest.requests import PredictPost
from gru_serving.telemetry.request_record import CURRENT, Exchange, RequestRecord

LIMITS = LoopLimits(read=1000, write=1000)


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
    """Records its steps: name, thread, and whether the version is held."""

    api = "Predict"
    kind = "predict"

    def __init__(self, repository, size=0, answer_size=0, quick=True, batched=False):
        self.size, self.quick, self._batched = size, quick, batched
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
        self.target = Target("m")

    def prepare(self, predictor):
        assert isinstance(predictor, Model)
        self._note("prepare")
        self.batched = self._batched

    def run(self):
        self._note("run")
        self.begun.set()
        assert self.go.wait(60)
        self.answer_size = self._answer_size

    async def run_in_batch(self):
        self._note("run")
        self.answer_size = self._answer_size

    def encode(self):
        self._note("encode")
        return b"answer"

    def exchange(self):
        return Exchange(self.kind, lambda: (b"request", self.answer), 7)


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


def answered(repository, *requests, check=lambda: None, threads=8):
    """The answers to simultaneous requests, and the number of trips to a thread."""

    async def ask():
        with CountingThreads(threads, "test") as workers:
            inference = Inference(repository, workers, LIMITS)
            asked = [asyncio.ensure_future(inference.answer(one)) for one in requests]
            await asyncio.to_thread(check)
            return await asyncio.wait_for(asyncio.gather(*asked), 60), workers.trips

    return asyncio.run(ask())


STEPS = ("parse", "prepare", "run", "encode")


def where(steps):
    return dict(zip(STEPS, steps, strict=True))


LOOP, THREAD = "loop", "thread"


@pytest.mark.parametrize(
    ("options", "trips", "places"),
    [
        ({"size": 1000}, 1, (LOOP, LOOP, THREAD, LOOP)),
        ({"size": 1000, "answer_size": 1001}, 1, (LOOP, LOOP, THREAD, THREAD)),
        ({"size": 1001}, 1, (THREAD, THREAD, THREAD, THREAD)),
        ({"size": 2 * LONG}, 1, (THREAD, THREAD, THREAD, THREAD)),
        ({"size": 1, "answer_size": LONG}, 1, (LOOP, LOOP, THREAD, THREAD)),
        ({"size": 2 * LONG, "answer_size": LONG + 1}, 2, (THREAD, THREAD, THREAD, THREAD)),
        ({"size": 1, "quick": False}, 1, (THREAD, THREAD, THREAD, THREAD)),
        ({"size": 1, "batched": True}, 0, (LOOP, LOOP, LOOP, LOOP)),
        ({"size": 1, "batched": True, "answer_size": 1001}, 1, (LOOP, LOOP, LOOP, THREAD)),
        ({"size": 1001, "batched": True}, 1, (THREAD, THREAD, LOOP, LOOP)),
        ({"size": 2 * LONG, "batched": True, "answer_size": 2 * LONG}, 2,
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
    requests = [Steps(repository, size=2 * LONG) for _ in range(5)]
    for request in requests:
        request.go.clear()

    def check():
        for request in requests:
            assert request.begun.wait(60)
        for request in requests:
            request.go.set()

    answers, trips = answered(repository, *requests, check=check)
    assert (answers, trips) == ([b"answer"] * 5, 5)


@pytest.mark.parametrize("size", [1, 2 * LONG])
def test_a_request_that_is_cancelled_holds_its_version_until_its_run_ends(repository, size):
    request = Steps(repository, size=size)
    request.go.clear()
    version = repository.models["m"].known[1]

    async def cancel():
        with CountingThreads(1, "test") as workers:
            inference = Inference(repository, workers, LIMITS)
            asked = asyncio.ensure_future(inference.answer(request))
            await asyncio.to_thread(request.begun.wait, 60)
            asked.cancel()
            await asyncio.sleep(0.1)
            assert version.in_use == 1
            request.go.set()
            await asyncio.wait({asked})
            assert asked.cancelled()

    asyncio.run(cancel())
    assert version.in_use == 0


@pytest.mark.parametrize("step", ["parse", "prepare", "run", "encode"])
@pytest.mark.parametrize("size", [1, 2 * LONG])
def test_a_step_that_fails_frees_all(repository, step, size):
    request = Steps(repository, size=size)

    def fail(*_):
        raise Internal(step)

    setattr(request, step, fail)

    async def ask():
        with CountingThreads(1, "test") as workers:
            inference = Inference(repository, workers, LIMITS)
            for _ in range(3):  # more than there are turns
                with pytest.raises(Internal, match=step):
                    await asyncio.wait_for(inference.answer(request), 60)
            assert await inference.answer(Steps(repository, size=size)) == b"answer"

    asyncio.run(ask())
    assert repository.models["m"].known[1].in_use == 0


def test_notes_for_the_logs(repository):
    async def ask(request):
        CURRENT.set(record := RequestRecord("REST", "POST"))
        with WorkerThreads(1, "test") as workers:
            await Inference(repository, workers, LIMITS).answer(request)
        return record

    for size in (1, 2 * LONG):
        request = Steps(repository, size)
        request.signature_name = "s"
        record = asyncio.run(ask(request))
        assert (record.model, record.version, record.signature) == ("m", 1, "s")
        assert record.exchange.kind == "predict"
        assert record.exchange.messages() == (b"request", b"answer")


def test_status_and_metadata_of_nobody():
    with WorkerThreads(1, "test") as workers:
        inference = Inference(Repository([]), workers, LIMITS)
        with pytest.raises(NotFound, match="Could not find any versions of model nix"):
            inference.status(Target("nix"))
        with pytest.raises(NotFound, match=r"Servable not found for request: Latest\(nix\)"):
            inference.metadata(Target("nix"))


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
    return PredictCall(message.SerializeToString(), Context())


def predict_post(x, b):
    body = json.dumps({"inputs": {"x": x.tolist(), "b": b.tolist()}}).encode()
    return PredictPost(Target("m"), body, 0)


@pytest.mark.parametrize("make", [predict_call, predict_post])
@pytest.mark.parametrize("rows", [1, 7000])
def test_requests_of_both_transports_are_checked_once_and_take_one_trip(
    models, tmp_path, monkeypatch, make, rows
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
        checked.clear()  # as of the warmup, if it had any
        _, trips = answered(repository, request)
    assert checked == [["b", "x"]]
    assert trips == 1
    expected = x.astype(float) @ [[1, 2], [3, 4], [5, 6]] + b
    np.testing.assert_allclose(request.outputs["y"], expected, rtol=1e-5, atol=1e-5)
