"""Options for loading and running versions, from the flags; without TensorFlow."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gru_serving.config.batching_options import BatchingOptions
from gru_serving.config.files import read_text_proto
from gru_serving.engine.imports import import_tensorflow


@dataclass(frozen=True)
class SessionOptions:
    """Options of sessions.

    Attributes:
        intra_op_threads: Threads inside one operation; 0 for what `config` says, or as many as
            CPUs.
        inter_op_threads: Operations at once; 0 for what `config` says, or as many as CPUs.
        gpu_memory_fraction: Part of each GPU's memory to take; 0 for what `config` says, or what
            TensorFlow decides.
        config: A serialized ConfigProto, for all the rest.
        frugal: Never spend several threads on one run; for batches, which share the CPUs with the
            threads that prepare the next ones.
    """

    intra_op_threads: int = 0
    inter_op_threads: int = 0
    gpu_memory_fraction: float = 0.0
    config: bytes = b""
    frugal: bool = False

    def config_proto(self) -> Any:
        """Return the options as a `ConfigProto` of TensorFlow."""
        import tensorflow as tf

        proto = tf.compat.v1.ConfigProto.FromString(self.config)
        if self.intra_op_threads:
            proto.intra_op_parallelism_threads = self.intra_op_threads
        if self.inter_op_threads:
            proto.inter_op_parallelism_threads = self.inter_op_threads
        if self.gpu_memory_fraction:
            proto.gpu_options.per_process_gpu_memory_fraction = self.gpu_memory_fraction
        return proto


def read_session_config(path: str) -> bytes:
    """Read a `--tensorflow_session_config_file`, a ConfigProto as text; returns it serialized.

    Raises:
        ServingError: No such file, or it does not parse.
    """
    import_tensorflow()
    import tensorflow as tf

    serialized: bytes = read_text_proto(path, tf.compat.v1.ConfigProto()).SerializeToString()
    return serialized


@dataclass(frozen=True)
class LoadOptions:
    """Options for loading versions.

    Attributes:
        tags: Tags of the MetaGraph to load.
        session: Options of the sessions, such as threads.
        warmup_iterations: Times to run each warmup request; 0 runs none.
        check_method_names: Whether to refuse signatures whose `method_name` does not fit the
            request.
        batching: Options for merging requests; None for not at all.
        per_model_batching: Whether only the requests of versions with batching parameters of their
            own are merged, by these.
        prefer_tflite: Whether to load `model.tflite` where a version has one.
        tflite_interpreters: Number of requests that one TFLite model works on at once.
        trial: Try versions in a process of their own first: `auto` those without digests,
            `always` all, `never` none.
        runtime: Runtime of the versions: `auto`, `tensorflow` or `onnx`.
        seconds: Time allowed for one load, in seconds; 0 for no limit.
        signers: PEM files of the public keys and authorities, one of which must have signed a
            version; empty where versions need no signature.
    """

    tags: Sequence[str] = ("serve",)
    session: SessionOptions = field(default_factory=SessionOptions)
    warmup_iterations: int = 1
    check_method_names: bool = False
    batching: BatchingOptions | None = None
    per_model_batching: bool = False
    prefer_tflite: bool = False
    tflite_interpreters: int = 1
    trial: str = "never"
    runtime: str = "auto"
    seconds: float = 0.0
    signers: Sequence[Path] = ()
