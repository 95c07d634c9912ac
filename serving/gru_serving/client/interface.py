"""The clients for REST and gRPC: `Client` blocks, `AsyncClient` is for an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from gru_serving.client.conversation import Conversation, Exchange, Pause, Steps, Wire
from gru_serving.client.errors import too_slow
from gru_serving.client.metadata import ListedModel, Metadata, Target, VersionState
from gru_serving.client.options import ClientOptions
from gru_serving.errors import ServingError

ActionT = TypeVar("ActionT")
ResultT = TypeVar("ResultT")


def drive(
    steps: Generator[ActionT | Pause, Any, ResultT], perform: Callable[[ActionT], Any]
) -> ResultT:
    """Run a conversation to its end.

    Args:
        steps: Generator of actions, which gets each one's reply, or its ServingError, in return.
        perform: Function that does one action; pauses are waited out here.

    Returns:
        What the conversation returns.
    """
    try:
        action = next(steps)
        while True:
            try:
                reply = None
                if isinstance(action, Pause):
                    time.sleep(action.seconds)
                else:
                    reply = perform(action)
            except ServingError as error:
                action = steps.throw(error)
            else:
                action = steps.send(reply)
    except StopIteration as stop:
        result: ResultT = stop.value
        return result


async def drive_async(
    steps: Generator[ActionT | Pause, Any, ResultT],
    perform: Callable[[ActionT], Awaitable[Any]],
) -> ResultT:
    """Perform the steps of a conversation without blocking the event loop, like `drive`."""
    try:
        action = next(steps)
        while True:
            try:
                reply = None
                if isinstance(action, Pause):
                    await asyncio.sleep(action.seconds)
                else:
                    reply = await perform(action)
            except ServingError as error:
                action = steps.throw(error)
            else:
                action = steps.send(reply)
    except StopIteration as stop:
        result: ResultT = stop.value
        return result


class Connection(Protocol):
    """Sends messages and waits for replies; may be shared between threads."""

    def send(self, message: Any, timeout: float) -> Any:
        """Return the reply; a ServingError where there is none."""

    def close(self) -> None:
        """Free the sockets."""


class Client:
    """A client of one server over REST or gRPC; may be used from any thread.

    `connect` makes one. All methods take `timeout`, the seconds allowed, retries included, and
    raise a `ServingError`: the server's, or Unavailable or DeadlineExceeded.
    """

    def __init__(self, wire: Wire, connection: Connection, url: str, options: ClientOptions):
        self.url = url
        self.options = options
        self._conversation = Conversation(wire, options)
        self._connection = connection

    def predict(
        self,
        inputs: Mapping[str, Any] | Any,
        model: str = "default",
        *,
        version: int | None = None,
        label: str = "",
        signature: str = "",
        output_filter: Collection[str] = (),
        timeout: float | None = None,
    ) -> dict[str, np.ndarray]:
        """Run a model.

        Args:
            inputs: Array-likes by input name, or one array-like for a model with one input. They
                are converted to the types of the signature.
            model: Name of the model.
            version: Number of the version; None for the highest that serves.
            label: The version with that label.
            signature: Name of the signature; empty for `serving_default`.
            output_filter: Outputs wanted; all when empty.
            timeout: Seconds allowed, retries included.

        Returns:
            Arrays by output name; strings as `object` arrays of `bytes`.

        Raises:
            ServingError: The server's error, or Unavailable or DeadlineExceeded.
        """
        target = Target(model, version, label)
        return self._run(
            self._conversation.predict(inputs, target, signature, output_filter, timeout)
        )

    def classify(
        self,
        examples: Sequence[Mapping[str, Any]],
        model: str = "default",
        *,
        version: int | None = None,
        label: str = "",
        signature: str = "",
        timeout: float | None = None,
    ) -> list[list[tuple[str, float]]]:
        """Classify tf.Examples.

        Args:
            examples: Values by feature name, `{"text": "a fine film"}`: text, bytes or numbers,
                Python's or NumPy's, or lists or arrays of them, of one dimension.
            model: Name of the model.
            version: Number of the version; None for the highest that serves.
            label: The version with that label.
            signature: Name of the signature; empty for `serving_default`.
            timeout: Seconds allowed.

        Returns:
            Per example, label and score of each class.
        """
        target = Target(model, version, label)
        return self._run(self._conversation.classify(examples, target, signature, timeout))

    def regress(
        self,
        examples: Sequence[Mapping[str, Any]],
        model: str = "default",
        *,
        version: int | None = None,
        label: str = "",
        signature: str = "",
        timeout: float | None = None,
    ) -> list[float]:
        """Regress tf.Examples to one number each; the arguments are those of `classify`."""
        target = Target(model, version, label)
        return self._run(self._conversation.regress(examples, target, signature, timeout))

    def metadata(
        self,
        model: str = "default",
        *,
        version: int | None = None,
        label: str = "",
        timeout: float | None = None,
    ) -> Metadata:
        """Return the signatures of a model; the arguments are those of `predict`."""
        return self._run(self._conversation.metadata(Target(model, version, label), timeout))

    def status(
        self, model: str = "default", *, version: int | None = None, timeout: float | None = None
    ) -> list[VersionState]:
        """Return the states of a model's versions, highest first.

        The arguments are those of `predict`.
        """
        return self._run(self._conversation.status(Target(model, version), timeout))

    def models(self, *, timeout: float | None = None) -> list[ListedModel]:
        """Return all models of the server with their versions and labels; REST only.

        TF Serving has no such list.
        """
        return self._run(self._conversation.models(timeout))

    def reload(self, config: Any, *, timeout: float | None = None) -> None:
        """Replace the configuration of the server's models; gRPC only.

        Args:
            config: A whole `ModelServerConfig` (`gru_serving.protos.model_server_config_pb2`).
            timeout: Seconds allowed.
        """
        self._run(self._conversation.reload(config, timeout))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, steps: Steps[ResultT]) -> ResultT:
        return drive(steps, self._perform)

    def _perform(self, action: Exchange) -> Any:
        return self._connection.send(action.message, action.timeout)


class AsyncConnection(Protocol):
    """Sends messages and waits for replies, in an event loop."""

    async def send(self, message: Any, timeout: float) -> Any:
        """Return the reply; a ServingError where there is none."""

    async def close(self) -> None:
        """Free the sockets."""


class AsyncClient:
    """The counterpart of `gru_serving.client.Client` with coroutines, for one event loop.

    `connect_async` makes one.
    """

    def __init__(self, wire: Wire, connection: AsyncConnection, url: str, options: ClientOptions):
        self.url = url
        self.options = options
        self._conversation = Conversation(wire, options)
        self._connection = connection
        self._slots = asyncio.Semaphore(options.max_under_way)

    async def predict(
        self,
        inputs: Mapping[str, Any] | Any,
        model: str = "default",
        *,
        version: int | None = None,
        label: str = "",
        signature: str = "",
        output_filter: Collection[str] = (),
        timeout: float | None = None,
    ) -> dict[str, np.ndarray]:
        """Run a signature on inputs and return its outputs by name; see `Client.predict`."""
        target = Target(model, version, label)
        return await self._run(
            self._conversation.predict(inputs, target, signature, output_filter, timeout)
        )

    async def classify(
        self,
        examples: Sequence[Mapping[str, Any]],
        model: str = "default",
        *,
        version: int | None = None,
        label: str = "",
        signature: str = "",
        timeout: float | None = None,
    ) -> list[list[tuple[str, float]]]:
        """Return (label, score) pairs for each example; see `Client.classify`."""
        target = Target(model, version, label)
        return await self._run(self._conversation.classify(examples, target, signature, timeout))

    async def regress(
        self,
        examples: Sequence[Mapping[str, Any]],
        model: str = "default",
        *,
        version: int | None = None,
        label: str = "",
        signature: str = "",
        timeout: float | None = None,
    ) -> list[float]:
        """Return one number for each example; see `Client.regress`."""
        target = Target(model, version, label)
        return await self._run(self._conversation.regress(examples, target, signature, timeout))

    async def metadata(
        self,
        model: str = "default",
        *,
        version: int | None = None,
        label: str = "",
        timeout: float | None = None,
    ) -> Metadata:
        """Return the signatures of a model; see `Client.metadata`."""
        return await self._run(self._conversation.metadata(Target(model, version, label), timeout))

    async def status(
        self, model: str = "default", *, version: int | None = None, timeout: float | None = None
    ) -> list[VersionState]:
        """Return the states of a model's versions; see `Client.status`."""
        return await self._run(self._conversation.status(Target(model, version), timeout))

    async def models(self, *, timeout: float | None = None) -> list[ListedModel]:
        """Return the models of the server; see `Client.models`."""
        return await self._run(self._conversation.models(timeout))

    async def reload(self, config: Any, *, timeout: float | None = None) -> None:
        """Replace the configuration of the server's models; see `Client.reload`."""
        await self._run(self._conversation.reload(config, timeout))

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, steps: Steps[ResultT]) -> ResultT:
        return await drive_async(steps, self._perform)

    async def _perform(self, action: Exchange) -> Any:
        """Send a message when fewer than `max_under_way` others are in flight.

        The wait counts towards the timeout.

        Thousands of calls at once would need as many connections over REST, and over gRPC exceed
        the number that TF Serving queues: it cancels the rest.
        """
        deadline = time.monotonic() + action.timeout
        if self._slots.locked():
            try:
                async with asyncio.timeout(action.timeout):
                    await self._slots.acquire()
            except TimeoutError:
                raise too_slow(self.url, action.timeout) from None
        else:
            await self._slots.acquire()
        try:
            if not action.is_needed():
                return None
            return await self._connection.send(
                action.message, max(0.001, deadline - time.monotonic())
            )
        finally:
            self._slots.release()
