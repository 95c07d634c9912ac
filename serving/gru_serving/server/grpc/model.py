"""`tensorflow.serving.ModelService`."""

from __future__ import annotations

from typing import Any

from gru_serving.config.files import served_models
from gru_serving.errors import Code, InvalidArgument
from gru_serving.inference.request import Target
from gru_serving.inference.service import Inference
from gru_serving.protos.get_model_status_pb2 import GetModelStatusRequest, GetModelStatusResponse
from gru_serving.protos.model_management_pb2 import ReloadConfigRequest, ReloadConfigResponse
from gru_serving.server.byte_budget import ByteBudget
from gru_serving.server.grpc.requests import spec_of
from gru_serving.server.grpc.service import Service
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.request_record import note


class ModelService(Service):
    """The service.

    Args:
        inference: What answers.
        metrics: Whose counts a reload may report.
        may_log: Whether configurations may ask for prediction logs.
        budget: Counts the bytes of requests.
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

    async def GetModelStatus(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """States of the versions of a model."""
        return await self._run(GetModelStatusRequest, self._status, raw, context)

    def _status(self, request: GetModelStatusRequest) -> GetModelStatusResponse:
        spec = spec_of(request)
        note(spec.name)
        version = spec.version.value if spec.HasField("version") else None
        return self._inference.status(Target(spec.name, version))

    async def HandleReloadConfigRequest(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Replace the configuration; returns when models new by name serve."""
        return await self._run(ReloadConfigRequest, self._reload, raw, context)

    def _reload(self, request: ReloadConfigRequest) -> ReloadConfigResponse:
        if request.config.WhichOneof("config") != "model_config_list":
            raise InvalidArgument(
                "ServerModelConfig type not supported by HandleReloadConfigRequest. Only "
                "ModelConfigList is currently supported"
            )
        repository = self._inference.repository
        before = {name: self._metrics.total(name) for name in request.metric_names}
        known = repository.configured_names()
        repository.reconfigure(served_models(request.config, self._may_log, known))
        response = ReloadConfigResponse()
        for name, total in before.items():
            increase = self._metrics.total(name) - total
            response.metric.add(name=name, int64_value_increase=increase)
        response.status.error_code = Code.OK.value  # type: ignore[assignment]
        return response
