"""Validated options of a BatchingParameters file."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from gru_serving.config.cpus import schedulable_cpus
from gru_serving.config.files import read_text_proto
from gru_serving.errors import InvalidArgument
from gru_serving.protos.batching_parameters_pb2 import BatchingParameters

PER_MODEL_FILE = "batching_params.pbtxt"
MAX_THREADS = 1024


@dataclass(frozen=True)
class PoolOptions:
    """The threads that run batches, shared by all models.

    Attributes:
        threads: Batches run at once.
        name: Name of the threads.

    Raises:
        InvalidArgument: No thread at all, or more than any machine can use.
    """

    threads: int = schedulable_cpus()
    name: str = "model_server_batch_threads"

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InvalidArgument(f"num_batch_threads must be positive; was {self.threads}")
        if self.threads > MAX_THREADS:
            raise InvalidArgument(
                f"num_batch_threads must be at most {MAX_THREADS}; was {self.threads}"
            )

    @classmethod
    def from_proto(cls, proto: BatchingParameters) -> PoolOptions:
        """Read the parameters that concern threads, with defaults for missing ones."""
        threads = cls().threads
        if proto.HasField("num_batch_threads"):
            threads = proto.num_batch_threads.value
        name = proto.thread_pool_name.value if proto.HasField("thread_pool_name") else ""
        return cls(threads, name or "batch_threads")


@dataclass(frozen=True)
class BatchingOptions:
    """The batching of the requests of one model; the defaults are TF Serving's.

    Attributes:
        max_batch_size: Rows of the largest request; without splitting also of the largest batch.
        batch_timeout_micros: Time that a batch that is not full waits for more, in microseconds.
        max_enqueued_batches: Batches that wait, per queue; a request beyond is UNAVAILABLE.
        allowed_batch_sizes: Batches are filled up to the first of these that holds them; ascending,
            empty for any size. The last must be `max_batch_size`, with splitting as well.
        pad_variable_length_inputs: Whether requests of different shapes are merged by padding.
        enable_large_batch_splitting: Whether large requests are spread over several batches.
        max_execution_batch_size: Rows of the largest batch; 0 for `max_batch_size`. Only with
            splitting.

    Raises:
        InvalidArgument: An option cannot work; the message is that of TF Serving or its scheduler.
    """

    max_batch_size: int = 1000
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    allowed_batch_sizes: tuple[int, ...] = ()
    pad_variable_length_inputs: bool = False
    enable_large_batch_splitting: bool = False
    max_execution_batch_size: int = 0

    def __post_init__(self) -> None:
        self._check_allowed_sizes()
        splitting = self.enable_large_batch_splitting
        largest = self.max_execution_batch_size if splitting else 0
        object.__setattr__(self, "max_execution_batch_size", largest or self.max_batch_size)
        if self.max_enqueued_batches == 0 and not splitting:
            # As in TensorFlow's scheduler: a queue without any room would refuse everything.
            object.__setattr__(self, "max_enqueued_batches", 1)
        self._check_numbers()

    def _check_numbers(self) -> None:
        if self.max_batch_size < 1:
            raise InvalidArgument(
                f"input_batch_size_limit must be positive; was {self.max_batch_size}"
            )
        if self.batch_timeout_micros < 0:
            raise InvalidArgument(
                f"batch_timeout_micros must be non-negative; was {self.batch_timeout_micros}"
            )
        if self.max_enqueued_batches < 1:
            raise InvalidArgument(
                f"max_enqueued_batches must be positive; was {self.max_enqueued_batches}"
            )
        if not 1 <= self.max_execution_batch_size <= self.max_batch_size:
            raise InvalidArgument(
                "When enable_large_batch_splitting is true, input_batch_size_limit must be greater "
                # As TensorFlow writes it: the flag as 1 and both sizes, without blanks.
                f"than or equal to max_execution_batch_size.1{self.max_batch_size}"
                f"{self.max_execution_batch_size}"
            )

    def _check_allowed_sizes(self) -> None:
        sizes = self.allowed_batch_sizes
        if sizes and sizes[-1] != self.max_batch_size:
            raise InvalidArgument(
                "Last entry in allowed_batch_sizes must match max_batch_size; last entry was "
                f"{sizes[-1]}; expected {self.max_batch_size}"
            )
        if any(size < 1 for size in sizes):
            raise InvalidArgument(
                f"allowed_batch_sizes entries must be positive; got {list(sizes)}"
            )
        if any(size >= after for size, after in pairwise(sizes)):
            # TensorFlow's text; TF Serving has the check, but not where it makes a session.
            raise InvalidArgument("allowed_batch_sizes entries must be monotonically increasing")

    @classmethod
    def from_proto(cls, proto: BatchingParameters) -> BatchingOptions:
        """Read the parameters that concern a model, with defaults for missing ones."""
        given = {
            name: getattr(proto, name).value
            for name in (
                "max_batch_size",
                "batch_timeout_micros",
                "max_enqueued_batches",
                "enable_large_batch_splitting",
                "max_execution_batch_size",
            )
            if proto.HasField(name)
        }
        return cls(
            allowed_batch_sizes=tuple(proto.allowed_batch_sizes),
            pad_variable_length_inputs=proto.pad_variable_length_inputs,
            **given,
        )

    def executed_size(self, rows: int) -> int:
        """Return the size to which a batch of this many rows is padded."""
        return next((size for size in self.allowed_batch_sizes if size >= rows), rows)


def of_version(directory: Path) -> BatchingOptions | None:
    """Read the parameters inside of a version; None if it has none and is not batched.

    Raises:
        ServingError: The file cannot be read or asks for the impossible.
    """
    path = directory / PER_MODEL_FILE
    if not path.exists():
        return None
    return BatchingOptions.from_proto(read_text_proto(str(path), BatchingParameters()))
