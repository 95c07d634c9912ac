"""Predict: named arrays in, named arrays out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping

import numpy as np

from gru_serving.codecs.inference_messages import predict_request, predict_response, serialized
from gru_serving.engine.predictor import Predictor, PreparedRun
from gru_serving.inference.request import Request
from gru_serving.telemetry.request_record import Exchange


class Predict(Request):
    """A Predict request.

    Attributes:
        output_filter: Outputs wanted, in that order; all when empty.
        inputs: Arrays by input name, once it is prepared.
        outputs: Arrays by output name, once it has run.
    """

    api = "Predict"
    kind = "predict"
    quick = True

    output_filter: Collection[str] = ()
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]
    _run: PreparedRun

    @abstractmethod
    def decode(self, predictor: Predictor) -> dict[str, np.ndarray]:
        """The inputs; checks signature and names, before or after, as its transport does."""

    def prepare(self, predictor: Predictor) -> None:
        """As in the base class."""
        self.inputs = self.decode(predictor)
        self._run = predictor.prepare(self.inputs, self.signature, self.output_filter)
        self.batched = predictor.batches
        self.brief = self._run.brief

    def run(self) -> None:
        """As in the base class."""
        self._answer(self._run.run(self.timeout_ms()))

    async def run_in_batch(self) -> None:
        """As in the base class."""
        self._answer(await self._run.run_in_batch(self.timeout_ms()))

    def _answer(self, outputs: dict[str, np.ndarray]) -> None:
        self.outputs = outputs
        self.answer_size = _bytes(outputs)

    def exchange(self) -> Exchange:
        """As in the base class; as messages that gRPC would have carried."""
        by, inputs, outputs = self.answering, self.inputs, self.outputs
        return Exchange(
            self.kind,
            lambda: serialized(predict_request(by, inputs), predict_response(by, outputs)),
            self.size + _bytes(inputs) + self.answer_size,
        )


def _bytes(arrays: Mapping[str, np.ndarray]) -> int:
    return sum([array.nbytes for array in arrays.values()])
