"""One client interface over REST and gRPC: `connect("http://localhost:8501")`."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from serving.coerce import coerce
from serving.errors import InvalidArgument, Unavailable
from serving.signature import DEFAULT_SIGNATURE, Signature

ResultT = TypeVar("ResultT")

_FIRST_WAIT = 0.1


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


@dataclass(frozen=True)
class Metadata:
    """What a loaded version accepts and answers."""

    model: str
    version: int
    signatures: Mapping[str, Signature]


@dataclass(frozen=True)
class VersionState:
    """State of one version: START, LOADING, AVAILABLE, UNLOADING or END."""

    version: int
    state: str
    error_code: str = "OK"
    error_message: str = ""


class Client(ABC):
    """A connection to a server; the same methods over either transport.

    Args:
        url: Of the server.
        timeout: Seconds allowed for a call where the call does not say.
        retries: Further tries while the server is unavailable, with growing waits, within the
            time allowed. No other error is tried again.
    """

    def __init__(self, url: str, timeout: float = 30.0, retries: int = 3) -> None:
        if not timeout > 0:  # NaN is not
            raise ValueError(f"timeout must be positive; got {timeout}")
        if retries < 0:
            raise ValueError(f"retries must not be negative; got {retries}")
        self.url = url
        self._timeout = timeout
        self._retries = retries
        self._known: dict[Target, Metadata] = {}

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
            version: Exactly that version; None for the highest that serves.
            label: The version with that label.
            signature: Empty for `serving_default`.
            output_filter: Outputs wanted; all when empty.
            timeout: Seconds allowed, retries included.

        Returns:
            Arrays by output name; strings as `object` arrays of `bytes`.

        Raises:
            ServingError: The server's error, or Unavailable or DeadlineExceeded.
        """
        target = Target(model, version, label)
        deadline = time.monotonic() + (timeout or self._timeout)
        chosen = self._signature(target, signature, deadline)
        arrays = coerce(inputs, chosen)
        for name in output_filter:
            if name not in chosen.outputs:
                raise InvalidArgument(
                    f"output_filter: expected some of {sorted(chosen.outputs)}; got {name!r}"
                )
        try:
            return self._retrying(
                deadline,
                lambda left: self._predict(
                    target, signature, chosen, arrays, list(output_filter), left
                ),
            )
        except Unavailable:
            raise
        except Exception:
            # The signature may have changed with a new version.
            self._known.pop(target, None)
            raise

    def metadata(
        self,
        model: str = "default",
        *,
        version: int | None = None,
        label: str = "",
        timeout: float | None = None,
    ) -> Metadata:
        """The signatures of a model; arguments as in `predict`."""
        target = Target(model, version, label)
        deadline = time.monotonic() + (timeout or self._timeout)
        return self._retrying(deadline, lambda left: self._metadata(target, left))

    def status(
        self, model: str = "default", *, version: int | None = None, timeout: float | None = None
    ) -> list[VersionState]:
        """States of the versions of a model, highest first; arguments as in `predict`."""
        target = Target(model, version)
        deadline = time.monotonic() + (timeout or self._timeout)
        return self._retrying(deadline, lambda left: self._status(target, left))

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _predict(
        self,
        target: Target,
        signature_name: str,
        signature: Signature,
        inputs: Mapping[str, np.ndarray],
        output_filter: list[str],
        timeout: float,
    ) -> dict[str, np.ndarray]: ...

    @abstractmethod
    def _metadata(self, target: Target, timeout: float) -> Metadata: ...

    @abstractmethod
    def _status(self, target: Target, timeout: float) -> list[VersionState]: ...

    def _signature(self, target: Target, name: str, deadline: float) -> Signature:
        known = self._known.get(target)
        if known is None:
            known = self._retrying(deadline, lambda left: self._metadata(target, left))
            self._known[target] = known
        wanted = name or DEFAULT_SIGNATURE
        if wanted not in known.signatures:
            self._known.pop(target, None)
            callable_ones = sorted(n for n in known.signatures if not n.startswith("__"))
            raise InvalidArgument(
                f"model {target.model} version {known.version} has no signature {wanted!r}; "
                f"it has {callable_ones}"
            )
        return known.signatures[wanted]

    def _retrying(self, deadline: float, call: Callable[[float], ResultT]) -> ResultT:
        for attempt in range(self._retries + 1):
            try:
                return call(max(0.001, deadline - time.monotonic()))
            except Unavailable:
                wait = _FIRST_WAIT * 2**attempt * random.uniform(0.5, 1.5)
                if attempt == self._retries or time.monotonic() + wait > deadline:
                    raise
                time.sleep(wait)
        raise AssertionError("unreachable")

    def _unreachable(self, reason: str, flag: str) -> Unavailable:
        return Unavailable(
            f"no server answers at {self.url} ({reason}). Start one with: gru-serve serve "
            f"--model_base_path=/path/of/the/model --{flag}"
        )


def connect(
    url: str, *, timeout: float = 30.0, retries: int = 3, ca_file: str | None = None
) -> Client:
    """A client for a server.

    Args:
        url: `http://host:port` or `https://host:port` for REST; `grpc://host:port`,
            `grpcs://host:port` (TLS), `unix:/path` or plain `host:port` for gRPC.
        timeout: Seconds allowed for a call where the call does not say.
        retries: Further tries while the server is unavailable.
        ca_file: Certificates (PEM) to trust, for https and grpcs.

    Raises:
        ValueError: The URL is of another kind.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("http", "https") and rest:
        from serving.rest_client import RestClient

        return RestClient(url, timeout, retries, ca_file)
    if separator and scheme in ("grpc", "grpcs") and rest:
        from serving.grpc_client import GrpcClient

        return GrpcClient(rest, timeout, retries, ca_file, tls=scheme == "grpcs")
    host, colon, port = url.rpartition(":")
    if not separator and colon and (host == "unix" or port.isdecimal()):
        from serving.grpc_client import GrpcClient

        return GrpcClient(url, timeout, retries, ca_file)
    raise ValueError(
        "url: expected http://host:port or https://host:port (REST), grpc://host:port or "
        f"host:port (gRPC); got {url!r}"
    )
