"""A streaming session as data: its state, kept by the client, and its answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from gru_serving.codecs.json_predict import read_json
from gru_serving.errors import InvalidArgument


@dataclass(frozen=True)
class StreamState:
    """A whole session; `to_json` saves it, `from_json` restores it.

    Attributes:
        model: Name of the model.
        version: The version that the state belongs to.
        signature: Of the step.
        label: The version label that the session follows when its version is gone.
        steps: Pieces fed.
        state: (S,) numbers; zeros before the first step.
        history: What was fed, for a replay on another version; None where it is not kept.
    """

    model: str
    version: int
    signature: str
    label: str
    steps: int
    state: tuple[float, ...]
    history: tuple[Any, ...] | None = field(default=())

    def to_json(self) -> str:
        """As one line of JSON; float32 survive exactly."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> StreamState:
        """The inverse of `to_json`.

        Raises:
            InvalidArgument: The text is something else.
        """
        try:
            values = read_json(text)
            history = values.pop("history")
            kept = None if history is None else tuple(history)
            return cls(**{**values, "state": tuple(map(float, values["state"]))}, history=kept)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidArgument(f"not a saved streaming state: {error!r}") from None


@dataclass(frozen=True)
class StreamAnswer:
    """The answer to everything fed so far.

    Attributes:
        outputs: As of `Client.predict`, one row, without the state.
        version: That answered.
        steps: Pieces fed.
        replayed: The previous version was gone, and the earlier input was replayed on this one.
    """

    outputs: dict[str, np.ndarray]
    version: int
    steps: int
    replayed: bool = False
