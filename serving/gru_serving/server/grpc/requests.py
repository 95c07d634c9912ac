"""Requests for inferences as gRPC carries them: serialized messages of TF Serving's protos."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from google.protobuf.message import Message

from gru_serving.codecs.inference_messages import (
    Answering,
    classification_response,
    fill_classes,
    fill_values,
    predict_response,
    regression_response,
)
from gru_serving.codecs.large_request import Measured, measure
from gru_serving.codecs.tensor_proto import decode_input, decode_inputs
from gru_serving.engine.examples import Classification, Task
from gru_serving.engine.predictor import Predictor
from gru_serving.errors import InvalidArgument
from gru_serving.inference.examples import Classify, MultiInference, Regress
from gru_serving.inference.predict import Predict
from gru_serving.inference.request import Request, Target
from gru_serving.protos.classification_pb2 import ClassificationRequest
from gru_serving.protos.inference_pb2 import MultiInferenceRequest, MultiInferenceResponse
from gru_serving.protos.model_pb2 import ModelSpec
from gru_serving.protos.predict_pb2 import PredictRequest
from gru_serving.protos.regression_pb2 import RegressionRequest
from gru_serving.server.grpc.service import parse_message
from gru_serving.telemetry.request_record import Exchange, note

_LONGEST = 1e9


class Call(Request):
    """A request of gRPC's.

    Args:
        raw: The message as it came.
        context: Of the call.
    """

    message_class: ClassVar[type[Message]]

    def __init__(self, raw: bytes, context: Any) -> None:
        self._raw = raw
        self._measured = Measured(raw, {}, 0)
        self._context = context
        self.size = len(raw)

    def measure(self, most: int) -> int:
        """Bytes that reading takes beside those that came; for a long request, before `parse`.

        Args:
            most: How many it may take.

        Raises:
            ServingError: It takes more, or is none.
        """
        self._measured = measure(self.message_class, self._raw, most)
        return self._measured.size

    def timeout_ms(self) -> int:
        """As in the base class: until the client's deadline."""
        remaining = self._context.time_remaining()
        return 0 if remaining is None else max(1, int(min(remaining, _LONGEST) * 1000))

    def exchange(self) -> Exchange:
        """As in the base class: what went over the wire."""
        raw, answer = self._raw, self.answer
        return Exchange(self.kind, lambda: (raw, answer), len(raw) + len(answer))

    def _message(self) -> Any:
        return parse_message(self.message_class, self._measured.rest)

    def _ask(self, spec: ModelSpec) -> None:
        self.target = target_of(spec)
        self.signature_name = spec.signature_name


class PredictCall(Call, Predict):
    """A Predict request.

    Args:
        raw: The message as it came.
        context: Of the call.
        content: Answer with raw bytes instead of one entry per element.
    """

    message_class = PredictRequest

    def __init__(self, raw: bytes, context: Any, content: bool = False) -> None:
        super().__init__(raw, context)
        self._content = content

    def parse(self) -> None:
        """As in the base class."""
        self._parsed = self._message()
        self._ask(spec_of(self._parsed))
        self.output_filter = self._parsed.output_filter

    def decode(self, predictor: Predictor) -> dict[str, np.ndarray]:
        """As in the base class."""
        predictor.check_inputs(self.signature, self._parsed.inputs.keys())
        return decode_inputs(self._parsed, self._measured.lists)

    def encode(self) -> bytes:
        """As in the base class."""
        return predict_response(self.answering, self.outputs, self._content).SerializeToString()


class ClassifyCall(Call, Classify):
    """A Classify request."""

    message_class = ClassificationRequest

    def parse(self) -> None:
        """As in the base class."""
        message = self._message()
        self._ask(spec_of(message))
        self.input = message.input

    def encode(self) -> bytes:
        """As in the base class."""
        return classification_response(self.answering, self.result.rows()).SerializeToString()


class RegressCall(Call, Regress):
    """A Regress request."""

    message_class = RegressionRequest

    def parse(self) -> None:
        """As in the base class."""
        message = self._message()
        self._ask(spec_of(message))
        self.input = message.input

    def encode(self) -> bytes:
        """As in the base class."""
        return regression_response(self.answering, self.result).SerializeToString()


class MultiInferenceCall(Call, MultiInference):
    """A MultiInference request."""

    message_class = MultiInferenceRequest

    def parse(self) -> None:
        """As in the base class."""
        message = self._message()
        self.tasks = Task.listed_in(message)
        self.examples = decode_input(message.input)
        self._ask(message.tasks[0].model_spec if message.tasks else ModelSpec())

    def encode(self) -> bytes:
        """As in the base class."""
        response = MultiInferenceResponse()
        for task, outcome in zip(self.tasks, self.result, strict=True):
            spec = Answering(task.model, self.version, task.signature_name).spec()
            result = response.results.add(model_spec=spec)
            if isinstance(outcome, Classification):
                fill_classes(result.classification_result, outcome.rows())
            else:
                fill_values(result.regression_result, outcome)
        return response.SerializeToString()


def spec_of(message: Any) -> ModelSpec:
    """Its `model_spec`.

    Raises:
        InvalidArgument: With TF Serving's text: it has none.
    """
    if not message.HasField("model_spec"):
        raise InvalidArgument("Missing ModelSpec")
    spec: ModelSpec = message.model_spec
    return spec


def target_of(spec: ModelSpec) -> Target:
    """What a request asks for, which is also noted for the logs."""
    note(spec.name, signature=spec.signature_name)
    version = spec.version.value if spec.HasField("version") else None
    label = spec.version_label if spec.HasField("version_label") else None
    return Target(spec.name, version, label)
