"""gRPC stubs and handlers made from the service descriptors: no generated `_pb2_grpc` modules.

Generated modules would bind the package to the grpcio version that generated them, and each is only
a table of method names, which the descriptors contain.
"""

from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from gru_serving.protos import model_service_pb2, prediction_service_pb2, profiler_service_pb2

PREDICTION_SERVICE: ServiceDescriptor = prediction_service_pb2.DESCRIPTOR.services_by_name[
    "PredictionService"
]
MODEL_SERVICE: ServiceDescriptor = model_service_pb2.DESCRIPTOR.services_by_name["ModelService"]
PROFILER_SERVICE: ServiceDescriptor = profiler_service_pb2.DESCRIPTOR.services_by_name[
    "ProfilerService"
]


class Stub:
    """Client side of one service: an attribute per method, each a unary-unary callable.

    Args:
        channel: `grpc.Channel` or `grpc.aio.Channel`.
        service: Descriptor of the service, one of this module's.
    """

    def __init__(self, channel: Any, service: ServiceDescriptor) -> None:
        for method in service.methods:
            request, response = _classes(method)
            call = channel.unary_unary(
                f"/{service.full_name}/{method.name}",
                request_serializer=request.SerializeToString,
                response_deserializer=response.FromString,
            )
            setattr(self, method.name, call)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the service has no method {name!r}")


def generic_handler(service: ServiceDescriptor, implementation: object) -> grpc.GenericRpcHandler:
    """Server side of one service.

    Args:
        service: Descriptor of the service, one of this module's.
        implementation: Object with a coroutine method per method of the service, which takes and
            returns serialized messages: `async def Predict(self, request, context)`. Whoever parses
            them chooses the thread.
    """
    handlers: dict[str, Any] = {
        method.name: grpc.unary_unary_rpc_method_handler(getattr(implementation, method.name))
        for method in service.methods
    }
    handler: grpc.GenericRpcHandler = grpc.method_handlers_generic_handler(
        service.full_name, handlers
    )
    return handler


def _classes(method: MethodDescriptor) -> tuple[Any, Any]:
    return (
        message_factory.GetMessageClass(method.input_type),
        message_factory.GetMessageClass(method.output_type),
    )
