"""docs/server_flags.md: every flag, its effect, what differs, and the test that shows the effect.

`python -m tests.serving.test_flag_table` writes the page anew.
"""

import ast
from pathlib import Path

from serving.flags import FLAGS, Honour

TESTS = Path(__file__).parent
PAGE = TESTS.parents[1] / "docs" / "server_flags.md"

HEAD = """# The server's flags

`gru-serve serve` takes the flags of `tensorflow_model_server`, by its rules: `--name=value`, booleans
also bare, the last of repeated flags wins, unknown arguments are reported and the server starts all
the same. `gru-serve serve --help` explains them. This page says what each does here, where that
differs from TensorFlow Serving, and which test in `tests/serving` shows it.
"""  # noqa: E501
ADDITIONS = """
## Additions

`tensorflow_model_server` does not know these; it reports them and starts all the same, so that one
command line serves both.
"""

DEFAULTS = {
    "rest_api_num_threads": "4 x CPUs",
    "grpc_max_threads": "4 x CPUs",
    "num_tflite_pools": "CPUs",
}
NOTHING = "Accepted; named in one line of the log. "

# Where the effect is not TensorFlow Serving's to the letter.
DIFFERENCES = {
    "port": "listens on `--bind_address`, not on all interfaces",
    "rest_api_port": "listens on `--bind_address`, not on all interfaces",
    "model_base_path": "local paths and `file://` only",
    "file_system_poll_wait_seconds": "0 with a model that has no version: an error, where "
    "TensorFlow Serving would wait for ever",
    "enable_batching": "requests of different shapes or types go to batches of their own, where "
    "TensorFlow Serving fails them all; a batch that fails is run request by request, so that a "
    "bad one spoils no other; a deadline ends the wait in the queue",
    "batching_parameters_file": "impossible parameters end the start at once, not after the "
    "retries of a load; a negative `max_batch_size` or `max_enqueued_batches` is one, where "
    "TensorFlow Serving takes it for no limit, and so are `allowed_batch_sizes` that are not "
    "positive or do not ascend, and more than 1024 `num_batch_threads`",
    "max_num_load_retries": "a version that failed is also loaded once more when its files have "
    "changed; one whose files are not those exported, or that killed its trial process, is not "
    "tried again before",
    "enable_model_warmup": "warmup requests wait for no batch to fill",
    "grpc_max_threads": "threads that run models; what waits for a batch takes none",
    "rest_api_num_threads": "threads that run models; what waits for a batch takes none",
    "enable_profiler": "off unless asked for; TensorFlow Serving's default is `true`",
    "prefer_tflite_model": "the signatures of the file's metadata are served, or its native ones; "
    "on LiteRT where `ai-edge-litert` is installed, else on TensorFlow's interpreter",
    "num_tflite_pools": "times `--num_tflite_interpreters_per_pool`: requests that one model works "
    "on at once",
    "num_tflite_interpreters_per_pool": "see `--num_tflite_pools`",
    "flush_filesystem_caches": NOTHING + "The page cache belongs to the system",
    "remove_unused_fields_from_bundle_metagraph": NOTHING + "Only signatures are kept anyway",
    "mixed_precision": NOTHING + "The rewriter is not in TensorFlow's Python packages",
    "platform_config_file": NOTHING + "There is one platform",
    "thread_pool_factory_config_file": NOTHING + "There are no factories to choose from",
    "use_alts_credentials": NOTHING + "ALTS works inside Google's cloud only; use "
    "`--ssl_config_file`",
    "skip_initialize_tpu": NOTHING + "No TPU is ever initialised",
    "xla_cpu_compilation_enabled": NOTHING + "Compile at export: `jit_compile=True`",
    "xla_gpu_compilation_enabled": NOTHING + "Compile at export: `jit_compile=True`",
    "version": "the version is that of keras-gru",
}

SHOWN = {
    "port": "test_server::test_port_in_use",
    "grpc_socket_path": "test_server::test_life",
    "rest_api_port": "test_server::test_stop_while_waiting_for_a_model",
    "rest_api_num_threads": "test_server_options::test_one_thread_runs_one_model_at_a_time",
    "rest_api_timeout_in_ms": "test_rest_app::test_run_timeout",
    "rest_api_enable_cors_support": "test_server::test_life",
    "model_name": "test_server::test_life",
    "model_base_path": "test_server::test_start_errors",
    "model_config_file": "test_server::test_config_file_is_polled_and_reloaded",
    "model_config_file_poll_wait_seconds": "test_server::test_config_file_is_polled_and_reloaded",
    "file_system_poll_wait_seconds": "test_repository::test_scan_once_and_reload",
    "enable_batching": "test_server_options::test_concurrent_requests_are_merged",
    "batching_parameters_file": "test_version_loader::test_batching_with_a_parameters_file",
    "enable_per_model_batching_parameters": "test_version_loader::test_parameters_per_model",
    "allow_version_labels_for_unavailable_models": "test_repository::test_labels",
    "max_num_load_retries": "test_server::test_broken_model_ends_the_start",
    "load_retry_interval_micros": "test_server::test_broken_model_ends_the_start",
    "num_load_threads": "test_repository::test_versions_loaded_at_once",
    "num_unload_threads": "test_repository::test_an_unload_that_takes_long",
    "enable_model_warmup": "test_version_loader::test_warmup_is_batched_and_counted",
    "num_request_iterations_for_warmup": "test_version_loader::test_warmup_is_batched_and_counted",
    "monitoring_config_file": "test_metrics::test_running_server",
    "ssl_config_file": "test_server::test_tls",
    "grpc_channel_arguments": "test_server_options::test_channel_arguments",
    "grpc_max_threads": "test_server_options::test_one_thread_runs_one_model_at_a_time",
    "enable_grpc_healthcheck_service": "test_grpc_service::test_health",
    "enable_serialization_as_tensor_content": "test_server::test_life",
    "enable_signature_method_name_check": "test_version_loader::test_method_names",
    "saved_model_tags": "test_version_loader::test_tags",
    "tensorflow_session_parallelism": "test_version_loader::test_threads_of_sessions",
    "tensorflow_intra_op_parallelism": "test_version_loader::test_threads_of_sessions",
    "tensorflow_inter_op_parallelism": "test_version_loader::test_threads_of_sessions",
    "tensorflow_session_config_file": "test_version_loader::test_session_config_file",
    "per_process_gpu_memory_fraction": "test_version_loader::test_session_config_file",
    "enable_profiler": "test_server_options::test_profiler",
    "prefer_tflite_model": "test_tflite_session::test_preference",
    "num_tflite_pools": "test_tflite_session::test_threads_share_the_interpreters",
    "num_tflite_interpreters_per_pool": "test_tflite_session::test_threads_share_the_interpreters",
    "version": "test_server::test_help_and_version",
    "bind_address": "test_server_options::test_bind_address",
    "allowed_hosts": "test_host_guard::test_what_the_flags_allow",
    "drain_seconds": "test_additions::test_requests_longer_than_the_drain_are_ended",
    "isolate_models": "test_server::test_a_broken_model_alone_does_not_serve",
    "trial_load": "test_trial::"
    "test_a_version_that_kills_its_process_neither_ends_the_server_nor_its_start",
    "load_timeout_seconds": "test_trial::test_a_warmup_without_end_ends_by_its_time_or_a_signal",
    "rest_ssl_config_file": "test_additions::test_rest_speaks_tls_only",
    "auth_token_file": "test_additions::test_rest_refuses_without_token",
    "max_request_mib": "test_budgets::test_bodies_beyond_the_limit",
    "max_requests_mib": "test_budgets::test_bodies_that_wait_and_are_refused",
    "access_log": "test_additions::test_access_log_of_rest",
    "prediction_log_directory": "test_additions::test_prediction_log",
    "prediction_log_sampling_rate": "test_prediction_log::test_rate_of_the_model_counts",
    "prediction_log_file_mib": "test_prediction_log::test_rotation_keeps_the_newest",
    "prediction_log_files": "test_prediction_log::test_rotation_keeps_the_newest",
}


def row(flag):
    default = DEFAULTS.get(flag.name, flag.default)
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    test = SHOWN.get(flag.name, "").replace("::", ".py::")
    cells = (
        f"`--{flag.name}`",
        f"`{shown}`" if shown else "",
        flag.metadata["help"],
        DIFFERENCES.get(flag.name, ""),
        f"`{test}`" if test else "",
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page():
    columns = "| flag | default | effect | difference | test |\n|---|---|---|---|---|"
    ours = [flag for flag in FLAGS if flag.metadata["honour"] is Honour.OURS]
    theirs = [flag for flag in FLAGS if flag not in ours]
    parts = [HEAD, columns, *map(row, theirs), ADDITIONS, columns, *map(row, ours)]
    return "\n".join(parts) + "\n"


def test_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m tests.serving.test_flag_table"
    )


def test_every_flag_with_an_effect_names_its_test():
    with_effect = {f.name for f in FLAGS if f.metadata["honour"] is Honour.YES}
    assert with_effect - SHOWN.keys() == set()
    ignored = {f.name for f in FLAGS if f.metadata["honour"] is Honour.IGNORED}
    assert ignored - DIFFERENCES.keys() == set()
    assert ignored & SHOWN.keys() == set()


def test_the_tests_named_exist():
    for module, name in (where.split("::") for where in SHOWN.values()):
        tree = ast.parse((TESTS / f"{module}.py").read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
