"""Classify, Regress and MultiInference: tf.Examples in, scores or values out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from gru_serving.codecs.inference_messages import (
    classification_request,
    classification_response,
    regression_request,
    regression_response,
    serialized,
)
from gru_serving.codecs.tensor_proto import decode_input
from gru_serving.engine.examples import Classification, Task, classify, infer, regress
from gru_serving.engine.predictor import Predictor
from gru_serving.inference.request import Request
from gru_serving.protos.input_pb2 import Input
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.request_record import Exchange

ResultT = TypeVar("ResultT")


class ExamplesRequest(Request, Generic[ResultT]):
    """What the three have in common.

    Attributes:
        input: The examples as they came, once it is parsed.
        examples: Each serialized, once it is prepared.
        result: The answer, once it has run.
    """

    input: Input
    examples: Sequence[bytes]
    result: ResultT
    _predictor: Predictor

    def prepare(self, predictor: Predictor) -> None:
        """As in the base class."""
        self.examples = decode_input(self.input)
        self._predictor = predictor


class Classify(ExamplesRequest[Classification]):
    """A Classify request."""

    api = "Classify"
    kind = "classify"

    def run(self) -> None:
        """As in the base class."""
        self.result = classify(
            self._predictor, self.signature_name, self.examples, self.timeout_ms()
        )

    def exchange(self) -> Exchange:
        """As in the base class; as messages that gRPC would have carried."""
        by, examples, result = self.answering, self.input, self.result
        return Exchange(
            self.kind,
            lambda: serialized(
                classification_request(by, examples), classification_response(by, result.rows())
            ),
            sum(map(len, self.examples)),
        )


class Regress(ExamplesRequest[np.ndarray]):
    """A Regress request."""

    api = "Regress"
    kind = "regress"

    def run(self) -> None:
        """As in the base class."""
        self.result = regress(
            self._predictor, self.signature_name, self.examples, self.timeout_ms()
        )

    def exchange(self) -> Exchange:
        """As in the base class; as messages that gRPC would have carried."""
        by, examples, result = self.answering, self.input, self.result
        return Exchange(
            self.kind,
            lambda: serialized(regression_request(by, examples), regression_response(by, result)),
            sum(map(len, self.examples)),
        )


class MultiInference(ExamplesRequest[list[Classification | np.ndarray]]):
    """Several tasks over the same examples, in one run.

    Attributes:
        tasks: Known once it is parsed, and so are the examples. The version is that of the first.
    """

    api = "MultiInference"
    kind = "multi_inference"
    counted = False
    signature = ""

    tasks: Sequence[Task]

    def prepare(self, predictor: Predictor) -> None:
        """As in the base class."""
        self._predictor = predictor

    def run(self) -> None:
        """As in the base class."""
        self.result = infer(self._predictor, self.tasks, self.examples, self.timeout_ms())

    def count(self, metrics: Metrics, started: float) -> None:
        """As in the base class; TF Serving counts the examples here, and no time."""
        del started
        metrics.examples(self.target.model, len(self.examples))
