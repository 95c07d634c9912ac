"""The prediction log: sampled requests with their answers, as TFRecord files of PredictionLog.

The files can be read by `tf.data.TFRecordDataset`. A warmup file has the same form, so the first
records of a log can serve as `assets.extra/tf_serving_warmup_requests`.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from gru_serving.codecs.tfrecord import FOOTER, HEADER, framed
from gru_serving.errors import InvalidArgument
from gru_serving.protos.logging_config_pb2 import LoggingConfig, LogMetadata, SamplingConfig
from gru_serving.protos.prediction_log_pb2 import PredictionLog
from gru_serving.protos.request_identity_pb2 import RequestIdentity
from gru_serving.telemetry.background_writer import BackgroundWriter
from gru_serving.telemetry.request_record import RequestRecord

_MAX_QUEUE = 1000
_MAX_QUEUE_BYTES = 256 << 20


@dataclass(frozen=True)
class PredictionLogOptions:
    """Directory, sampling rate and limits of a prediction log.

    Attributes:
        directory: Directory of the files; it is created if necessary.
        sampling_rate: Part of the requests to log, 0 to 1, of models that say nothing themselves.
        file_bytes: A file that has grown to this size is followed by a new one.
        files: Number of files kept per model; the oldest are removed.
    """

    directory: Path
    sampling_rate: float = 0.01
    file_bytes: int = 64 << 20
    files: int = 16


class PredictionLogger:
    """Receives the records of requests, and logs some of them in the background.

    Args:
        options: Directory, rate and limits.
        configured: The `logging_config` of a model; None where it has none.
        tags: Tags of the SavedModels, noted with every record.
        count: Function that gets the model and the outcome ("OK", "UNKNOWN") of every record.

    Raises:
        InvalidArgument: A file cannot be made in the directory, or a figure makes no sense.
    """

    def __init__(
        self,
        options: PredictionLogOptions,
        configured: Callable[[str], LoggingConfig | None],
        tags: Sequence[str] = ("serve",),
        count: Callable[[str, str], None] | None = None,
    ) -> None:
        _check(options)
        self._options = options
        self._configured = configured
        self._sampling_of_others = SamplingConfig(sampling_rate=options.sampling_rate)
        self._tags = tuple(tags)
        self._count = count
        self._files: dict[str, _RotatingFile] = {}
        self._writer = BackgroundWriter(
            "prediction log", self._write, _MAX_QUEUE, _MAX_QUEUE_BYTES, 1
        )

    def __call__(self, record: RequestRecord) -> None:
        """Log a request if it succeeded and is sampled."""
        if record.exchange is None or record.status != "OK":
            return
        if random.random() < self._sampling(record.model).sampling_rate:
            self._writer.put(record, record.exchange.size)

    def close(self) -> None:
        """Write the queued records and close the files."""
        self._writer.close()
        for file in self._files.values():
            file.close()

    def _sampling(self, model: str) -> SamplingConfig:
        config = self._configured(model)
        return self._sampling_of_others if config is None else config.sampling_config

    def _write(self, records: Sequence[RequestRecord]) -> None:
        for record in records:
            status = "UNKNOWN"
            try:
                file = self._file(record.model)
                file.write(self._message(record))
                status = "OK"
            finally:
                if self._count is not None:
                    self._count(record.model, status)

    def _file(self, model: str) -> _RotatingFile:
        config = self._configured(model)
        prefix = config.log_collector_config.filename_prefix if config is not None else ""
        path = str(self._options.directory / (prefix or quote(model, safe=" ")))
        if path not in self._files:
            self._files[path] = _RotatingFile(path, self._options.file_bytes, self._options.files)
        return self._files[path]

    def _message(self, record: RequestRecord) -> bytes:
        assert record.exchange is not None
        metadata = LogMetadata(saved_model_tags=self._tags, timestamp_secs=int(record.began))
        metadata.model_spec.name = record.model
        metadata.model_spec.signature_name = record.signature
        if record.version is not None:
            metadata.model_spec.version.value = record.version
        metadata.sampling_config.CopyFrom(self._sampling(record.model))
        identity = RequestIdentity(request_id=record.request_id, trace_id=record.trace_id)
        metadata.MergeFromString(identity.SerializeToString())
        message = PredictionLog(log_metadata=metadata)
        part: Any = getattr(message, f"{record.exchange.kind}_log")
        request, response = record.exchange.messages()
        part.request.MergeFromString(request)
        part.response.MergeFromString(response)
        return message.SerializeToString()


class _RotatingFile:
    """A TFRecord file that is followed by another when it is large; old files are removed."""

    def __init__(self, prefix: str, limit: int, keep: int) -> None:
        self._prefix = Path(prefix)
        self._limit = limit
        self._keep = keep
        self._writer: IO[bytes] | None = None
        self._path = self._prefix
        self._size = 0

    def write(self, message: bytes) -> None:
        writer = self._writer
        if writer is None or self._size >= self._limit or not self._path.exists():
            writer = self._open()
        try:
            writer.write(framed(message))
            # No request waits for this, and a flushed record survives a crash of the server.
            writer.flush()
        except OSError:
            self._take_back()
            raise
        self._size += len(message) + HEADER + FOOTER

    def _take_back(self) -> None:
        """Remove an incomplete record, after which readers would find only an error."""
        with contextlib.suppress(OSError):
            self.close()  # tries once more to write what it holds
        with contextlib.suppress(OSError):
            if self._size:
                os.truncate(self._path, self._size)
            else:
                self._path.unlink()

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _open(self) -> IO[bytes]:
        self.close()
        self._prefix.parent.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        # Monotonic nanoseconds make names unique within a second.
        unique = f"{stamp}-{os.getpid()}-{time.monotonic_ns()}"
        self._path = self._prefix.with_name(f"{self._prefix.name}-{unique}.tfrecord")
        # The file holds user data, so only this user may read it.
        made = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._writer = writer = os.fdopen(made, "wb")
        self._size = 0
        others = [one for one in self._of_this_prefix() if one != self._path]
        for old in others[: max(0, len(others) + 1 - self._keep)]:
            old.unlink(missing_ok=True)
        return writer

    def _of_this_prefix(self) -> list[Path]:
        """List the files, the oldest first; the current one is first if the clock went back."""
        # A glob is not used: the files of model "a" must not be mistaken for those of model "a-b".
        ours = re.compile(re.escape(self._prefix.name) + r"-\d{8}T\d{6}-\d+-\d+\.tfrecord")
        found = [one for one in self._prefix.parent.iterdir() if ours.fullmatch(one.name)]
        return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))


def _check(options: PredictionLogOptions) -> None:
    if not 0 <= options.sampling_rate <= 1:
        raise InvalidArgument(
            f"--prediction_log_sampling_rate must be between 0 and 1; got {options.sampling_rate}"
        )
    if options.file_bytes < 1 or options.files < 1:
        raise InvalidArgument(
            "--prediction_log_file_mib and --prediction_log_files must be at least 1"
        )
    probe = options.directory / f".probe-{os.getpid()}"
    try:
        options.directory.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise InvalidArgument(
            f"--prediction_log_directory: cannot write to {options.directory}: "
            f"{error.strerror or error}"
        ) from None
