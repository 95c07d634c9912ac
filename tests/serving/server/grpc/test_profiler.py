"""Profiles when the disk is full."""

import pytest

from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.errors import InvalidArgument, ResourceExhausted
from gru_serving.protos.profiler_service_pb2 import ProfileRequest
from gru_serving.server.grpc.profiler import ProfilerService
from tests.serving.full_disk import largest_file


def test_a_profile_that_does_not_fit_leaves_nothing(tmp_path):
    request = ProfileRequest(
        repository_root=str(tmp_path), session_id="s", host_name="h", duration_ms=10
    )
    with WorkerThreads(1, "test") as threads:
        profiler = ProfilerService(threads)
    with largest_file(0), pytest.raises(ResourceExhausted, match=r"h\.xplane\.pb: File too large"):
        profiler.profile(request)
    assert list((tmp_path / "s").iterdir()) == []
    assert not profiler.profile(request).empty_trace
    (trace,) = (tmp_path / "s").iterdir()
    assert (trace.name, trace.stat().st_size > 0) == ("h.xplane.pb", True)
    (tmp_path / "file").touch()
    request.repository_root = str(tmp_path / "file")
    with pytest.raises(InvalidArgument, match="Not a directory"):
        profiler.profile(request)
