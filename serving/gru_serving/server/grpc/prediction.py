"""`tensorflow.serving.PredictionService`."""

from __future__ import annotations

import time
from typing import Any

from gru_serving.errors import Code, InvalidArgument
from gru_serving.inference.service import Inference, LoopLimits
from gru_serving.inference.turns import LONG
from gru_serving.protos.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    GetModelMetadataResponse,
)
from gru_serving.server.byte_budget import FREE, ByteBudget
from gru_serving.server.grpc.requests import (
    Call,
    ClassifyCall,
    MultiInferenceCall,
    PredictCall,
    RegressCall,
    spec_of,
    target_of,
)
from gru_serving.server.grpc.service import Service, fail
from gru_serving.telemetry.metrics import Metrics

SIGNATURE_DEF = "signature_def"
LIMITS = LoopLimits(read=1 << 16, write=1 << 16)
"""Protobuf's own code reads and writes this many bytes in less time than a thread switch."""


class PredictionService(Service):
    """The service.

    Args:
        inference: What answers.
        metrics: Where requests are counted.
        tensor_content: Answer with raw bytes instead of one entry per element.
        budget: Counts the bytes of requests.
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

    async def Predict(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Named tensors in, named tensors out."""
        return await self._infer(PredictCall(raw, context, self._tensor_content), context)

    async def Classify(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Examples in, labels and scores out."""
        return await self._infer(ClassifyCall(raw, context), context)

    async def Regress(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Examples in, one value each out."""
        return await self._infer(RegressCall(raw, context), context)

    async def MultiInference(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Several Classify and Regress tasks over the same examples."""
        return await self._infer(MultiInferenceCall(raw, context), context)

    async def _infer(self, request: Call, context: Any) -> bytes:
        started = time.perf_counter()
        code = Code.CANCELLED
        try:
            with self._budget.call():
                if request.size <= FREE:
                    answer = await self._inference.answer(request)
                else:
                    answer = await self._answer_counted(request)
            code = Code.OK
            return answer
        except Exception as error:
            code, answer = fail(context, error)
            return answer
        finally:
            if request.counted:
                self._metrics.request(request.target.model, request.api, "GRPC", code.name, started)

    async def _answer_counted(self, request: Call) -> bytes:
        """Answer a request of so many bytes that the budget counts them."""
        with self._budget.hold() as held:
            await held.grow(request.size, in_memory=True)
            if request.size > LONG:
                await held.grow(request.size + await self._measure(request), in_memory=True)
            return await self._inference.answer(request)

    async def _measure(self, request: Call) -> int:
        async with self._turns.take(request.size):
            return await self._threads.run(request.measure, self._budget.most)

    async def GetModelMetadata(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Signatures of a loaded version."""
        return await self._run(GetModelMetadataRequest, self._metadata, raw, context)

    def _metadata(self, request: GetModelMetadataRequest) -> GetModelMetadataResponse:
        spec = spec_of(request)
        if not request.metadata_field:
            raise InvalidArgument(
                "GetModelMetadataRequest must specify at least one metadata_field"
            )
        for wanted in request.metadata_field:
            if wanted != SIGNATURE_DEF:
                raise InvalidArgument(f"Metadata field {wanted} is not supported")
        metadata = self._inference.metadata(target_of(spec))
        response = GetModelMetadataResponse(model_spec=metadata.spec)
        response.metadata[SIGNATURE_DEF].Pack(metadata.signatures)
        return response
