"""Runs conversations, which know no I/O, over clients that block and clients that do not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from gru_serving.client.conversation import Pause
from gru_serving.errors import ServingError

ActionT = TypeVar("ActionT")
ResultT = TypeVar("ResultT")


def drive(
    steps: Generator[ActionT | Pause, Any, ResultT], perform: Callable[[ActionT], Any]
) -> ResultT:
    """Run a conversation to its end.

    Args:
        steps: Yields actions; gets each one's reply, or its ServingError, in return.
        perform: Does one action; pauses are waited out here.

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
    """As `drive`, without blocking the event loop."""
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
