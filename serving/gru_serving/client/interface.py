"""The interface of a client, the same over REST and gRPC.

`gru_serving.client.async_interface` has the same methods as coroutines.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from gru_serving.client.conversation import Conversation, Exchange, Steps, Wire
from gru_serving.client.conversation_driver import drive
from gru_serving.client.metadata import ListedModel, Metadata, VersionState
from gru_serving.client.options import ClientOptions
from gru_serving.client.target import Target

ResultT = TypeVar("ResultT")


class Connection(Protocol):
    """Sends messages and waits for replies; safe to share between threads."""

    def send(self, message: Any, timeout: float) -> Any:
        """The reply; a ServingError where there is none."""

    def close(self) -> None:
        """Free the sockets."""


class Client:
    """A connection to a server; the same methods over either transport, for any thread.

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
            model: As in `predict`, and so are the others.
            version: Exactly that version.
            label: The version with that label.
            signature: Empty for `serving_default`.
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
        """One number per tf.Example; arguments as in `classify`."""
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
        """The signatures of a model; arguments as in `predict`."""
        return self._run(self._conversation.metadata(Target(model, version, label), timeout))

    def status(
        self, model: str = "default", *, version: int | None = None, timeout: float | None = None
    ) -> list[VersionState]:
        """States of the versions of a model, highest first; arguments as in `predict`."""
        return self._run(self._conversation.status(Target(model, version), timeout))

    def models(self, *, timeout: float | None = None) -> list[ListedModel]:
        """All models of the server with their versions and labels; REST only.

        TF Serving itself has no such list.
        """
        return self._run(self._conversation.models(timeout))

    def reload(self, config: Any, *, timeout: float | None = None) -> None:
        """Have the server serve another configuration; gRPC only.

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
