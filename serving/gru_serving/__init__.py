"""The serving of trained runs over gRPC and REST.

From Python: `connect` and `connect_async`, clients of a server. From the command line: `gru-serve`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gru_serving.client import connect, connect_async

__all__ = ["connect", "connect_async"]


def __getattr__(name: str) -> Any:
    # The server and most commands need no client, and should not wait for one.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gru_serving import client

    return getattr(client, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
