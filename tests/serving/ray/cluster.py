"""A cluster of Ray on this machine: two nodes of one CPU, and what kills parts of it."""

import os
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.ports import free_ports

NODE = {"num_cpus": 1, "object_store_memory": 150 << 20}


class TwoNodes:
    """The cluster, with the ports of the proxies on its first node.

    The second node, which can be killed, has its proxies on ports of its own: both nodes are on
    one machine.
    """

    def __init__(self, cluster, ports):
        self._cluster = cluster
        self.address = cluster.address
        self.port, self.rest_port, *_ = ports
        self._second = _add_node(cluster)

    @property
    def rest(self):
        return f"http://127.0.0.1:{self.rest_port}"

    @property
    def grpc(self):
        return f"127.0.0.1:{self.port}"

    def kill_node(self):
        """Kill the second node and all in it, after all has stood still for a moment."""
        raylet = self._second.all_processes["raylet"][0].process.pid
        stopped = [pid for pid in children(raylet) if _is_replica(pid)]
        _hang(stopped)
        self._cluster.remove_node(self._second, allow_graceful=False)
        for pid in stopped:  # it may have missed the end of its node
            _kill(pid)

    def add_node(self):
        self._second = _add_node(self._cluster)

    def kill_replica(self):
        """Kill a replica that has requests in it, as it has stood still for a moment."""
        victim = self.replicas()[0]
        _hang([victim])
        _kill(victim)

    def raylets(self):
        """Process numbers of the nodes; what Ray starts are their children."""
        return [
            one.all_processes["raylet"][0].process.pid for one in self._cluster.list_all_nodes()
        ]

    def replicas(self):
        """Process numbers of the replicas."""
        return [pid for node in self.raylets() for pid in children(node) if _is_replica(pid)]


@contextmanager
def two_nodes():
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster

    ports = free_ports(4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_SERVE_WORKER_PROXY_GRPC_PORT", str(ports[2]))
        patch.setenv("RAY_SERVE_WORKER_PROXY_HTTP_PORT", str(ports[3]))
        cluster = Cluster()
        try:
            _add_node(cluster, include_dashboard=False)
            nodes = TwoNodes(cluster, ports)
            ray.init(cluster.address, log_to_driver=False, logging_level="error")
            yield nodes
            serve.shutdown()
        finally:
            ray.shutdown()
            cluster.shutdown()


def _add_node(cluster, tries=3, **options):
    """Start a node, again where a busy machine takes longer than the 30 s that Ray allows."""
    try:
        return cluster.add_node(**NODE, **options)
    except Exception:
        if tries == 1:
            raise
        return _add_node(cluster, tries - 1, **options)


def children(parent):
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if path.read_text().rpartition(")")[2].split()[1] == str(parent):
                yield int(path.parent.name)
        except OSError:  # it has ended
            continue


def _is_replica(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().startswith("ray::ServeReplica:")
    except OSError:
        return False


def _hang(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(1)


def _kill(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
