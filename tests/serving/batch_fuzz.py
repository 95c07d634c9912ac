"""The requests of `onnx_fuzz`, many at once, through a batcher; some leave, some are late.

Run as a process of its own, `python -m tests.serving.batch_fuzz 0 300 MODEL...`. Whatever becomes
of the others, a request is answered as it is alone, or with the error that it gets alone, or was
cancelled, late or refused for want of room; and the batcher is empty when all are gone.
"""

import asyncio
import random
import sys
import threading
from collections import Counter

import numpy as np

from gru_serving.config.batching_options import BatchingOptions, PoolOptions
from gru_serving.engine.batching.scheduler import BatchScheduler
from gru_serving.engine.batching.session import BatchingSession
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.session import GraphSession
from gru_serving.errors import Code, ServingError
from tests.serving.onnx_fuzz import PATIENCE_MS, note, tensors

TOGETHER = 24
OPTIONS = (
    {"max_batch_size": 64, "batch_timeout_micros": 2000},
    {"max_batch_size": 8, "batch_timeout_micros": 0, "max_enqueued_batches": 4},
    {"max_batch_size": 32, "allowed_batch_sizes": (1, 4, 32), "batch_timeout_micros": 1000},
    {"max_batch_size": 64, "enable_large_batch_splitting": True, "max_execution_batch_size": 5},
    {"max_batch_size": 64, "pad_variable_length_inputs": True, "batch_timeout_micros": 2000},
)
# Signatures of `Affine` that sum over all rows, or have none; batches are for models of rows.
NOT_OF_ROWS = {"total", "spin"}
LATE = (Code.DEADLINE_EXCEEDED, Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE)


def finite(array):
    """Write NaN for infinity; which of both a sum gives depends on the order of its terms."""
    return np.where(np.isfinite(array), array, np.nan)


def equal(one, other):
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype
        and one[name].shape == other[name].shape
        and (
            (one[name] == other[name]).all()
            if one[name].dtype == object
            else np.allclose(finite(one[name]), finite(other[name]), 1e-4, 1e-5, equal_nan=True)
        )
        for name in one
    )


async def one(predictor, rng, name, inputs):
    """How a request ended: outputs, an error, or "left"."""
    kind = rng.random()
    timeout = rng.choice((1, 3, 20)) if kind < 0.2 else PATIENCE_MS
    try:
        asked = asyncio.ensure_future(predictor.prepare(inputs, name).run_in_batch(timeout))
    except ServingError as error:
        return error
    if kind > 0.8:
        await asyncio.sleep(rng.choice((0, 0.0005, 0.002, 0.01)))
        asked.cancel()
    try:
        return await asyncio.wait_for(asked, 2e-3 * PATIENCE_MS)
    except ServingError as error:
        return error
    except asyncio.CancelledError:
        return "left"


def check(predictor, name, inputs, found):
    """Raises AssertionError if the outcome is not that of the request alone."""
    if found == "left" or (isinstance(found, ServingError) and found.code in LATE):
        return "left or late"
    try:
        alone = predictor.predict(inputs, name, (), PATIENCE_MS)
    except ServingError:
        alone = None
    if isinstance(found, ServingError):
        # A batcher refuses more than a model: inputs of unlike rows, ranks that cannot be padded.
        words = ("atch", "padded", "empty tensor")
        assert alone is None or any(word in found.message for word in words), found
        return "refused"
    assert alone is not None, (name, inputs, found)
    assert equal(found, alone), (name, inputs, found, alone)
    return "answered"


def of_rows(arrays):
    """Whether broadcasting leaves the first axis of all tensors the same."""
    return len({array.ndim for array in arrays.values()}) == 1


async def ask_together(plain, batched, rng):
    """Send some requests at once; counts how they ended."""
    made = []
    while len(made) < TOGETHER:
        name = rng.choice(sorted(plain.signatures.keys() - NOT_OF_ROWS))
        try:
            arrays = tensors(rng, plain.signatures[name])
        except ServingError:
            continue
        if not of_rows(arrays):
            continue
        made.append((name, arrays))
        if rng.random() < 0.5:
            made.append(made[-1])  # neighbours of the same shape
    found = await asyncio.gather(*(one(batched, rng, *request) for request in made))
    return Counter(check(plain, *request, one) for request, one in zip(made, found, strict=True))


def main(first, count, *directories):
    for directory in directories:
        plain, counts = Predictor(directory), Counter()
        for number in range(int(first), int(first) + int(count)):
            rng = random.Random(number)
            note(directory, number)
            scheduler = BatchScheduler(PoolOptions(2, "fuzz"))
            options = BatchingOptions(**OPTIONS[number % len(OPTIONS)])
            session = BatchingSession(GraphSession(directory), scheduler, options)
            batched = Predictor(session)
            counts += asyncio.run(ask_together(plain, batched, rng))
            assert sum(queue.rows for queue in session._queues.values()) == 0
            batched.close()
            scheduler.close()
        note("outcome", *(f"{name}: {counts[name]}," for name in sorted(counts)))
    assert not [one for one in threading.enumerate() if one.name.startswith("fuzz")]


if __name__ == "__main__":
    main(*sys.argv[1:])
