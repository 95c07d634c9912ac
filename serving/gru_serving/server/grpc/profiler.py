"""`tensorflow.ProfilerService`, which TensorBoard's "capture profile" calls.

It runs TensorFlow's profiler in this process for the requested time, and writes the trace where
TensorBoard's profile plugin reads it, below the directory that the caller names.
"""

import errno
import socket
import threading
from pathlib import Path
from typing import Any

from gru_serving.engine.imports import import_tensorflow
from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.errors import InvalidArgument, ResourceExhausted, Unavailable, Unimplemented
from gru_serving.protos.profiler_service_pb2 import (
    MonitorRequest,
    MonitorResponse,
    ProfileRequest,
    ProfileResponse,
    TerminateRequest,
    TerminateResponse,
)
from gru_serving.server.grpc.services import Service

_MAX_SECONDS = 3600.0
_FULL_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ProfilerService(Service):
    """`tensorflow.ProfilerService` over gRPC: at most one session at a time, of this process.

    Args:
        threads: Threads in which sessions wait for their end.
    """

    def __init__(self, threads: WorkerThreads) -> None:
        super().__init__(threads)
        self._busy = threading.Lock()
        self._session_id = ""
        self._terminate = threading.Event()

    async def Profile(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Record a trace of this process."""
        return await self._run(ProfileRequest, self.profile, raw, context)

    async def Terminate(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """End a recording early; its caller gets the trace so far."""

        def terminate(request: TerminateRequest) -> TerminateResponse:
            if request.session_id == self._session_id:
                self._terminate.set()
            return TerminateResponse()

        return await self._run(TerminateRequest, terminate, raw, context)

    async def Monitor(self, raw: bytes, context: Any) -> bytes:  # noqa: N802
        """Refuse as unimplemented, like TensorFlow's own service for CPUs and GPUs."""

        def monitor(_: MonitorRequest) -> MonitorResponse:
            raise Unimplemented("unimplemented.")

        return await self._run(MonitorRequest, monitor, raw, context)

    def profile(self, request: ProfileRequest) -> ProfileResponse:
        """Record for the requested time or until it is terminated; blocks.

        The trace is written to `<repository_root>/<session_id>/<host_name>.xplane.pb`; clients name
        as root the `plugins/profile` of a log directory.

        Raises:
            ServingError: No directory to write to, or another session is under way.
        """
        if not request.repository_root or not request.session_id:
            raise InvalidArgument(
                "Profile needs repository_root and session_id; got repository_root="
                f"{request.repository_root!r}, session_id={request.session_id!r}"
            )
        if Path(request.session_id).name != request.session_id:
            raise InvalidArgument(f"session_id must be a plain name; got {request.session_id!r}")
        host = request.host_name or socket.gethostname()
        host = Path(host.replace(":", "_")).name
        if not self._busy.acquire(blocking=False):
            raise Unavailable("Another profiling session is active.")
        try:
            self._session_id = request.session_id
            self._terminate.clear()
            trace = self._record(request)
        finally:
            self._session_id = ""
            self._busy.release()
        directory = Path(request.repository_root, request.session_id)
        _write(directory, f"{host}.xplane.pb", trace)
        return ProfileResponse(empty_trace=not trace)

    def _record(self, request: ProfileRequest) -> bytes:
        # pywrap is used since `tf.profiler.experimental` returns the trace only through a directory
        # of its own.
        import_tensorflow()
        from tensorflow.python.profiler.internal import _pywrap_profiler

        session = _pywrap_profiler.ProfilerSession()
        try:
            session.start("", _options(request))
        except Exception as error:
            raise Unavailable(f"the profiler does not start: {error}") from None
        self._terminate.wait(min(request.duration_ms / 1000, _MAX_SECONDS))
        trace: bytes = session.stop()
        return trace


def _write(directory: Path, name: str, trace: bytes) -> None:
    """Write the trace completely or not at all."""
    scratch = directory / f".{name}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        try:
            scratch.write_bytes(trace)
            scratch.replace(directory / name)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        said = f"cannot write the profile to {directory / name}: {error.strerror}"
        if error.errno in _FULL_DISK_ERRORS:
            raise ResourceExhausted(said) from None
        raise InvalidArgument(said) from None


def _options(request: ProfileRequest) -> dict[str, Any]:
    levels = ("host_tracer_level", "device_tracer_level", "python_tracer_level")
    if not request.HasField("opts"):
        return dict(zip(levels, (2, 1, 0), strict=True))
    return {level: getattr(request.opts, level) for level in levels}
