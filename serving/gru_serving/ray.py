"""Models behind Ray Serve: the server's engine and interfaces in replicas on many machines.

Ray starts, places, counts and replaces the replicas, and its proxies listen. A replica is the
server without its listeners: a repository that watches the base paths, and the REST application
and the gRPC services, which answer what Ray's proxies hand over.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ray import serve
from starlette.applications import Starlette
from starlette.routing import Mount

from gru_serving.config.files import ServedModel, read_model_config, single_model
from gru_serving.config.flags import FLAGS, REPLICA_FLAGS, Flags
from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.errors import InvalidArgument, Unimplemented
from gru_serving.inference.service import Inference
from gru_serving.protos.services import MODEL_SERVICE, PREDICTION_SERVICE, generic_handler
from gru_serving.repository.repository import Repository
from gru_serving.server.byte_budget import ByteBudget
from gru_serving.server.grpc.services import ModelService, PredictionService, refuse
from gru_serving.server.process import repository_options, version_loader
from gru_serving.server.rest.app import Api
from gru_serving.server.rest.guards import cors_headers
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.server_log import start_log

APPLICATION, DEPLOYMENT = "keras-gru", "models"
"""Names in Ray Serve."""

MAX_REQUESTS = 100
"""Requests that a proxy sends to a replica before one of them is answered."""


class ReplyBytes(bytes):
    """A serialized response, in the form in which Ray's gRPC proxy takes messages."""

    def SerializeToString(self) -> bytes:  # noqa: N802
        """Return the bytes themselves."""
        return bytes(self)


class CallContext:
    """The context of a gRPC call, as far as a replica knows it: Ray keeps the client's deadline.

    Args:
        context: Context that Ray hands to a replica.
    """

    def __init__(self, context: Any) -> None:
        self.set_code = context.set_code
        self.set_details = context.set_details

    def time_remaining(self) -> None:
        """None, as for a call without a deadline."""


class Replica:
    """One copy of the models, in a process that Ray starts; it loads them before it answers.

    Its methods are those of `tensorflow.serving.PredictionService` and `ModelService`.

    Args:
        models: Models to serve; the machine of the replica sees their base paths.
        flags: Flags of the server, of which those in `REPLICA_FLAGS` count.

    Raises:
        ServingError: A version cannot be loaded, or a file of a flag cannot be read.
    """

    def __init__(self, models: Sequence[ServedModel], flags: Flags) -> None:
        start_log()
        self._flags = flags
        self._metrics = metrics = Metrics()
        loader = version_loader(flags, metrics)
        options = repository_options(flags)
        repository = Repository(models, loader, options, loader.note_metadata, loader.forget)
        repository.start()
        threads = WorkerThreads(max(1, flags.grpc_max_threads), "models")
        self._inference = Inference(repository, threads, metrics=metrics)
        self._budget = ByteBudget(flags.max_request_mib << 20, flags.max_requests_mib << 20)
        content = flags.enable_serialization_as_tensor_content
        self._services = {
            PREDICTION_SERVICE: PredictionService(self._inference, metrics, content, self._budget),
            MODEL_SERVICE: ModelService(self._inference, metrics, budget=self._budget),
        }

    def __serve_build_asgi_app__(self) -> Starlette:
        """Return the REST application, made by Ray after the replica.

        Starlette answers its lifespan.
        """
        api = Api(
            self._inference,
            self._flags.rest_api_timeout_in_ms,
            cors_headers(self._flags),
            self._metrics,
            budget=self._budget,
            strict_integers=self._flags.strict_integers,
        )
        return Starlette(routes=[Mount("/", api)])

    async def HandleReloadConfigRequest(  # noqa: N802
        self,
        raw: bytes,  # noqa: ARG002 (it is not even read)
        grpc_context: Any,
    ) -> ReplyBytes:
        """Refuse: it would change one replica, and not those that Ray starts later."""
        text = "replicas share one configuration: change it with gru-serve deploy-ray CONFIG"
        return ReplyBytes(refuse(CallContext(grpc_context), Unimplemented(text)))


def _add_method(service: Any, name: str) -> None:
    """Give `Replica` a method of a gRPC service."""

    async def answer(self: Replica, raw: bytes, grpc_context: Any) -> ReplyBytes:
        method = getattr(self._services[service], name)
        return ReplyBytes(await method(raw, CallContext(grpc_context)))

    answer.__name__ = name
    setattr(Replica, name, answer)


for _service in (PREDICTION_SERVICE, MODEL_SERVICE):
    for _method in _service.methods:
        if not hasattr(Replica, _method.name):
            _add_method(_service, _method.name)


def add_prediction_service(servicer: object, server: Any) -> None:
    """Add `tensorflow.serving.PredictionService` to a gRPC proxy of Ray's."""
    server.add_generic_rpc_handlers((generic_handler(PREDICTION_SERVICE, servicer),))


def add_model_service(servicer: object, server: Any) -> None:
    """Add `tensorflow.serving.ModelService` to a gRPC proxy of Ray's."""
    server.add_generic_rpc_handlers((generic_handler(MODEL_SERVICE, servicer),))


def deployment(
    path: str | os.PathLike[str], flags: Flags | None = None, **options: Any
) -> serve.Application:
    """Models as an application for `ray.serve.run`.

    Args:
        path: Base path of a model, which is served under the name of the directory; or a
            ModelServerConfig as text. All machines of the cluster see the base paths.
        flags: Flags of the server for every replica, such as `Flags(enable_batching=True)`.
        **options: Options of `ray.serve.deployment`, such as `num_replicas`,
            `autoscaling_config`, `ray_actor_options` or `max_surge_percent`.

    Raises:
        ServingError: The configuration is invalid, or a flag is set that no replica honours.
    """
    flags = flags or Flags()
    for one in FLAGS:
        value = getattr(flags, one.name)
        if one.name not in REPLICA_FLAGS and value != one.default:
            raise InvalidArgument(
                f"--{one.name}: expected a flag that replicas of Ray Serve honour, such as "
                f"--enable_batching; got {value!r}. Ports, TLS and logs are Ray's there: "
                "docs/how_to/many_machines.md"
            )
    path = Path(path).absolute()
    models = [single_model(path.name, str(path))] if path.is_dir() else read_model_config(str(path))
    if not models:
        raise InvalidArgument(f"{path}: expected a model_config_list with a model; got none")
    if shadowed := [model.name for model in models if model.shadow is not None]:
        raise InvalidArgument(
            f"{path}: expected no shadow, as replicas of Ray Serve compare no versions; take it "
            f"out of the model {shadowed[0]}"
        )
    defaults = {
        "max_ongoing_requests": MAX_REQUESTS,
        "graceful_shutdown_timeout_s": flags.drain_seconds,
    }
    made = serve.deployment(serve.ingress()(Replica), name=DEPLOYMENT)
    return made.options(**{**defaults, **options}).bind(models, flags)


def deploy(application: serve.Application, port: int, rest_port: int, host: str) -> None:
    """Start Ray Serve in the connected cluster, unless it runs, and deploy an application.

    An application that was deployed before is replaced, replica by replica. Where Ray Serve runs
    already, it keeps its ports.

    Args:
        application: Application of `deployment`.
        port: TCP port of gRPC on every machine with a replica, on all its addresses.
        rest_port: TCP port of REST on every machine with a replica.
        host: Address on which REST listens.

    Raises:
        RuntimeError: The replicas could not be started; names the error of the last one.
    """
    services = [f"{__name__}.{add.__name__}" for add in (add_prediction_service, add_model_service)]
    serve.start(
        http_options={"host": host, "port": rest_port},
        grpc_options={"port": port, "grpc_servicer_functions": services},
    )
    try:
        serve.run(application, name=APPLICATION)
    except RuntimeError as error:
        # Ray's error says that there was one; what it was, traceback and all, is in the status.
        said = serve.status().applications[APPLICATION].deployments[DEPLOYMENT].message
        reasons = re.findall(r"^gru_serving\.errors\.(\w+: .+)", said, re.MULTILINE)
        raise RuntimeError(f"no replica starts: {reasons[-1]}" if reasons else said) from error
