"""The interface between a predictor and what runs the model: graph, TFLite file or batcher."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from gru_serving.errors import NotFound
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap


def missing_tensor(name: str) -> NotFound:
    """Make TF Serving's error for a tensor that a graph does not have."""
    return NotFound(
        f"Tensor {name}, specified in either feed_devices or fetch_devices was not found in the "
        "Graph"
    )


class ModelSession(Protocol):
    """Named tensors in, named tensors out; methods may be called from several threads.

    Attributes:
        signatures: Signatures as stored in the model.
    """

    signatures: SignatureDefMap

    def tensor(self, name: str) -> Any:
        """Return a hashable handle of a tensor, for `run`.

        Raises:
            NotFound: No such tensor.
        """

    def run(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], timeout_ms: int = 0
    ) -> list[np.ndarray]:
        """Run the model.

        Args:
            feeds: Arrays by handle.
            fetches: Handles wanted.
            timeout_ms: Time allowed; 0 for no limit.

        Returns:
            One array per fetch.

        Raises:
            ServingError: The run fails; the message is TF Serving's.
        """

    def is_brief(self, feeds: Mapping[Any, np.ndarray]) -> bool:  # noqa: ARG002
        """Tell whether a run with these inputs would end before another thread could start it.

        By default it would not: a run may take long, or wait for others.
        """
        return False

    def interrupt(self) -> None:
        """End the runs in progress if possible; for the end of the process."""

    def close(self) -> None:
        """Free the model; no run may be in progress."""
