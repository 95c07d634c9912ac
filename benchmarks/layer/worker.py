"""One framework in its own process, controlled through a pipe."""

from __future__ import annotations

import contextlib
import gc
import importlib
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.layer.contest import Array, Contest

Key = tuple[str, str]
"""Measure and contender."""

_WARM_CALLS = 2
# The CPUs are compared, even if there is a GPU.
_ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}


class UnequalError(RuntimeError):
    """Two contenders do not compute the same."""


@dataclass(frozen=True)
class Contender:
    """One implementation of one measure."""

    run: Callable[[], Any]
    """One call, complete when it returns."""

    result: Callable[[], Any]
    """What a call computes, as arrays, for the comparison of all contenders. Called once, before
    any timing; raises where something else ran than the contender's name says."""

    against: str | None = None
    """The contender whose time is divided by this one's."""

    per_call: int = 1
    """Steps or batches in a call, by which its time is divided."""

    close: Callable[[], None] = lambda: None
    """Give back what the contender holds."""


class Worker:
    """The side that sends requests.

    Args:
        framework: the module `layer_<framework>` is the one that answers.
        log: where its output goes.
        environment: variables for the process alone.
    """

    def __init__(
        self, framework: str, log: Path, environment: dict[str, str] | None = None
    ) -> None:
        self.framework = framework
        self._log = log
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, framework, log), daemon=True)
        with _environment({**_ENVIRONMENT, **(environment or {})}):
            self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Id of the process."""
        return int(self._process.pid or 0)

    def ask(self, request: str, *values: Any) -> Any:
        """Send a request and wait for the answer.

        Raises:
            ModuleNotFoundError: The framework is not installed.
            UnequalError: The request was a comparison, and there is a difference.
            RuntimeError: The worker failed or died.
        """
        self._connection.send((request, values))
        return self.answer()

    def answer(self) -> Any:
        """Wait for an answer to a request, or for the start."""
        try:
            kind, value = self._connection.recv()
        except EOFError:
            self._process.join(5)
            raise RuntimeError(
                f"The {self.framework} worker died (exit code {self._process.exitcode}); its "
                f"output is in {self._log}"
            ) from None
        if kind == "absent":
            raise ModuleNotFoundError(value)
        if kind == "unequal":
            raise UnequalError(value)
        if kind == "error":
            raise RuntimeError(f"The {self.framework} worker failed:\n{value}")
        return value

    def stop(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self._connection.send(("stop", ()))
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Service:
    """The side that answers."""

    def __init__(self, framework: str) -> None:
        self._module = importlib.import_module(f"benchmarks.layer.{framework}")
        self._contenders: dict[Key, Contender] = {}

    def versions(self) -> dict[str, str]:
        """Versions of the framework's packages."""
        return self._module.versions()  # type: ignore[no-any-return]

    def setup(self, contest: Contest, weights: Any) -> dict[Key, tuple[str | None, int]]:
        """Make a contest's contenders; returns `against` and `per_call` of each."""
        self.drop()
        self._contenders = self._module.contenders(contest, weights)
        return {key: (one.against, one.per_call) for key, one in self._contenders.items()}

    def drop(self) -> None:
        """Forget the contenders."""
        for contender in self._contenders.values():
            contender.close()
        self._contenders = {}
        gc.collect()

    def result(self, key: Key) -> list[Array]:
        """Return the result of a contender."""
        return self._contenders[key].result()  # type: ignore[no-any-return]

    def seconds(self, key: Key) -> float:
        """Duration of one call, after calls that fill the caches with this contender's data."""
        contender = self._contenders[key]
        for _ in range(_WARM_CALLS):
            contender.run()
        started = time.perf_counter()
        contender.run()
        return (time.perf_counter() - started) / contender.per_call

    def peak_bytes(self, start: Key, key: Key) -> int:
        """Memory that calls need at their peak; see `benchmarks.layer.memory`."""
        from benchmarks.layer.memory import peak_bytes

        return peak_bytes(self._contenders[start].run, self._contenders[key].run)

    def weights_for(self, framework: str, contest: Contest) -> Any:
        """A contest's weights as a framework's worker takes them."""
        from benchmarks.layer.equality import weights_for

        return weights_for(framework, contest)

    def assert_equal(self, framework_of: dict[Key, str], results: dict[Key, Any]) -> Any:
        """Compare all contenders; see `benchmarks.layer.equality`."""
        from benchmarks.layer.equality import assert_equal

        return assert_equal(framework_of, results)

    def gemm(self) -> float:
        """Speed of a large matrix product, in FLOP per second."""
        return self._module.gemm()  # type: ignore[no-any-return]


def _serve(connection: Connection, framework: str, log: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    with log.open("ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    try:
        service = _Service(framework)
    except ModuleNotFoundError as error:
        connection.send(("absent", str(error)))
        return
    except Exception:
        connection.send(("error", traceback.format_exc()))
        return
    connection.send(("ready", None))
    with contextlib.suppress(EOFError):
        while True:
            request, values = connection.recv()
            if request == "stop":
                service.drop()
                return
            try:
                connection.send(("done", getattr(service, request)(*values)))
            except UnequalError as error:
                connection.send(("unequal", str(error)))
            except Exception:
                connection.send(("error", traceback.format_exc()))
