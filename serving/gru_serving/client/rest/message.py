"""What the REST client sends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RestMessage:
    """A request: method, path and JSON body."""

    method: str
    path: str
    body: bytes | None = None
