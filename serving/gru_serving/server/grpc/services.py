"""TF Serving's gRPC services: the meaning of each message, and the encoding of its answer.

The path of a Predict call: `PredictionService` counts its bytes, `PredictCall` decodes the message
to arrays and encodes arrays as a message, and `gru_serving.inference.service` does the rest.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial, partialmethod
from typing import Any, ClassVar, TypeVar

import grpc
import numpy as np
from google.protobuf.message import DecodeError, Message

from gru_serving.codecs.inference_messages import (
    Answering,
    classification_response,
    fill_classes,
    fill_values,
    predict_response,
    regression_response,
)
from gru_serving.codecs.large_request import Measured, measure, no_request
from gru_serving.codecs.tensor_proto import decode_input, decode_inputs
from gru_serving.config.files import served_models
from gru_serving.engine.examples import Classification, Task, classify, infer, regress
from gru_serving.engine.predictor import Predictor, PreparedRun
from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.errors import (
    Code,
    Internal,
    InvalidArgument,
    ServingError,
    refused_by_system,
)
from gru_serving.inference.service import (
    AnswerT,
    Inference,
    LoopLimits,
    Question,
    Request,
    Target,
    Work,
)
from gru_serving.inference.turns import LONG_BYTES, Turn, Turns
from gru_serving.protos.classification_pb2 import ClassificationRequest
from gru_serving.protos.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    GetModelMetadataResponse,
)
from gru_serving.protos.get_model_status_pb2 import GetModelStatusRequest, GetModelStatusResponse
from gru_serving.protos.inference_pb2 import MultiInferenceRequest, MultiInferenceResponse
from gru_serving.protos.input_pb2 import Input
from gru_serving.protos.model_management_pb2 import ReloadConfigRequest, ReloadConfigResponse
from gru_serving.protos.model_pb2 import ModelSpec
from gru_serving.protos.predict_pb2 import PredictRequest
from gru_serving.protos.regression_pb2 import RegressionRequest
from gru_serving.server.byte_budget import ByteBudget
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.request_record import RequestRecord

log = logging.getLogger(__name__)

GRPC_STATUS = {code: grpc.StatusCode[code.name] for code in Code}
SIGNATURE_DEF = "signature_def"
_MAX_MESSAGE = 1024
_MAX_SECONDS = 1e9

RequestT = TypeVar("RequestT", bound=Message)


class _Call(Request[AnswerT]):
    """An inference request over gRPC.

    Args:
        raw: Message as it came.
        measured: Message with its size in memory, its long lists of numbers perhaps set apart.
        context: Context of the call.
        content: Whether tensors are answered as raw bytes, not with one entry per element.
    """

    message_class: ClassVar[type[Message]]

    def __init__(self, raw: bytes, measured: Measured, context: Any, content: bool = False) -> None:
        self.size = len(raw)
        self._raw = raw
        self._measured = measured
        self._context = context
        self._content = content

    @property
    def timeout_ms(self) -> int:
        """The milliseconds left until the client's deadline."""
        remaining = self._context.time_remaining()
        return 0 if remaining is None else max(1, int(min(remaining, _MAX_SECONDS) * 1000))

    def _message(self) -> Any:
        return _parse(self.message_class, self._measured.rest)

    def _work(
        self,
        run: PreparedRun[AnswerT],
        response: Callable[[AnswerT], Message],
        prepare: Callable[[Predictor], PreparedRun[AnswerT]],
    ) -> Work[AnswerT]:
        """Return the work whose answer is a message.

        The prediction log gets what was transferred.
        """
        return Work(
            run,
            lambda answer: response(answer).SerializeToString(),
            lambda _, body: (self._raw, body),
            prepare,
        )


class PredictCall(_Call[dict[str, np.ndarray]]):
    """A Predict request."""

    api, kind, message_class = "Predict", "predict", PredictRequest
    # Protobuf reads and writes this many bytes in less time than a thread switch takes.
    limits = LoopLimits(read=1 << 16, write=1 << 16)

    def parse(self) -> Question:
        """See the base class."""
        message = self._message()
        return _question(_spec_of(message), message)

    def decode(
        self, content: PredictRequest, predictor: Predictor, by: Answering
    ) -> Work[dict[str, np.ndarray]]:
        """See the base class."""
        predictor.check_inputs(predictor.find_signature(by.signature), content.inputs.keys())
        inputs = decode_inputs(content, self._measured.lists)
        wanted = content.output_filter
        return self._work(
            predictor.prepare(inputs, by.signature, wanted),
            lambda outputs: predict_response(by, outputs, self._content),
            lambda other: other.prepare_checked(inputs, by.signature, wanted),
        )


class _ExamplesCall(_Call[AnswerT]):
    """A request about tf.Examples, which runs in a thread because examples are slow to read."""

    limits = LoopLimits(read=-1, write=1 << 16)

    def parse(self) -> Question:
        """See the base class."""
        message = self._message()
        return _question(_spec_of(message), message.input)


class ClassifyCall(_ExamplesCall[Classification]):
    """A Classify request."""

    api, kind, message_class = "Classify", "classify", ClassificationRequest

    def decode(self, content: Input, predictor: Predictor, by: Answering) -> Work[Classification]:
        """See the base class."""
        prepare = partial(classify, signature_name=by.signature, examples=decode_input(content))
        return self._work(
            prepare(predictor),
            lambda answer: classification_response(by, answer.rows()),
            prepare,
        )


class RegressCall(_ExamplesCall[np.ndarray]):
    """A Regress request."""

    api, kind, message_class = "Regress", "regress", RegressionRequest

    def decode(self, content: Input, predictor: Predictor, by: Answering) -> Work[np.ndarray]:
        """See the base class."""
        prepare = partial(regress, signature_name=by.signature, examples=decode_input(content))
        return self._work(
            prepare(predictor), lambda values: regression_response(by, values), prepare
        )


class MultiInferenceCall(_ExamplesCall[list[Classification | np.ndarray]]):
    """A MultiInference request: several tasks over the same examples in one run."""

    api, kind, message_class = "", "multi_inference", MultiInferenceRequest

    def parse(self) -> Question:
        """Parse the message; the version is that of the first task."""
        message = self._message()
        content = Task.listed_in(message), decode_input(message.input)
        return _question(message.tasks[0].model_spec if message.tasks else ModelSpec(), content)

    def decode(
        self, content: tuple[list[Task], Sequence[bytes]], predictor: Predictor, by: Answering
    ) -> Work[list[Classification | np.ndarray]]:
        """See the base class."""
        tasks, examples = content

        def response(answers: list[Classification | np.ndarray]) -> Message:
            message = MultiInferenceResponse()
            for task, answer in zip(tasks, answers, strict=True):
                spec = Answering(task.model, by.version, task.signature_name).spec()
                result = message.results.add(model_spec=spec)
                if isinstance(answer, Classification):
                    fill_classes(result.classification_result, answer.rows())
                else:
                    fill_values(result.regression_result, answer)
            return message

        prepare = partial(infer, tasks=tasks, examples=examples)
        return self._work(prepare(predictor), response, prepare)


class Service:
    """A service whose calls block: they run in threads, and their errors become statuses.

    Args:
        threads: Threads that run the calls.
        turns: Turns for long requests; shared with other transports.
        budget: Budget that counts the bytes of requests.
    """

    def __init__(
        self,
        threads: WorkerThreads,
        turns: Turns | None = None,
        budget: ByteBudget | None = None,
    ) -> None:
        self._threads = threads
        self._turns = turns or Turns()
        self._budget = budget or ByteBudget()

    async def _run(
        self,
        request_class: type[RequestT],
        call: Callable[[RequestT], Message],
        raw: bytes,
        context: Any,
    ) -> bytes:
        """Answer one request in a thread."""

        def answer(turn: Turn) -> bytes:
            if len(raw) > LONG_BYTES:
                measure(request_class, raw, self._budget.most)
            request = _parse(request_class, raw)
            turn.end()
            return call(request).SerializeToString()

        try:
            with self._budget.call(), self._budget.hold() as held:
                await held.grow(len(raw), in_memory=True)
                async with self._turns.take(len(raw)) as turn:
                    return await self._threads.run(answer, turn)
        except Exception as error:
            return _fail(context, error)[1]


class PredictionService(Service):
    """`tensorflow.serving.PredictionService`.

    Args:
        inference: Service that answers requests.
        metrics: Metrics that count the requests.
        tensor_content: Whether to answer with raw bytes instead of one entry per element.
        budget: Budget that counts the bytes of requests.
    """

    def __init__(
        self,
        inference: Inference,
        metrics: Metrics | None = None,
        tensor_content: bool = False,
        budget: ByteBudget | None = None,
    ) -> None:
        super().__init__(inference.threads, inference.turns, budget)
        self._inference = inference
        self._metrics = metrics or Metrics()
        self._tensor_content = tensor_content

    async def _infer(
        self,
        call: type[_Call[Any]],
        raw: bytes,
        context: Any,
        record: RequestRecord | None = None,
    ) -> bytes:
        started = time.perf_counter()
        record = record or RequestRecord("GRPC", "")
        code = Code.CANCELLED
        try:
            with self._budget.call(), self._budget.hold() as held:
                await held.grow(len(raw), in_memory=True)
                measured = Measured(raw, {}, 0)
                if len(raw) > LONG_BYTES:
                    async with self._turns.take(len(raw)):
                        measured = await self._threads.run(
                            measure, call.message_class, raw, self._budget.most
                        )
                    await held.grow(len(raw) + measured.size, in_memory=True)
                request = call(raw, measured, context, self._tensor_content)
                answer = await self._inference.answer(request, record)
            code = Code.OK
            return answer
        except Exception as error:
            code, answer = _fail(context, error, record)
            return answer
        finally:
            if call.api:
                self._metrics.request(record.model, call.api, "GRPC", code.name, started)

    Predict = partialmethod(_infer, PredictCall)
    Classify = partialmethod(_infer, ClassifyCall)
    Regress = partialmethod(_infer, RegressCall)
    MultiInference = partialmethod(_infer, MultiInferenceCall)

    async def GetModelMetadata(  # noqa: N802
        self, raw: bytes, context: Any, record: RequestRecord | None = None
    ) -> bytes:
        """Return the signatures of a loaded version."""

        def answer(request: GetModelMetadataRequest) -> GetModelMetadataResponse:
            return self._metadata(request, record or RequestRecord("GRPC", ""))

        return await self._run(GetModelMetadataRequest, answer, raw, context)

    def _metadata(
        self, request: GetModelMetadataRequest, record: RequestRecord
    ) -> GetModelMetadataResponse:
        spec = _spec_of(request)
        if not request.metadata_field:
            raise InvalidArgument(
                "GetModelMetadataRequest must specify at least one metadata_field"
            )
        for wanted in request.metadata_field:
            if wanted != SIGNATURE_DEF:
                raise InvalidArgument(f"Metadata field {wanted} is not supported")
        record.model, record.signature = spec.name, spec.signature_name
        metadata = self._inference.metadata(_target_of(spec), record)
        response = GetModelMetadataResponse(model_spec=metadata.spec)
        response.metadata[SIGNATURE_DEF].Pack(metadata.signatures)
        return response


class ModelService(Service):
    """`tensorflow.serving.ModelService`.

    Args:
        inference: Service that answers requests.
        metrics: Metrics whose counts a reload may report.
        may_log: Whether configurations may ask for prediction logs.
        budget: Budget that counts the bytes of requests.
    """

    def __init__(
        self,
        inference: Inference,
        metrics: Metrics | None = None,
        may_log: bool = False,
        budget: ByteBudget | None = None,
    ) -> None:
        super().__init__(inference.threads, inference.turns, budget)
        self._inference = inference
        self._metrics = metrics or Metrics()
        self._may_log = may_log

    async def GetModelStatus(  # noqa: N802
        self, raw: bytes, context: Any, record: RequestRecord | None = None
    ) -> bytes:
        """Return the states of a model's versions."""

        def answer(request: GetModelStatusRequest) -> GetModelStatusResponse:
            spec = _spec_of(request)
            if record is not None:
                record.model = spec.name
            version = spec.version.value if spec.HasField("version") else None
            return self._inference.status(Target(spec.name, version))

        return await self._run(GetModelStatusRequest, answer, raw, context)

    async def HandleReloadConfigRequest(  # noqa: N802
        self,
        raw: bytes,
        context: Any,
        record: RequestRecord | None = None,  # noqa: ARG002 (it is of no model)
    ) -> bytes:
        """Replace the configuration; returns when models with a new name serve."""
        return await self._run(ReloadConfigRequest, self._reload, raw, context)

    def _reload(self, request: ReloadConfigRequest) -> ReloadConfigResponse:
        if request.config.WhichOneof("config") != "model_config_list":
            raise InvalidArgument(
                "ServerModelConfig type not supported by HandleReloadConfigRequest. Only "
                "ModelConfigList is currently supported"
            )
        repository = self._inference.repository
        names = request.metric_names
        metrics = self._metrics.whole() if names else self._metrics
        before = {name: metrics.total(name) for name in names}
        known = repository.configured_names()
        repository.reconfigure(served_models(request.config, self._may_log, known))
        response = ReloadConfigResponse()
        metrics = self._metrics.whole() if names else self._metrics
        for name, total in before.items():
            increase = metrics.total(name) - total
            response.metric.add(name=name, int64_value_increase=increase)
        response.status.error_code = Code.OK.value  # type: ignore[assignment]
        return response


def _parse(message_class: type[RequestT], raw: bytes) -> RequestT:
    """Parse the message that was sent.

    Raises:
        Internal: The bytes are no message of that class.
    """
    try:
        return message_class.FromString(raw)
    except DecodeError:
        raise no_request(message_class) from None


def _fail(
    context: Any, error: Exception, record: RequestRecord | None = None
) -> tuple[Code, bytes]:
    """End a call with the status of any exception; unexpected ones are logged.

    Returns:
        Status code, and the handler's return value.
    """
    # The error must not be kept in another variable: its traceback holds the frames, and with them
    # the request, until the garbage collector runs.
    if isinstance(error, ServingError):
        return error.code, refuse(context, error)
    refusal = refused_by_system(error)
    if refusal is not None:
        return refusal.code, refuse(context, refusal)
    mention = "" if record is None else record.mention
    log.error("a gRPC call failed%s", mention, exc_info=error)
    return Code.INTERNAL, refuse(context, Internal(f"{type(error).__name__}: {error}"))


def refuse(context: Any, error: ServingError) -> bytes:
    """End a call with the status of an error, cut to the length TF Serving allows.

    Returns:
        Return value of the handler; gRPC sends the status alone. After `context.abort`, which
        raises, the call would keep itself and its request in memory until the garbage collector
        runs.
    """
    text = error.message
    raw = text[: _MAX_MESSAGE + 1].encode("utf-8", "surrogateescape")
    if len(raw) > _MAX_MESSAGE:
        text = raw[:_MAX_MESSAGE].decode("utf-8", "ignore") + "...TRUNCATED"
    context.set_code(GRPC_STATUS[error.code])
    context.set_details(text)
    return b""


def _spec_of(message: Any) -> ModelSpec:
    """Return the `model_spec` of a message.

    Raises:
        InvalidArgument: The message has none; the text is TF Serving's.
    """
    if not message.HasField("model_spec"):
        raise InvalidArgument("Missing ModelSpec")
    spec: ModelSpec = message.model_spec
    return spec


def _target_of(spec: ModelSpec) -> Target:
    version = spec.version.value if spec.HasField("version") else None
    label = spec.version_label if spec.HasField("version_label") else None
    return Target(spec.name, version, label)


def _question(spec: ModelSpec, content: Any) -> Question:
    return Question(_target_of(spec), spec.signature_name, content)
