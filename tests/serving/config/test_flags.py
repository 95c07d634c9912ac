"""TF Serving's flags, read by TF Serving's rules."""

import io
import os
import subprocess
import sys

import pytest

from gru_serving.config.cpus import schedulable_cpus
from gru_serving.config.flags import (
    FLAGS,
    Flags,
    HelpRequested,
    Honour,
    check,
    notes,
    parse_flags,
    usage,
)
from gru_serving.errors import InvalidArgument
from tests.serving.servers import REPOSITORY

# Names and defaults of all 48, from upstream's main.cc and server.h. Here the profiler is off.
DEVIATIONS = {"enable_profiler": False}
CPUS = schedulable_cpus()
UPSTREAM = {
    "port": 8500, "grpc_socket_path": "", "rest_api_port": 0, "rest_api_num_threads": 4 * CPUS,
    "rest_api_timeout_in_ms": 30000, "rest_api_enable_cors_support": False,
    "model_name": "default", "model_base_path": "", "model_config_file": "",
    "model_config_file_poll_wait_seconds": 0, "file_system_poll_wait_seconds": 1,
    "enable_batching": False, "batching_parameters_file": "",
    "enable_per_model_batching_parameters": False,
    "allow_version_labels_for_unavailable_models": False, "max_num_load_retries": 5,
    "load_retry_interval_micros": 60000000, "num_load_threads": 0, "num_unload_threads": 0,
    "enable_model_warmup": True, "num_request_iterations_for_warmup": 0,
    "monitoring_config_file": "", "ssl_config_file": "", "grpc_channel_arguments": "",
    "grpc_max_threads": 4 * CPUS, "enable_grpc_healthcheck_service": False,
    "enable_serialization_as_tensor_content": False, "enable_signature_method_name_check": False,
    "saved_model_tags": "serve", "tensorflow_session_parallelism": 0,
    "tensorflow_intra_op_parallelism": 0, "tensorflow_inter_op_parallelism": 0,
    "tensorflow_session_config_file": "", "per_process_gpu_memory_fraction": 0.0,
    "flush_filesystem_caches": True, "remove_unused_fields_from_bundle_metagraph": True,
    "enable_profiler": True, "prefer_tflite_model": False, "num_tflite_pools": CPUS,
    "num_tflite_interpreters_per_pool": 1, "mixed_precision": "", "platform_config_file": "",
    "thread_pool_factory_config_file": "", "use_alts_credentials": False,
    "skip_initialize_tpu": False, "xla_cpu_compilation_enabled": False,
    "xla_gpu_compilation_enabled": False, "version": False,
}  # fmt: skip


def parse(*argv):
    out = io.StringIO()
    return parse_flags(argv, out), out.getvalue()


def test_all_flags_with_their_defaults():
    assert len(UPSTREAM) == 48
    ours = {flag.name: flag.default for flag in FLAGS if flag.metadata["honour"] is not Honour.OURS}
    assert ours == UPSTREAM | DEVIATIONS
    assert {f.name for f in FLAGS} - UPSTREAM.keys() == {
        "access_log", "allowed_hosts", "auth_token_file", "bind_address", "drain_seconds",
        "enable_playground", "isolate_models", "load_timeout_seconds", "max_request_mib",
        "max_requests_mib",
        "prediction_log_directory", "prediction_log_file_mib", "prediction_log_files",
        "prediction_log_sampling_rate", "rest_keep_alive_seconds", "rest_ssl_config_file",
        "runtime", "servable_versions_always_present", "strict_integers", "tracing",
        "trial_load", "trusted_signers", "workers",
    }  # fmt: skip
    assert Flags().bind_address == "127.0.0.1"


BOUND = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from gru_serving.config.batching_options import PoolOptions
from gru_serving.config.flags import Flags
print(PoolOptions().threads, Flags().rest_api_num_threads, Flags().num_tflite_pools)
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_only_cpus_that_the_process_may_use_count():
    run = subprocess.run(
        [sys.executable, "-c", BOUND], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["1", "4", "1"]


@pytest.mark.parametrize(
    ("argument", "name", "value"),
    [
        ("--port=1", "port", 1),
        ("--enable_batching", "enable_batching", True),
        ("--enable_batching=TRUE", "enable_batching", True),
        ("--enable_model_warmup=0", "enable_model_warmup", False),
        ("--enable_model_warmup=False", "enable_model_warmup", False),
        ("--model_name=", "model_name", ""),
        ("--model_name=a=b", "model_name", "a=b"),
        ("--load_retry_interval_micros=-1", "load_retry_interval_micros", -1),
        ("--load_retry_interval_micros=99999999999", "load_retry_interval_micros", 99999999999),
        (f"--load_retry_interval_micros={2**63 - 1}", "load_retry_interval_micros", 2**63 - 1),
        (f"--load_retry_interval_micros={-(2**63)}", "load_retry_interval_micros", -(2**63)),
        (f"--port={2**31 - 1}", "port", 2**31 - 1),
        (f"--port={-(2**31)}", "port", -(2**31)),
        ("--per_process_gpu_memory_fraction=0.5", "per_process_gpu_memory_fraction", 0.5),
    ],
)
def test_values(argument, name, value):
    flags, said = parse(argument)
    assert getattr(flags, name) == value
    assert said == ""


def test_last_one_wins():
    assert parse("--model_name=a", "--model_name=b")[0].model_name == "b"


@pytest.mark.parametrize("argument", ["--nix=1", "stray", "-port=1", "--port", "--enable-batching"])
def test_unknown_arguments_are_reported_and_the_rest_counts(argument):
    flags, said = parse(argument, "--port=7")
    assert flags.port == 7
    assert said.startswith(f"unknown argument: {argument}\n")
    assert usage() in said


EXPLANATION = "(flags take their value after '=': --port=8500)"


def test_value_after_a_blank_is_not_accepted_but_explained():
    flags, said = parse("--port", "9000")
    assert flags.port == 8500
    assert "unknown argument: --port\nunknown argument: 9000\n" in said
    assert EXPLANATION in said
    assert EXPLANATION not in parse("--nix", "stray")[1]


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--port=abc", "a 32-bit integer"),
        ("--port=", "a 32-bit integer"),
        ("--port=99999999999", "a 32-bit integer"),
        ("--port=1.5", "a 32-bit integer"),
        (f"--port={2**31}", "a 32-bit integer"),
        (f"--port={-(2**31) - 1}", "a 32-bit integer"),
        (f"--load_retry_interval_micros={2**63}", "a 64-bit integer"),
        (f"--load_retry_interval_micros={-(2**63) - 1}", "a 64-bit integer"),
        ("--enable_batching=yes", "true or false"),
        ("--per_process_gpu_memory_fraction=x", "a number"),
    ],
)
def test_bad_values(argument, expected):
    name, _, value = argument[2:].partition("=")
    with pytest.raises(InvalidArgument) as caught:
        parse(argument)
    assert str(caught.value) == (
        f"Couldn't interpret value {value} for flag {name}: expected {expected}"
    )


def test_help_is_not_an_unknown_argument():
    with pytest.raises(HelpRequested):
        parse("--port=1", "--help")


def test_usage_names_every_flag_and_how_to_ask():
    text = usage()
    for flag in FLAGS:
        assert f"    --{flag.name}=" in text
    assert "gru-serve predict" in text
    for line in ("--port=8500", "--model_name=default", "--enable_batching=false"):
        assert f"    {line}\n" in text
    assert "    --model_base_path=''\n" in text
    for line in ("rest_api_num_threads=<4 x CPUs>", "num_tflite_pools=<CPUs>"):
        assert f"    --{line}\n" in text  # the same on every machine


def test_usage_notes_the_flags_that_are_no_plain_ones():
    text = usage()
    for flag in FLAGS:
        _, _, after = text.partition(f"    --{flag.name}=")
        meaning = after.split("\n")[1]
        noted = [honour for honour in Honour if meaning.endswith(f"({honour.value})")]
        plain = flag.metadata["honour"] is Honour.YES
        assert noted == ([] if plain else [flag.metadata["honour"]])


BASE = "--model_base_path=/m"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([BASE, "--port=0"], "At least one of server_options.grpc_port or "
         "server_options.grpc_socket_path must be set."),
        ([], "Both server_options.model_base_path and server_options.model_config_file are empty!"),
        ([BASE, "--use_alts_credentials", "--ssl_config_file=f"],
         "Either use_alts_credentials must be false or ssl_config_file must be empty."),
        ([BASE, "--batching_parameters_file=f"],
         "server_options.batching_parameters_file is set without setting "
         "server_options.enable_batching to true."),
        ([BASE, "--tensorflow_session_parallelism=1", "--tensorflow_intra_op_parallelism=1",
          "--tensorflow_inter_op_parallelism=1"],
         "Either configure server_options.tensorflow_session_parallelism or "
         "(server_options.tensorflow_intra_op_parallelism, "
         "server_options.tensorflow_inter_op_parallelism) separately. You cannot configure all."),
        ([BASE, "--rest_api_port=70000"],
         "--rest_api_port must be between 0 and 65535; got 70000"),
        ([BASE, "--port=65536"], "--port must be between 0 and 65535; got 65536"),
        ([BASE, "--rest_api_port=-1"], "--rest_api_port must be between 0 and 65535; got -1"),
        ([BASE, "--load_timeout_seconds=-1"], "--load_timeout_seconds must be at least 0; got -1"),
        ([BASE, "--workers=0"], "--workers must be between 1 and 256; got 0"),
        ([BASE, "--workers=2", "--grpc_socket_path=/s"],
         "--grpc_socket_path needs --workers=1: a UNIX socket has one process behind it; got "
         "--workers=2"),
        ([BASE, "--workers=2", "--enable_profiler"],
         "--enable_profiler needs --workers=1: a profile is of one process; got --workers=2"),
        ([BASE, "--workers=2", "--access_log=-"],
         "--access_log=- needs --workers=1: lines of several processes would mix in a pipe; name a "
         "file; got --workers=2"),
        ([BASE, "--workers=4", "--prediction_log_directory=/d", "--prediction_log_files=3"],
         "--prediction_log_files must be at least --workers, as each process writes a file of its "
         "own; got 3 and 4"),
        ([BASE, "--trial_load=yes"], "--trial_load must be auto, always or never; got 'yes'"),
    ],
)  # fmt: skip
def test_combinations_refused(argv, message):
    with pytest.raises(InvalidArgument) as caught:
        check(parse(*argv)[0])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "argv",
    [
        [BASE],
        ["--model_config_file=f"],
        [BASE, "--port=0", "--grpc_socket_path=/s"],
        [BASE, "--use_alts_credentials"],
        [BASE, "--ssl_config_file=f"],
        [BASE, "--enable_batching"],
        [BASE, "--enable_batching", "--batching_parameters_file=f"],
        [BASE, "--tensorflow_session_parallelism=1"],
        [BASE, "--tensorflow_session_parallelism=1", "--tensorflow_intra_op_parallelism=1"],
        [BASE, "--tensorflow_session_parallelism=1", "--tensorflow_inter_op_parallelism=1"],
        [BASE, "--tensorflow_intra_op_parallelism=1", "--tensorflow_inter_op_parallelism=1"],
        [BASE, "--port=65535", "--rest_api_port=0"],
        [BASE, "--workers=2", "--access_log=f", "--prediction_log_directory=/d"],
    ],
)
def test_combinations_that_pass(argv):
    flags, said = parse(*argv)
    assert said == ""
    check(flags)


def test_what_is_not_honoured_is_said_in_one_line():
    flags, _ = parse("--mixed_precision=bfloat16", "--xla_cpu_compilation_enabled", "--port=1")
    assert notes(flags) == [
        "--mixed_precision=bfloat16 --xla_cpu_compilation_enabled=True: accepted, but has no "
        "effect in this server"
    ]
    assert notes(Flags()) == []


def test_every_flag_that_matters_is_honoured():
    """Only flags of class C in docs/reference/conformance.md may be without effect."""
    ignored = {flag.name for flag in FLAGS if flag.metadata["honour"] is Honour.IGNORED}
    assert ignored == {
        "flush_filesystem_caches", "remove_unused_fields_from_bundle_metagraph",
        "mixed_precision", "platform_config_file", "thread_pool_factory_config_file",
        "use_alts_credentials", "skip_initialize_tpu", "xla_cpu_compilation_enabled",
        "xla_gpu_compilation_enabled",
    }  # fmt: skip
