"""Runs of the affine test model that take a known time."""

import time

import numpy as np


def spin(steps):
    from tensorflow_serving.apis import predict_pb2

    request = predict_pb2.PredictRequest()
    request.model_spec.name = "m"
    request.model_spec.signature_name = "spin"
    request.inputs["steps"].dtype = 9
    request.inputs["steps"].int64_val.append(steps)
    return request.SerializeToString()


def steps_of(client, seconds, model="m"):
    """The number of steps with which a spin takes about that long."""
    steps = 10_000
    while True:
        started = time.monotonic()
        client.predict(np.int64(steps), model, signature="spin")
        took = time.monotonic() - started
        if took > 0.05:
            return int(steps * seconds / took)
        steps *= 3
