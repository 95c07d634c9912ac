"""Streaming sessions: one per text or series, with the state kept by the client.

    session = StreamingSession(client, "sentiment")
    for word in words:
        answer = session.feed(word)          # the answer to everything fed so far

The server keeps nothing between steps, so a session survives a restart of the server: a step that
failed is sent again. A state belongs to the version that computed it, and the session stays with
that version while it serves. When that version is gone, the session starts over on the version that
serves now and replays its inputs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Self, TypeVar

import numpy as np

from gru_serving.client.conversation import Pause
from gru_serving.client.interface import AsyncClient, Client, drive, drive_async
from gru_serving.codecs.dtypes import STRING
from gru_serving.codecs.json_predict import read_json
from gru_serving.errors import FailedPrecondition, InvalidArgument, NotFound, Unavailable, Unknown


@dataclass(frozen=True)
class StreamState:
    """A complete session; `to_json` saves it, `from_json` restores it.

    Attributes:
        model: Name of the model.
        version: The version that the state belongs to.
        signature: Signature of the step.
        label: The version label that the session follows when its version is gone.
        steps: Pieces fed.
        state: (S,) numbers; zeros before the first step.
        history: Pieces that were fed, for a replay on another version; None where they are not
            kept.
    """

    model: str
    version: int
    signature: str
    label: str
    steps: int
    state: tuple[float, ...]
    history: tuple[Any, ...] | None = field(default=())

    def to_json(self) -> str:
        """Return the state as one line of JSON; float32 values survive exactly."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> StreamState:
        """Restore a state that `to_json` wrote.

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
        outputs: Outputs of `Client.predict`, one row, without the state.
        version: Version that answered.
        steps: Pieces fed.
        replayed: The previous version was gone, and the earlier input was replayed on this one.
    """

    outputs: dict[str, np.ndarray]
    version: int
    steps: int
    replayed: bool = False


__all__ = ["AsyncStreamingSession", "StreamAnswer", "StreamState", "StreamingSession"]

STATE = "state"
NEXT_TOKEN = "next_token"
"""An output of the step of language models."""
_RETRY_SECONDS = 0.5
_LARGEST_STATE = 1 << 24  # numbers, a limit because a server may claim any

ResultT = TypeVar("ResultT")
ClientT = TypeVar("ClientT", Client, AsyncClient)


@dataclass(frozen=True)
class _Ask:
    """A call of a method of the client."""

    method: str
    arguments: dict[str, Any]


_Steps = Generator[_Ask | Pause, Any, ResultT]


class _Stream(Generic[ClientT]):
    """The logic of a session without input or output; see `gru_serving.client.conversation`."""

    def __init__(
        self,
        client: ClientT,
        model: str = "default",
        *,
        version: int | None = None,
        label: str = "",
        signature: str = "step",
        patience: float = 60.0,
        keep_history: bool = True,
    ) -> None:
        self._client: ClientT = client
        self._model, self._wanted, self._label = model, version, label
        self._signature, self._patience = signature, patience
        self._history: list[Any] | None = [] if keep_history else None
        self._version: int | None = None
        self._state = np.zeros((1, 0), np.float32)
        self._steps = 0
        self._input, self._joins, self._width = "", True, 0  # known once `_input` is

    @classmethod
    def resume(cls, client: ClientT, saved: StreamState, *, patience: float = 60.0) -> Self:
        """Continue from `saved`; the client may be another one."""
        session = cls(
            client,
            saved.model,
            label=saved.label,
            signature=saved.signature,
            patience=patience,
            keep_history=saved.history is not None,
        )
        session._version, session._steps = saved.version, saved.steps
        session._state = np.array([saved.state], np.float32)
        session._history = None if saved.history is None else list(saved.history)
        return session

    @property
    def version(self) -> int | None:
        """The version that the state belongs to; None before the first step."""
        return self._version

    @property
    def saved(self) -> StreamState:
        """The current session, for `resume`.

        Raises:
            FailedPrecondition: The session has had no step yet.
        """
        if self._version is None:
            raise FailedPrecondition("the session has no state before its first step")
        return StreamState(
            self._model,
            self._version,
            self._signature,
            self._label,
            self._steps,
            tuple(self._state[0].tolist()),
            None if self._history is None else tuple(self._history),
        )

    def _feeding(self, piece: Any) -> _Steps[StreamAnswer]:
        deadline = time.monotonic() + self._patience
        replayed = False
        try:
            if not self._input:
                yield from self._open(deadline)
            outputs = yield from self._step(piece, deadline)
        except NotFound as error:
            yield from self._move(error, deadline)
            replayed = True
            outputs = yield from self._step(piece, deadline)
        self._steps += 1
        if self._history is not None:
            # Values in the form that JSON can hold.
            self._history.append(piece if isinstance(piece, str) else np.asarray(piece).tolist())
        assert self._version is not None
        return StreamAnswer(outputs, self._version, self._steps, replayed)

    def _open(self, deadline: float) -> _Steps[None]:
        """Begin on a version, or read the signature of the version that the state belongs to."""
        version = self._wanted if self._version is None else self._version
        label = self._label if version is None else ""
        metadata = yield from self._patient(
            "metadata", {"model": self._model, "version": version, "label": label}, deadline
        )
        try:
            signature = metadata.find(self._signature)
        except InvalidArgument as error:
            raise InvalidArgument(
                f"{error.message}; only a model that reads in one direction can stream (gru-train "
                "sentiment --no-bidirectional, without --ngrams; gru-train forecasting "
                "--architecture one_shot --normalisation difference, without --linear-skip)"
            ) from None
        others = [name for name in signature.inputs if name != STATE]
        shape = signature.inputs[STATE].shape if STATE in signature.inputs else None
        if len(others) != 1 or not shape or len(shape) != 2 or not 1 <= shape[1] <= _LARGEST_STATE:
            shapes = {name: info.shape for name, info in signature.inputs.items()}
            raise InvalidArgument(
                f"signature {self._signature!r}: expected one input beside {STATE!r} (B, S); "
                f"got {shapes}"
            )
        if self._version is None:
            self._version, self._state = metadata.version, np.zeros((1, shape[1]), np.float32)
        elif self._state.shape[1] != shape[1]:
            raise FailedPrecondition(
                f"the saved state has {self._state.shape[1]} numbers, that of version "
                f"{metadata.version} of {self._model} {shape[1]}: it belongs to another model; "
                "start a new session"
            )
        # Some language models read characters, for which a blank between two pieces would be one of
        # them.
        is_text = signature.inputs[others[0]].dtype == STRING.number
        self._joins = is_text and NEXT_TOKEN not in signature.outputs
        self._input = others[0]
        ticks: tuple[int, ...] = signature.inputs[self._input].shape or ()
        self._width = max(0, ticks[1]) if len(ticks) == 2 and not is_text else 0

    def _move(self, error: NotFound, deadline: float) -> _Steps[None]:
        """Replay the inputs on the version that serves now, since the old one is gone."""
        if self._version is None or self._wanted is not None:
            raise error
        if self._history is None:
            raise FailedPrecondition(
                f"the session's state belongs to version {self._version} of {self._model}, which "
                "no longer serves, and its history was not kept: start a new session"
            ) from None
        before = self._version, self._state
        self._version, self._input = None, ""
        try:
            yield from self._open(deadline)
            # A text may be fed in one piece of any length, in a single request.
            at_once = self._joins and self._history
            for piece in [" ".join(self._history)] if at_once else self._history:
                yield from self._step(piece, deadline)
        except BaseException:
            (self._version, self._state), self._input = before, ""
            raise

    def _step(self, piece: Any, deadline: float) -> _Steps[dict[str, np.ndarray]]:
        if self._width and np.shape(piece) != (self._width,):
            raise InvalidArgument(
                f"expected a list of {self._width} numbers, one for each column of the model, got "
                f"{piece!r:.60}"
            )
        arguments = {
            "inputs": {self._input: [piece], STATE: self._state},
            "model": self._model,
            "version": self._version,
            "signature": self._signature,
        }
        outputs: dict[str, np.ndarray] = yield from self._patient("predict", arguments, deadline)
        state = outputs.pop(STATE, None)
        rows = {name: list(array.shape) for name, array in outputs.items()}
        if state is None or state.shape != self._state.shape or state.dtype.kind != "f":
            got = "none" if state is None else f"{state.dtype} {list(state.shape)}"
            raise Unknown(
                f"the server's answer: expected a state of {list(self._state.shape)} numbers; "
                f"got {got}"
            )
        if any(shape[:1] != [1] for shape in rows.values()):
            raise Unknown(f"the server's answer: expected outputs of one row; got {rows}")
        self._state = state
        return outputs

    def _patient(self, method: str, arguments: dict[str, Any], deadline: float) -> _Steps[Any]:
        """Repeat a call while the server is unavailable, for instance restarting."""
        while True:
            left = max(0.001, deadline - time.monotonic())
            try:
                return (yield _Ask(method, {**arguments, "timeout": left}))
            except Unavailable:
                if time.monotonic() + _RETRY_SECONDS > deadline:
                    raise
                yield Pause(_RETRY_SECONDS)


class StreamingSession(_Stream[Client]):
    """A session that is fed one text or series piece by piece; for one thread at a time.

    Args:
        client: Client of either transport.
        model: Name of the model.
        version: Exactly that version: the session then ends with it. None for the highest that
            serves.
        label: The version with that label.
        signature: Signature of the step.
        patience: Seconds that a step may take, a restart of the server included.
        keep_history: Whether to keep what is fed, for a replay when the version is gone.
    """

    def feed(self, piece: Any) -> StreamAnswer:
        """Feed the next piece: a word or longer text, or the values of one tick.

        Raises:
            ServingError: The server's error; the session stands as before, and the piece may be
                fed again.
        """
        return drive(self._feeding(piece), self._perform)

    def _perform(self, action: _Ask) -> Any:
        return getattr(self._client, action.method)(**action.arguments)


class AsyncStreamingSession(_Stream[AsyncClient]):
    """The counterpart of `StreamingSession` for an `AsyncClient`."""

    async def feed(self, piece: Any) -> StreamAnswer:
        """Feed the next piece and return the answer; see `StreamingSession.feed`."""
        return await drive_async(self._feeding(piece), self._perform)

    async def _perform(self, action: _Ask) -> Any:
        return await getattr(self._client, action.method)(**action.arguments)
