"""Which version of which model a request is for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """Which version of which model a request is for.

    Attributes:
        model: Name.
        version: Number; None for the highest that serves.
        label: Version label; not together with `version`.
    """

    model: str
    version: int | None = None
    label: str = ""

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("model must be a name; got ''")
        if self.version is not None and not 0 <= self.version < 2**63:
            raise ValueError(f"version must be at least 0 and below 2^63; got {self.version}")
        if self.version is not None and self.label:
            raise ValueError(
                f"give version or label, not both; got version={self.version}, label={self.label!r}"
            )
