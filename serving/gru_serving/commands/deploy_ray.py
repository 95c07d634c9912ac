"""`gru-serve deploy-ray`: serve models with Ray Serve, in replicas on the machines of a cluster."""

import argparse
from collections.abc import Sequence
from typing import Any

from gru_serving.commands.terminal import command_parser, run_command
from gru_serving.config.flags import FLAGS, REPLICA_FLAGS, parse_flags

_EXAMPLES = """examples:
  ray start --head
  gru-serve deploy-ray /models/tickets --replicas 2
  gru-serve deploy-ray /models/models.config --replicas 2 --max-replicas 8 --enable_batching
  gru-serve predict --url http://localhost:8501 --model tickets "where is my order?"
  serve status

CONFIG is a file of models, version policies and labels, as for gru-serve serve
--model_config_file, or the base path of one model. All machines must see the base paths. Replicas
load new versions by themselves. Deploy again to change the configuration: Ray replaces the
replicas one after the other. Ports are those of the first deployment until `serve shutdown`.

exit status: 0 deployed; 2 wrong arguments or files, no cluster, or a replica that does not start
"""


def main(argv: Sequence[str]) -> int:
    """Deploy models; returns the exit status, as the help says."""
    parser = command_parser(
        "deploy-ray",
        "Serve models in a cluster of Ray: gRPC and REST on every machine that has a replica.",
        _EXAMPLES,
    )
    parser.add_argument("config", metavar="CONFIG", help="model config file, or a base path")
    add = parser.add_argument
    add("--address", default="auto", help="address of the cluster; by default that of this machine")
    add("--replicas", type=int, default=1, metavar="N", help="number of replicas; 1 by default")
    add("--max-replicas", type=int, metavar="N", help="most replicas, as requests in progress need")
    add("--cpus", type=float, default=1, metavar="N", help="CPUs of a replica; 1 by default")
    add("--gpus", type=float, default=0, metavar="N", help="GPUs of a replica; 0 by default")
    add("--host", default="127.0.0.1", help="address for REST; 0.0.0.0 for all; gRPC has all")
    add("--port", type=int, default=8500, help="port for gRPC; 8500 by default")
    add("--rest-port", type=int, default=8501, help="port for REST; 8501 by default")
    group = parser.add_argument_group("flags of gru-serve serve")
    for one in FLAGS:
        if one.name in REPLICA_FLAGS:
            switch: dict[str, Any] = {}
            if isinstance(one.default, bool):
                switch = {"nargs": "?", "const": "true"}
            group.add_argument(
                f"--{one.name}", metavar="VALUE", help=one.metadata["help"], **switch
            )
    return run_command(parser, argv, _deploy, errors=(ConnectionError, RuntimeError))


def _deploy(arguments: argparse.Namespace) -> int:
    import ray
    from ray import serve

    from gru_serving.ray import deploy, deployment

    given = {name: getattr(arguments, name) for name in sorted(REPLICA_FLAGS)}
    flags = parse_flags([f"--{key}={value}" for key, value in given.items() if value is not None])
    application = deployment(arguments.config, flags, **_options(arguments))
    try:
        ray.init(arguments.address, log_to_driver=False)
    except ConnectionError as error:
        raise ConnectionError(f"{error} Start one with: ray start --head") from None
    if serve.status().proxies:
        print("Ray Serve runs already, and keeps its ports; `serve shutdown` frees them")
    deploy(application, arguments.port, arguments.rest_port, arguments.host)
    print(f"gRPC  port {arguments.port}\nREST  http://{arguments.host}:{arguments.rest_port}")
    return 0


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the deployment."""
    most, replicas = arguments.max_replicas, arguments.replicas
    options: dict[str, Any] = {
        "ray_actor_options": {"num_cpus": arguments.cpus, "num_gpus": arguments.gpus}
    }
    if most is None:
        return {**options, "num_replicas": replicas}
    if most < replicas:
        raise ValueError(f"--max-replicas: expected at least --replicas {replicas}; got {most}")
    scaling = {"min_replicas": replicas, "max_replicas": most}
    return {**options, "autoscaling_config": scaling}
