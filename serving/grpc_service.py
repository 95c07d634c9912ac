"""TF Serving's gRPC services over the transport-free core."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import grpc
import numpy as np
from google.protobuf.message import DecodeError, Message

from serving.byte_budget import ByteBudget
from serving.config_files import served_models
from serving.errors import Code, Internal, InvalidArgument, ServingError
from serving.examples import Classification, Task, classify, infer, regress
from serving.grpc_codec import decode_input, decode_inputs, fill_tensor
from serving.metrics import Metrics
from serving.protos.classification_pb2 import (
    ClassificationRequest,
    ClassificationResponse,
    ClassificationResult,
)
from serving.protos.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    GetModelMetadataResponse,
)
from serving.protos.get_model_status_pb2 import GetModelStatusRequest, GetModelStatusResponse
from serving.protos.inference_pb2 import MultiInferenceRequest, MultiInferenceResponse
from serving.protos.model_management_pb2 import ReloadConfigRequest, ReloadConfigResponse
from serving.protos.model_pb2 import ModelSpec
from serving.protos.predict_pb2 import PredictRequest, PredictResponse
from serving.protos.regression_pb2 import RegressionRequest, RegressionResponse
from serving.repository import Repository
from serving.request_record import note
from serving.signature import DEFAULT_SIGNATURE
from serving.versions import VersionStatus
from serving.worker_threads import WorkerThreads

log = logging.getLogger(__name__)

GRPC_STATUS = {code: grpc.StatusCode[code.name] for code in Code}
SIGNATURE_DEF = "signature_def"
_MAX_MESSAGE = 1024
_LONGEST = 1e9
# Messages up to this size are read and written on the event loop: that takes less than the way to a
# thread and back.
_LARGE = 1 << 16

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


class Service:
    """Runs blocking calls in threads and turns errors into statuses."""

    def __init__(
        self, repository: Repository, threads: WorkerThreads, budget: ByteBudget | None = None
    ) -> None:
        self._repository = repository
        self._threads = threads
        self._budget = budget or ByteBudget()

    async def _run(
        self,
        request_class: type[RequestT],
        call: Callable[[RequestT, int], Message],
        raw: bytes,
        context: Any,
    ) -> bytes:
        """Answer one request in a thread."""

        def answer(request: RequestT | None, timeout_ms: int) -> bytes:
            request = _parse(request_class, raw) if request is None else request
            return call(request, timeout_ms).SerializeToString()

        try:
            with self._budget.hold() as held:
                await held.grow(len(raw), in_memory=True)
                request = None
                if len(raw) > _LARGE:
                    async with self._budget.turn(len(raw)):
                        request = await self._threads.run(_parse, request_class, raw)
                return await self._threads.run(answer, request, _timeout_ms(context))
        except Exception as error:
            return _refuse(context, error)


def _refuse(context: Any, error: Exception) -> bytes:
    if isinstance(error, ServingError):
        return refuse(context, error)
    log.error("a gRPC call failed", exc_info=error)
    return refuse(context, Internal(f"{type(error).__name__}: {error}"))


def refuse(context: Any, error: ServingError) -> bytes:
    """End a call with the status of an error, cut to the length TF Serving allows.

    Returns:
        What the handler is to return; gRPC sends the status alone. After `context.abort`, which
        raises, the call would keep itself and its request in memory until the garbage collector
        comes by.
    """
    text = error.message
    raw = text[: _MAX_MESSAGE + 1].encode("utf-8", "surrogateescape")
    if len(raw) > _MAX_MESSAGE:
        text = raw[:_MAX_MESSAGE].decode("utf-8", "ignore") + "...TRUNCATED"
    context.set_code(GRPC_STATUS[error.code])
    context.set_details(text)
    return b""


def _parse(request_class: type[RequestT], raw: bytes) -> RequestT:
    try:
        return request_class.FromString(raw)
    except DecodeError:
        # What gRPC's own libraries answer.
        raise Internal(f"the request is no {request_class.DESCRIPTOR.full_name}") from None


def _timeout_ms(context: Any) -> int:
    remaining = context.time_remaining()
    return 0 if remaining is None else max(1, int(min(remaining, _LONGEST) * 1000))


class PredictionService(Service):
    """`tensorflow.serving.PredictionService`.

    Args:
        repository: The models.
        threads: Where the models run, and where large messages are read and written.
        metrics: Where requests are counted.
        tensor_content: Answer with raw bytes instead of one entry per element.
        budget: Counts the bytes of requests.
    """

    def __init__(
        self,
        repository: Repository,
        threads: WorkerThreads,
        metrics: Metrics | None = None,
        tensor_content: bool = False,
        budget: ByteBudget | None = None,
    ) -> None:
        super().__init__(repository, threads, budget)
        self._metrics = metrics or Metrics()
        self._tensor_content = tensor_content

    async def Predict(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Named tensors in, named tensors out."""
        started = time.perf_counter()
        name, status = "", Code.CANCELLED
        try:
            if len(raw) > _LARGE:
                with self._budget.hold() as held:
                    await held.grow(len(raw), in_memory=True)
                    async with self._budget.turn(len(raw)):
                        request = await self._threads.run(_parse, PredictRequest, raw)
                    name = request.model_spec.name
                    answer = await self._predict(request, len(raw), _timeout_ms(context))
            else:
                request = _parse(PredictRequest, raw)
                name = request.model_spec.name
                answer = await self._predict(request, len(raw), _timeout_ms(context))
            status = Code.OK
            return answer
        except Exception as error:
            status = error.code if isinstance(error, ServingError) else Code.INTERNAL
            return _refuse(context, error)
        finally:
            self._metrics.request(name, "Predict", "GRPC", status.name, started)

    async def _predict(self, request: PredictRequest, size: int, timeout_ms: int) -> bytes:
        with self._acquire(request) as (predictor, version):
            name = request.model_spec.signature_name or DEFAULT_SIGNATURE
            note(request.model_spec.name, version, name)
            predictor.check_inputs(name, request.inputs.keys())
            if size > _LARGE:
                async with self._budget.turn(size):
                    inputs = await self._threads.run(decode_inputs, request)
            else:
                inputs = decode_inputs(request)
            with self._metrics.runtime(request.model_spec.name, "Predict"):
                outputs = await predictor.predict_soon(
                    self._threads, inputs, name, request.output_filter, timeout_ms
                )
        spec = _echo(request, version, name)
        answered = sum(array.nbytes for array in outputs.values())
        if answered > _LARGE:
            async with self._budget.turn(answered):
                return await self._threads.run(_encode_outputs, outputs, spec, self._tensor_content)
        return _encode_outputs(outputs, spec, self._tensor_content)

    def _counted(
        self, api: str, call: Callable[[RequestT, int], ResponseT]
    ) -> Callable[[RequestT, int], ResponseT]:
        def counted(request: Any, timeout_ms: int) -> ResponseT:
            started = time.perf_counter()
            status = Code.INTERNAL
            try:
                response = call(request, timeout_ms)
                status = Code.OK
            except ServingError as error:
                status = error.code
                raise
            finally:
                name = request.model_spec.name
                self._metrics.request(name, api, "GRPC", status.name, started)
            return response

        return counted

    async def Classify(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Examples in, labels and scores out."""
        return await self._run(
            ClassificationRequest, self._counted("Classify", self._classify), raw, context
        )

    def _classify(self, request: ClassificationRequest, timeout_ms: int) -> ClassificationResponse:
        with self._acquire(request) as (predictor, version):
            name = request.model_spec.signature_name or DEFAULT_SIGNATURE
            note(request.model_spec.name, version, name)
            examples = decode_input(request.input)
            with self._metrics.runtime(request.model_spec.name, "Classify"):
                result = classify(predictor, name, examples, timeout_ms)
        response = ClassificationResponse(model_spec=_echo(request, version, name))
        fill_classes(response.result, result)
        return response

    async def Regress(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Examples in, one value each out."""
        return await self._run(
            RegressionRequest, self._counted("Regress", self._regress), raw, context
        )

    def _regress(self, request: RegressionRequest, timeout_ms: int) -> RegressionResponse:
        with self._acquire(request) as (predictor, version):
            name = request.model_spec.signature_name or DEFAULT_SIGNATURE
            note(request.model_spec.name, version, name)
            examples = decode_input(request.input)
            with self._metrics.runtime(request.model_spec.name, "Regress"):
                values = regress(predictor, name, examples, timeout_ms)
        response = RegressionResponse(model_spec=_echo(request, version, name))
        for value in values.tolist():
            response.result.regressions.add(value=value)
        return response

    async def MultiInference(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Several Classify and Regress tasks over the same examples."""
        return await self._run(MultiInferenceRequest, self._multi_inference, raw, context)

    def _multi_inference(
        self, request: MultiInferenceRequest, timeout_ms: int
    ) -> MultiInferenceResponse:
        spec = request.tasks[0].model_spec if request.tasks else ModelSpec()
        examples = decode_input(request.input)
        with self._hold(spec) as (predictor, version):
            note(spec.name, version)
            results = infer(predictor, Task.listed_in(request), examples, timeout_ms)
        self._metrics.examples(spec.name, len(examples))
        response = MultiInferenceResponse()
        for task, outcome in zip(request.tasks, results, strict=True):
            signature_name = task.model_spec.signature_name or DEFAULT_SIGNATURE
            result = response.results.add(model_spec=_echo(task, version, signature_name))
            if isinstance(outcome, Classification):
                fill_classes(result.classification_result, outcome)
            else:
                for value in outcome.tolist():
                    result.regression_result.regressions.add(value=value)
        return response

    async def GetModelMetadata(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Signatures of a loaded version."""
        return await self._run(GetModelMetadataRequest, self._metadata, raw, context)

    def _metadata(self, request: GetModelMetadataRequest, _: int) -> GetModelMetadataResponse:
        if not request.HasField("model_spec"):
            raise InvalidArgument("Missing ModelSpec")
        if not request.metadata_field:
            raise InvalidArgument(
                "GetModelMetadataRequest must specify at least one metadata_field"
            )
        for wanted in request.metadata_field:
            if wanted != SIGNATURE_DEF:
                raise InvalidArgument(f"Metadata field {wanted} is not supported")
        with self._acquire(request) as (predictor, version):
            note(request.model_spec.name, version)
            response = GetModelMetadataResponse(model_spec=_echo(request, version))
            response.metadata[SIGNATURE_DEF].Pack(predictor.signature_defs)
        return response

    def _acquire(self, request: Any) -> Any:
        if not request.HasField("model_spec"):
            raise InvalidArgument("Missing ModelSpec")
        return self._hold(request.model_spec)

    def _hold(self, spec: ModelSpec) -> Any:
        note(spec.name, signature=spec.signature_name)
        version = spec.version.value if spec.HasField("version") else None
        label = spec.version_label if spec.HasField("version_label") else None
        return self._repository.acquire(spec.name, version, label)


class ModelService(Service):
    """`tensorflow.serving.ModelService`.

    Args:
        repository: The models.
        threads: Where requests are worked on.
        metrics: Whose counts a reload may report.
        may_log: Whether configurations may ask for prediction logs.
        budget: Counts the bytes of requests.
    """

    def __init__(
        self,
        repository: Repository,
        threads: WorkerThreads,
        metrics: Metrics | None = None,
        may_log: bool = False,
        budget: ByteBudget | None = None,
    ) -> None:
        super().__init__(repository, threads, budget)
        self._metrics = metrics or Metrics()
        self._may_log = may_log

    async def GetModelStatus(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """States of the versions of a model."""
        return await self._run(GetModelStatusRequest, self._status, raw, context)

    def _status(self, request: GetModelStatusRequest, _: int) -> GetModelStatusResponse:
        if not request.HasField("model_spec"):
            raise InvalidArgument("Missing ModelSpec")
        spec = request.model_spec
        note(spec.name)
        version = spec.version.value if spec.HasField("version") else None
        return status_response(self._repository.status(spec.name, version))

    async def HandleReloadConfigRequest(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Replace the configuration; returns when models new by name serve."""
        return await self._run(ReloadConfigRequest, self._reload, raw, context)

    def _reload(self, request: ReloadConfigRequest, _: int) -> ReloadConfigResponse:
        if request.config.WhichOneof("config") != "model_config_list":
            raise InvalidArgument(
                "ServerModelConfig type not supported by HandleReloadConfigRequest. Only "
                "ModelConfigList is currently supported"
            )
        before = {name: self._metrics.total(name) for name in request.metric_names}
        known = self._repository.configured_names()
        self._repository.reconfigure(served_models(request.config, self._may_log, known))
        response = ReloadConfigResponse()
        for name, total in before.items():
            increase = self._metrics.total(name) - total
            response.metric.add(name=name, int64_value_increase=increase)
        response.status.error_code = Code.OK.value  # type: ignore[assignment]
        return response


def status_response(statuses: list[VersionStatus]) -> GetModelStatusResponse:
    """The message of a status answer, for gRPC and REST."""
    response = GetModelStatusResponse()
    for status in statuses:
        entry = response.model_version_status.add(version=status.version)
        entry.state = status.state.value  # type: ignore[assignment]
        entry.status.error_code = status.error_code.value  # type: ignore[assignment]
        entry.status.error_message = status.error_message
    return response


def _encode_outputs(outputs: Mapping[str, np.ndarray], spec: ModelSpec, content: bool) -> bytes:
    response = PredictResponse(model_spec=spec)
    for alias, array in outputs.items():
        fill_tensor(response.outputs[alias], array, content)
    return response.SerializeToString()


def fill_classes(proto: ClassificationResult, result: Classification) -> None:
    """Put the classes of every example into the message."""
    for row in result.rows():
        classes = proto.classifications.add().classes
        for label, score in row:
            classes.add(label=label.decode("utf-8", "replace"), score=score)


def _echo(request: Any, version: int, signature_name: str = "") -> ModelSpec:
    spec = ModelSpec(name=request.model_spec.name, signature_name=signature_name)
    spec.version.value = version
    return spec
