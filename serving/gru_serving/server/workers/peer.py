"""Calls between two processes, in both directions at once, over one connection."""

import contextlib
import itertools
import mmap
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from multiprocessing.connection import Connection
from typing import Any

from gru_serving.errors import Internal, ServingError, Unavailable


class GoneError(Unavailable):
    """The other process has ended."""


class Peer:
    """The other process: its methods are called here, and those of this process there.

    Each call runs in a thread of its own.

    Args:
        connection: Connection to the other process.
        methods: Functions of this process that the other one may call, by name.
        ended: Function that is called when the other process has ended.
    """

    def __init__(
        self,
        connection: Connection,
        methods: Mapping[str, Callable[..., Any]],
        ended: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._methods = methods
        self._ended = ended
        self._sending = threading.Lock()
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._open = True
        self._answers: dict[int, Future[Any]] = {}
        threading.Thread(target=self._read, name="peer", daemon=True).start()

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        """Call a method of the other process.

        Args:
            name: Name of the method.
            *arguments: What it gets, to be pickled.

        Returns:
            Its answer to come, or its ServingError; `GoneError` where the process ends before.
        """
        answer: Future[Any] = Future()
        with self._lock:
            number = next(self._numbers)
            if self._open:
                self._answers[number] = answer
            else:
                answer.set_exception(_gone())
        if not answer.done():
            self._send(number, name, arguments)
        return answer

    def _send(self, *message: Any) -> None:
        # Where the other process has ended, the reading thread says so.
        with self._sending, contextlib.suppress(OSError):
            self._connection.send(message)

    def _read(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                number, name, content = self._connection.recv()
                if name:
                    threading.Thread(
                        target=self._answer, args=(number, name, content), name=name, daemon=True
                    ).start()
                else:
                    self._take(number, *content)
        with self._lock:
            self._open = False
            waiting = list(self._answers.values())
            self._answers.clear()
        for answer in waiting:
            answer.set_exception(_gone())
        self._ended()

    def _take(self, number: int, result: Any, error: ServingError | None) -> None:
        with self._lock:
            answer = self._answers.pop(number)
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    def _answer(self, number: int, name: str, arguments: tuple[Any, ...]) -> None:
        result, failure = None, None
        try:
            result = self._methods[name](*arguments)
        except ServingError as error:
            failure = error.with_traceback(None)  # which refers to this frame
        except Exception as error:
            failure = Internal(f"{name}: {error!r}")
        self._send(number, "", (result, failure))


def _gone() -> GoneError:
    return GoneError("a process of the server has ended; try again")


class Clock:
    """A number in memory that processes share; one of them advances it.

    Args:
        descriptor: Descriptor of a file of at least eight bytes.
    """

    def __init__(self, descriptor: int) -> None:
        self._value = memoryview(mmap.mmap(descriptor, 8)).cast("Q")

    def now(self) -> int:
        """Return the number."""
        return self._value[0]

    def advance(self, number: int) -> None:
        """Set the number, for all processes at once."""
        self._value[0] = number
