"""Converts flags to the options of the classes that load and run models."""

from __future__ import annotations

from gru_serving.config.batching_options import BatchingOptions, PoolOptions
from gru_serving.config.cpus import schedulable_cpus
from gru_serving.config.files import read_batching_parameters
from gru_serving.config.flags import Flags
from gru_serving.engine.batching.scheduler import BatchScheduler
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.session_options import SessionOptions, read_session_config
from gru_serving.engine.version_loader import VersionLoader
from gru_serving.repository.loading import RepositoryOptions
from gru_serving.telemetry.metrics import Metrics


def version_loader(flags: Flags, metrics: Metrics) -> VersionLoader:
    """The version loader that these flags configure; starts the batch threads, if any.

    Raises:
        ServingError: A file that the flags name cannot be read, or asks for the impossible.
    """
    scheduler = batching = None
    if flags.enable_batching:
        batching, pool = _batching(flags)
        scheduler = BatchScheduler(pool)
    repeats = max(1, flags.num_request_iterations_for_warmup)
    options = LoadOptions(
        tags=tuple(flags.saved_model_tags.split(",")),
        session=_session_options(flags),
        warmup_iterations=repeats if flags.enable_model_warmup else 0,
        check_method_names=flags.enable_signature_method_name_check,
        batching=batching,
        per_model_batching=flags.enable_per_model_batching_parameters,
        prefer_tflite=flags.prefer_tflite_model,
        tflite_interpreters=max(1, flags.num_tflite_pools)
        * max(1, flags.num_tflite_interpreters_per_pool),
        trial=flags.trial_load,
        runtime=flags.runtime,
        seconds=max(0, flags.load_timeout_seconds),
    )
    return VersionLoader(options, metrics, scheduler)


def repository_options(flags: Flags) -> RepositoryOptions:
    """The options for scanning and loading versions."""
    return RepositoryOptions(
        poll_seconds=flags.file_system_poll_wait_seconds,
        max_load_retries=flags.max_num_load_retries,
        retry_seconds=flags.load_retry_interval_micros / 1e6,
        initial_threads=4 * schedulable_cpus(),
        load_threads=max(0, flags.num_load_threads),
        isolate_models=flags.isolate_models,
        unload_threads=max(0, flags.num_unload_threads),
        allow_labels_for_unavailable=flags.allow_version_labels_for_unavailable_models,
    )


def _batching(flags: Flags) -> tuple[BatchingOptions, PoolOptions]:
    if not flags.batching_parameters_file:
        return BatchingOptions(), PoolOptions()
    parameters = read_batching_parameters(flags.batching_parameters_file)
    pool = PoolOptions.from_proto(parameters)
    if flags.enable_per_model_batching_parameters:
        return BatchingOptions(), pool
    return BatchingOptions.from_proto(parameters), pool


def _session_options(flags: Flags) -> SessionOptions:
    """The two separate numbers of threads win over the common one, together."""
    intra = flags.tensorflow_intra_op_parallelism
    inter = flags.tensorflow_inter_op_parallelism
    if intra <= 0 and inter <= 0:
        intra = inter = flags.tensorflow_session_parallelism
    config = b""
    if flags.tensorflow_session_config_file:
        config = read_session_config(flags.tensorflow_session_config_file)
    return SessionOptions(
        max(0, intra), max(0, inter), max(0.0, flags.per_process_gpu_memory_fraction), config
    )
