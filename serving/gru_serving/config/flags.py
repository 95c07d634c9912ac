"""The flags of `tensorflow_model_server` and of this server, parsed by TF Serving's rules.

Flags are `--name=value`, booleans also without a value. The last of repeated flags wins, an unknown
argument is reported while the server starts anyway, and a bad value ends the start with status 255.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import Field, dataclass, field, fields
from enum import Enum
from typing import Any, TextIO

from gru_serving.config.cpus import schedulable_cpus
from gru_serving.errors import InvalidArgument


class Honour(Enum):
    """The treatment of a flag by this server."""

    YES = "honoured"
    IGNORED = "accepted, but has no effect in this server"
    OURS = "an addition; tensorflow_model_server does not know it"


def flag(default: Any, text: str, honour: Honour = Honour.YES, shown: str = "") -> Any:
    """Declare a dataclass field that is a flag.

    `shown` describes a default that depends on the machine.
    """
    return field(default=default, metadata={"help": text, "honour": honour, "shown": shown})


_CPUS = schedulable_cpus()
_THREADS = 4 * _CPUS


@dataclass(frozen=True)
class Flags:
    """One field per flag, in the order of `--help`."""

    port: int = flag(8500, "TCP port for gRPC; 0 for none")
    grpc_socket_path: str = flag("", "UNIX socket for gRPC, in addition to --port")
    rest_api_port: int = flag(0, "port for HTTP/REST; 0 for none. Must differ from --port")
    rest_api_num_threads: int = flag(_THREADS, "REST requests processed at once", shown="4 x CPUs")
    rest_api_timeout_in_ms: int = flag(
        30000, "time allowed for the model run of a REST request; 0 for no limit"
    )
    rest_api_enable_cors_support: bool = flag(False, "send CORS headers, for browsers")
    model_name: str = flag("default", "name of the model in requests")
    model_base_path: str = flag(
        "", "directory that holds the version directories (1/, 2/, ...), absolute"
    )
    model_config_file: str = flag(
        "",
        "ModelServerConfig as text: several models, version policies, labels. --model_name and "
        "--model_base_path are then ignored",
    )
    model_config_file_poll_wait_seconds: int = flag(
        0, "seconds between reads of --model_config_file; 0 to read it only once"
    )
    file_system_poll_wait_seconds: int = flag(
        1, "seconds between scans for new versions; 0 for one scan, negative for none"
    )
    enable_batching: bool = flag(False, "merge concurrent requests into batches")
    batching_parameters_file: str = flag("", "BatchingParameters as text; needs --enable_batching")
    enable_per_model_batching_parameters: bool = flag(
        False,
        "with --enable_batching, batch only versions with a batching_params.pbtxt, by its "
        "parameters; --batching_parameters_file then sets only the name and number of threads",
    )
    allow_version_labels_for_unavailable_models: bool = flag(
        False, "let new labels point to versions that are not loaded yet"
    )
    max_num_load_retries: int = flag(5, "attempts to load a version after the first failure")
    load_retry_interval_micros: int = flag(
        60_000_000, "time between attempts to load a version; negative for no wait"
    )
    num_load_threads: int = flag(0, "versions loaded at once after the start; 0 for one at a time")
    num_unload_threads: int = flag(0, "versions unloaded at once; 0 for one at a time")
    enable_model_warmup: bool = flag(
        True, "run assets.extra/tf_serving_warmup_requests when a version is loaded"
    )
    num_request_iterations_for_warmup: int = flag(0, "how often to repeat each warmup request")
    monitoring_config_file: str = flag(
        "", "MonitoringConfig as text: Prometheus metrics on --rest_api_port"
    )
    ssl_config_file: str = flag("", "SSLConfig as text: TLS for gRPC")
    grpc_channel_arguments: str = flag("", "k=v,k=v for the gRPC server")
    grpc_max_threads: int = flag(_THREADS, "gRPC requests processed at once", shown="4 x CPUs")
    enable_grpc_healthcheck_service: bool = flag(False, "serve grpc.health.v1.Health")
    enable_serialization_as_tensor_content: bool = flag(
        False, "answer with TensorProto.tensor_content instead of typed lists such as float_val"
    )
    enable_signature_method_name_check: bool = flag(
        False,
        "refuse signatures whose method_name does not fit the request; leave it off for "
        "classifiers and regressors exported by TensorFlow 2",
    )
    saved_model_tags: str = flag("serve", "tags of the MetaGraph to load, separated by commas")
    tensorflow_session_parallelism: int = flag(
        0, "threads of a session, within and between operations; 0 for one per CPU"
    )
    tensorflow_intra_op_parallelism: int = flag(0, "threads within one operation")
    tensorflow_inter_op_parallelism: int = flag(0, "operations run at once")
    tensorflow_session_config_file: str = flag(
        "", "ConfigProto as text; flags for the same settings override it"
    )
    per_process_gpu_memory_fraction: float = flag(
        0.0, "fraction of the GPU memory to use; 0 lets TensorFlow decide"
    )
    flush_filesystem_caches: bool = flag(
        True, "drop model files from the page cache", Honour.IGNORED
    )
    remove_unused_fields_from_bundle_metagraph: bool = flag(
        True, "reduce the memory of loaded models", Honour.IGNORED
    )
    enable_profiler: bool = flag(
        False,
        "serve tensorflow.ProfilerService on --port; it writes files where the caller asks",
    )
    prefer_tflite_model: bool = flag(False, "serve model.tflite if the version contains one")
    num_tflite_pools: int = flag(_CPUS, "TFLite interpreter pools per model", shown="CPUs")
    num_tflite_interpreters_per_pool: int = flag(1, "interpreters per pool")
    mixed_precision: str = flag("", "bfloat16 rewrite of the graph", Honour.IGNORED)
    platform_config_file: str = flag("", "PlatformConfigMap as text", Honour.IGNORED)
    thread_pool_factory_config_file: str = flag("", "ThreadPoolConfig as text", Honour.IGNORED)
    use_alts_credentials: bool = flag(False, "Google ALTS for gRPC", Honour.IGNORED)
    skip_initialize_tpu: bool = flag(False, "do not initialise TPUs", Honour.IGNORED)
    xla_cpu_compilation_enabled: bool = flag(False, "XLA on the CPU", Honour.IGNORED)
    xla_gpu_compilation_enabled: bool = flag(False, "XLA on the GPU", Honour.IGNORED)
    version: bool = flag(False, "print the versions and exit")
    bind_address: str = flag(
        "127.0.0.1",
        "address to listen on; 0.0.0.0 for all interfaces, as tensorflow_model_server does",
        Honour.OURS,
    )
    allowed_hosts: str = flag(
        "",
        "comma-separated host names that REST accepts besides loopback names; * for all. Default: "
        "loopback names on loopback, otherwise all. Pages of other sites are refused",
        Honour.OURS,
    )
    workers: int = flag(
        1,
        "processes that answer requests behind one address; more than one needs Linux. Each has "
        "its own copy of every model, and a part of --max_requests_mib",
        Honour.OURS,
    )
    drain_seconds: int = flag(
        20, "time for requests in progress after SIGTERM; then they are cancelled", Honour.OURS
    )
    isolate_models: bool = flag(
        False,
        "serve the other models when one is missing or cannot be loaded, at startup and when "
        "versions or the configuration change",
        Honour.OURS,
    )
    servable_versions_always_present: bool = flag(
        False,
        "keep the last versions of a model in service when none is left under its base path, "
        "rather than unload them as tensorflow_model_server does",
        Honour.OURS,
    )
    trial_load: str = flag(
        "auto",
        "load a version in a separate process first: auto for versions without digests of their "
        "files that have not come through such a load before, always for all, never for none",
        Honour.OURS,
    )
    trusted_signers: str = flag(
        "",
        "PEM files separated by commas: public keys, and certificates of authorities. Versions "
        "that none of them has signed are refused. Reread for every version",
        Honour.OURS,
    )
    runtime: str = flag(
        "auto",
        "what runs models: onnx for ONNX Runtime, tensorflow, or auto for ONNX Runtime where an "
        "export has graphs for it that answer its golden requests, and TensorFlow elsewhere",
        Honour.OURS,
    )
    strict_integers: bool = flag(
        False,
        "refuse REST requests with integers beyond the type of their input, as 256 for uint8, "
        "which otherwise wrap around, to 0, as in tensorflow_model_server",
        Honour.OURS,
    )
    load_timeout_seconds: int = flag(
        3600, "time limit for loading one version, warmup included; 0 for no limit", Honour.OURS
    )
    rest_ssl_config_file: str = flag(
        "", "SSLConfig as text: TLS for REST; may be the file of --ssl_config_file", Honour.OURS
    )
    rest_keep_alive_seconds: int = flag(
        75,
        "time that an idle REST connection stays open; longer than a proxy keeps those of its "
        "pool, or it sends requests into connections that are about to end",
        Honour.OURS,
    )
    auth_token_file: str = flag(
        "",
        "file of bearer tokens, one per line; REST and gRPC requests without one are refused, "
        "except health checks. Reread when it changes",
        Honour.OURS,
    )
    enable_playground: bool = flag(
        False,
        "serve a page at /playground/ on --rest_api_port to try the models in a browser; it also "
        "shows their model cards and golden requests",
        Honour.OURS,
    )
    max_request_mib: int = flag(
        128,
        "largest request, as sent and unpacked: a body over REST (413 beyond), a message over gRPC "
        "(RESOURCE_EXHAUSTED beyond)",
        Honour.OURS,
    )
    max_requests_mib: int = flag(
        512,
        "total size of all requests in progress; requests beyond it wait for up to ten seconds "
        "and are then refused. The bytes of requests of up to 64 KiB do not count; over gRPC, 32 "
        "calls per MiB may be in progress, and further ones are refused at once",
        Honour.OURS,
    )
    access_log: str = flag(
        "", "file that gets one line of JSON per request; - for stdout", Honour.OURS
    )
    tracing: bool = flag(
        False,
        "trace requests with OpenTelemetry: the OTEL_* variables say where traces go, which are "
        "sampled, and the name of the service",
        Honour.OURS,
    )
    prediction_log_directory: str = flag(
        "",
        "directory for sampled requests with their answers, as TFRecords of PredictionLog",
        Honour.OURS,
    )
    prediction_log_sampling_rate: float = flag(
        0.01,
        "fraction of requests that is logged, 0 to 1; a model's logging_config overrides it",
        Honour.OURS,
    )
    prediction_log_file_mib: int = flag(64, "size at which a new file is started", Honour.OURS)
    prediction_log_files: int = flag(16, "files kept per model", Honour.OURS)


FLAGS: tuple[Field[Any], ...] = fields(Flags)

REPLICA_FLAGS = frozenset(
    """
    allow_version_labels_for_unavailable_models batching_parameters_file drain_seconds
    enable_batching enable_model_warmup enable_per_model_batching_parameters
    enable_serialization_as_tensor_content enable_signature_method_name_check
    file_system_poll_wait_seconds grpc_max_threads isolate_models load_retry_interval_micros
    load_timeout_seconds max_num_load_retries max_request_mib max_requests_mib num_load_threads
    num_request_iterations_for_warmup num_tflite_interpreters_per_pool num_tflite_pools
    num_unload_threads per_process_gpu_memory_fraction prefer_tflite_model
    rest_api_enable_cors_support rest_api_timeout_in_ms runtime saved_model_tags
    servable_versions_always_present strict_integers tensorflow_inter_op_parallelism
    tensorflow_intra_op_parallelism tensorflow_session_config_file tensorflow_session_parallelism
    trial_load
    """.split()  # noqa: SIM905 (a name a line would fill a page)
)
"""Flags that a replica of Ray Serve honours; the others are about listeners, logs and processes."""


def notes(flags: Flags) -> list[str]:
    """List the startup messages about flags that were set but have no effect."""
    said = []
    for one in FLAGS:
        honour = one.metadata["honour"]
        value = getattr(flags, one.name)
        if honour is Honour.IGNORED and value != one.default:
            said.append(f"--{one.name}={value}")
    return [f"{' '.join(said)}: {Honour.IGNORED.value}"] if said else []


def check(flags: Flags) -> None:
    """Refuse the combinations of flags that TF Serving refuses.

    Raises:
        InvalidArgument: The flags contradict each other; the message is TF Serving's.
    """
    if flags.port == 0 and not flags.grpc_socket_path:
        raise InvalidArgument(
            "At least one of server_options.grpc_port or server_options.grpc_socket_path must be "
            "set."
        )
    if flags.use_alts_credentials and flags.ssl_config_file:
        raise InvalidArgument(
            "Either use_alts_credentials must be false or ssl_config_file must be empty."
        )
    if not flags.model_base_path and not flags.model_config_file:
        raise InvalidArgument(
            "Both server_options.model_base_path and server_options.model_config_file are empty!"
        )
    if flags.batching_parameters_file and not flags.enable_batching:
        raise InvalidArgument(
            "server_options.batching_parameters_file is set without setting "
            "server_options.enable_batching to true."
        )
    if (
        flags.tensorflow_session_parallelism > 0
        and flags.tensorflow_intra_op_parallelism > 0
        and flags.tensorflow_inter_op_parallelism > 0
    ):
        raise InvalidArgument(
            "Either configure server_options.tensorflow_session_parallelism or "
            "(server_options.tensorflow_intra_op_parallelism, "
            "server_options.tensorflow_inter_op_parallelism) separately. You cannot configure all."
        )
    if flags.enable_playground and not flags.rest_api_port:
        raise InvalidArgument("--enable_playground needs --rest_api_port; got no port")
    if flags.trial_load not in ("auto", "always", "never"):
        raise InvalidArgument(
            f"--trial_load must be auto, always or never; got {flags.trial_load!r}"
        )
    if flags.runtime not in ("auto", "tensorflow", "onnx"):
        raise InvalidArgument(f"--runtime must be auto, tensorflow or onnx; got {flags.runtime!r}")
    for name in ("port", "rest_api_port"):
        if not 0 <= getattr(flags, name) <= 65535:
            raise InvalidArgument(
                f"--{name} must be between 0 and 65535; got {getattr(flags, name)}"
            )
    least_of = {"drain_seconds": 0, "load_timeout_seconds": 0, "rest_keep_alive_seconds": 1}
    for name, least in least_of.items():
        if getattr(flags, name) < least:
            raise InvalidArgument(f"--{name} must be at least {least}; got {getattr(flags, name)}")
    _check_workers(flags)
    if not 1 <= flags.max_request_mib <= flags.max_requests_mib:
        raise InvalidArgument(
            "--max_request_mib must be between 1 and --max_requests_mib; got "
            f"{flags.max_request_mib} and {flags.max_requests_mib}"
        )


_MAX_WORKERS = 256


def _check_workers(flags: Flags) -> None:
    """Check that several processes can do what the flags ask for.

    Raises:
        InvalidArgument: A flag needs a single process; the message names the flag.
    """
    if not 1 <= flags.workers <= _MAX_WORKERS:
        raise InvalidArgument(
            f"--workers must be between 1 and {_MAX_WORKERS}; got {flags.workers}"
        )
    if flags.workers == 1:
        return
    if sys.platform != "linux":
        raise InvalidArgument(
            f"--workers={flags.workers} needs Linux, which shares a port among processes; "
            "elsewhere run one server per port behind a proxy"
        )
    if flags.grpc_socket_path:
        raise InvalidArgument(
            f"--grpc_socket_path needs --workers=1: a UNIX socket has one process behind it; got "
            f"--workers={flags.workers}"
        )
    if flags.enable_profiler:
        raise InvalidArgument(
            "--enable_profiler needs --workers=1: a profile is of one process; got "
            f"--workers={flags.workers}"
        )
    if flags.access_log == "-":
        raise InvalidArgument(
            "--access_log=- needs --workers=1: lines of several processes would mix in a pipe; "
            f"name a file; got --workers={flags.workers}"
        )
    if flags.prediction_log_directory and flags.prediction_log_files < flags.workers:
        raise InvalidArgument(
            "--prediction_log_files must be at least --workers, as each process writes a file of "
            f"its own; got {flags.prediction_log_files} and {flags.workers}"
        )


_BY_NAME = {one.name: one for one in FLAGS}
_INT64 = {"load_retry_interval_micros", "tensorflow_session_parallelism"}


class HelpRequested(Exception):  # noqa: N818 (no error)
    """`--help` was among the arguments."""


def parse_flags(argv: Sequence[str], stdout: TextIO | None = None) -> Flags:
    """Parse a command line.

    Args:
        argv: Arguments without the program's name.
        stdout: Stream that receives `unknown argument: X` and the usage, as TF Serving prints them.

    Raises:
        HelpRequested: The command line has `--help`.
        InvalidArgument: A flag has a value it cannot have.
    """
    out = sys.stdout if stdout is None else stdout
    given: dict[str, Any] = {}
    unknown = []
    for argument in argv:
        if argument in ("--help", "-h"):
            raise HelpRequested
        match = re.fullmatch(r"--([A-Za-z0-9_]+)(?:=(.*))?", argument, re.DOTALL)
        known = _BY_NAME.get(match.group(1)) if match else None
        if match is None or known is None:
            unknown.append(argument)
            continue
        if match.group(2) is None and not isinstance(known.default, bool):
            unknown.append(argument)
            continue
        given[known.name] = True if match.group(2) is None else _value(known, match.group(2))
    if unknown:
        for argument in unknown:
            print(f"unknown argument: {argument}", file=out)
        if any(argument.lstrip("-").split("=")[0] in _BY_NAME for argument in unknown):
            print("(flags take their value after '=': --port=8500)", file=out)
        print(usage(), file=out)
    return Flags(**given)


def _value(known: Field[Any], text: str) -> bool | int | float | str:
    try:
        if isinstance(known.default, bool):
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        if isinstance(known.default, int):
            number = int(text) if re.fullmatch(r"\s*[-+]?[0-9]+\s*", text) else None
            bits = 63 if known.name in _INT64 else 31
            if number is None or not -(1 << bits) <= number < 1 << bits:
                raise ValueError(text)
            return number
        if isinstance(known.default, float):
            return float(text)
    except (KeyError, ValueError):
        raise InvalidArgument(
            f"Couldn't interpret value {text} for flag {known.name}: expected {_kind(known)}"
        ) from None
    return text


def _kind(known: Field[Any]) -> str:
    if isinstance(known.default, bool):
        return "true or false"
    if isinstance(known.default, int):
        return "a 64-bit integer" if known.name in _INT64 else "a 32-bit integer"
    return "a number" if isinstance(known.default, float) else "text"


def usage() -> str:
    """List all flags with defaults and meaning."""
    lines = [
        "usage: gru-serve serve --model_base_path=/models/sentiment --model_name=sentiment",
        "                       --rest_api_port=8501 [--flag=value ...]",
        "",
        "Serve SavedModels over gRPC and REST, with the APIs and the flags of TF Serving.",
        "The base path holds one directory per version, named by a number (1/, 2/, ...).",
        "",
        "Flags:",
    ]
    for one in FLAGS:
        default = one.default
        shown = str(default).lower() if isinstance(default, bool) else default
        if words := one.metadata["shown"]:
            shown = f"<{words}>"
        lines.append(f"    --{one.name}={shown!r}" if shown == "" else f"    --{one.name}={shown}")
        note = "" if one.metadata["honour"] is Honour.YES else f" ({one.metadata['honour'].value})"
        lines.append(f"        {one.metadata['help']}{note}")
    lines += [
        "",
        "examples:",
        "  gru-serve serve --model_base_path=/models/sentiment --model_name=sentiment "
        "--rest_api_port=8501",
        "  curl http://localhost:8501/v1/models/sentiment    # what is served",
        '  gru-serve predict --url http://localhost:8501 --model sentiment "a text"',
        "  gru-serve serve --model_config_file=models.config --rest_api_port=8501",
    ]
    return "\n".join(lines)
