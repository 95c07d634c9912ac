"""Brings requests that name the same tensors in different orders into one queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gru_serving.engine.batching.queue import BatchQueue, Tensors


class Route(NamedTuple):
    """How requests that name their tensors in one order go through the queue that has another.

    Attributes:
        queue: That of the tensors.
        feeds: The order to bring inputs into; None where it is the queue's.
        picks: The place of each output among the queue's; None where they are the same.
    """

    queue: BatchQueue
    feeds: Tensors | None
    picks: Sequence[int] | None

    @classmethod
    def into(cls, queue: BatchQueue, feeds: Tensors, fetches: Tensors) -> Route:
        """That of requests with these tensors."""
        return cls(
            queue,
            None if feeds == queue.feeds else queue.feeds,
            None if fetches == queue.fetches else [queue.fetches.index(one) for one in fetches],
        )
