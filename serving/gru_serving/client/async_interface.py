"""The client interface for an event loop: `connect_async("grpc://localhost:8500")`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from gru_serving.client.conversation import Conversation, Exchange, Steps, Wire
from gru_serving.client.conversation_driver import drive_async
from gru_serving.client.errors import too_slow
from gru_serving.client.metadata import ListedModel, Metadata, VersionState
from gru_serving.client.options import ClientOptions
from gru_serving.client.target import Target

ResultT = TypeVar("ResultT")


class AsyncConnection(Protocol):
    """Sends messages and waits for replies, in an event loop."""

    async def send(self, message: Any, timeout: float) -> Any:
        """The reply; a ServingError where there is none."""

    async def close(self) -> None:
        """Free the sockets."""


class AsyncClient:
    """As `gru_serving.client.Client`, with coroutines; for one event loop.

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
        """As `Client.predict`."""
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
        """As `Client.classify`."""
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
        """As `Client.regress`."""
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
        """As `Client.metadata`."""
        return await self._run(self._conversation.metadata(Target(model, version, label), timeout))

    async def status(
        self, model: str = "default", *, version: int | None = None, timeout: float | None = None
    ) -> list[VersionState]:
        """As `Client.status`."""
        return await self._run(self._conversation.status(Target(model, version), timeout))

    async def models(self, *, timeout: float | None = None) -> list[ListedModel]:
        """As `Client.models`."""
        return await self._run(self._conversation.models(timeout))

    async def reload(self, config: Any, *, timeout: float | None = None) -> None:
        """As `Client.reload`."""
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
        """Send a message once fewer than `max_under_way` others are; the wait is part of its time.

        Thousands of calls at once would be as many connections over REST, and over gRPC more than
        TF Serving queues: it cancels the rest.
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
