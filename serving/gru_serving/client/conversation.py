"""The exchanges between a client and a server, without any input or output.

Each method is a generator. It yields the next step, an `Exchange` or a `Pause`, receives the reply,
and returns the result. `Client` and `AsyncClient` perform the steps, so signatures, retries and
splitting are implemented once for both.
"""

import random
import re
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from gru_serving.client.errors import read_answer
from gru_serving.client.metadata import ListedModel, Metadata, Target, VersionState
from gru_serving.client.options import ClientOptions
from gru_serving.codecs.batch_parts import Arrays, join_parts, row_count
from gru_serving.codecs.coerce import coerce
from gru_serving.codecs.dtypes import by_number, by_numpy
from gru_serving.codecs.example import Values, example_values
from gru_serving.codecs.signature import DEFAULT_SIGNATURE, Signature, fits_shape, shape_text
from gru_serving.errors import FailedPrecondition, InvalidArgument, Unavailable, Unknown

ResultT = TypeVar("ResultT")

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_LONGEST_CALL = 1e9  # seconds; neither transport can count to infinity
_TOO_LARGE = re.compile(r"Task size \d+ is larger than maximum input batch size (\d+)")


@dataclass(frozen=True)
class Exchange:
    """A message to send, and the seconds to wait for its reply.

    Attributes:
        message: Message to send.
        timeout: Seconds until the reply, the wait before it is sent included.
        is_needed: Whether to send it at all, asked when its turn has come; where not, the reply is
            None.
    """

    message: Any
    timeout: float
    is_needed: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class Pause:
    """A pause before the next exchange."""

    seconds: float


Steps = Generator[Exchange | Pause, Any, ResultT]
Call = tuple[Any, Callable[[Any], ResultT]]


class Wire(Protocol):
    """The encoding of requests for one transport, each with the reader of its reply."""

    def predict(
        self,
        target: Target,
        signature_name: str,
        signature: Signature,
        inputs: Arrays,
        output_filter: Sequence[str],
    ) -> Call[Arrays]:
        """Encode a Predict request."""

    def classify(
        self, target: Target, signature_name: str, examples: Sequence[Values]
    ) -> Call[list[list[tuple[str, float]]]]:
        """Encode a Classify request."""

    def regress(
        self, target: Target, signature_name: str, examples: Sequence[Values]
    ) -> Call[list[float]]:
        """Encode a Regress request."""

    def metadata(self, target: Target) -> Call[Metadata]:
        """Encode a metadata request."""

    def status(self, target: Target) -> Call[list[VersionState]]:
        """Encode a status request."""

    def models(self) -> Call[list[ListedModel]]:
        """Encode a request for the list of models."""

    def reload(self, config: Any) -> Call[None]:
        """Encode a request to serve another ModelServerConfig."""


class Conversation:
    """The calls of a client.

    Args:
        wire: Wire of the transport.
        options: Timeouts, retries and batch limits of the client.
    """

    def __init__(self, wire: Wire, options: ClientOptions) -> None:
        self._wire = wire
        self._options = options
        self._limits: dict[str, int] = {}  # rows that the server takes at once, by model
        self._known: dict[Target, Metadata] = {}

    def predict(
        self,
        inputs: Mapping[str, Any] | Any,
        target: Target,
        signature_name: str,
        output_filter: Collection[str],
        timeout: float | None,
    ) -> Steps[Arrays]:
        """Yield the steps of `Client.predict`; its arrays by output name are the result."""
        deadline = self._deadline(timeout)
        remembered = target in self._known
        signature = yield from self._signature(target, signature_name, deadline)
        try:
            return (
                yield from self._predict(
                    inputs, target, signature_name, signature, output_filter, deadline
                )
            )
        except (FailedPrecondition, InvalidArgument, Unknown):
            # A new version may have other inputs or outputs than the cached ones.
            self._known.pop(target, None)
            if not remembered:
                raise
            current = yield from self._signature(target, signature_name, deadline)
            if _alike(current, signature):
                raise
        return (
            yield from self._predict(
                inputs, target, signature_name, current, output_filter, deadline
            )
        )

    def _predict(
        self,
        inputs: Mapping[str, Any] | Any,
        target: Target,
        signature_name: str,
        signature: Signature,
        output_filter: Collection[str],
        deadline: float,
    ) -> Steps[Arrays]:
        arrays = coerce(inputs, signature)
        for name in output_filter:
            if name not in signature.outputs:
                raise InvalidArgument(
                    f"output_filter: expected some of {sorted(signature.outputs)}; got {name!r}"
                )

        def ask(target: Target, part: Arrays) -> Steps[Arrays]:
            call = self._wire.predict(target, signature_name, signature, part, list(output_filter))
            outputs = yield from self._asking(call, deadline)
            shaped = not _misshapen(part, signature)
            _require_outputs(outputs, signature, _batch_rows(part, signature), shaped)
            return outputs

        try:
            rows = row_count(arrays.values())
            while True:
                size = self._limits.get(target.model, self._options.max_batch_size) or rows
                try:
                    if rows is None or size is None or rows <= size:
                        return (yield from ask(target, arrays))
                    return (yield from self._in_parts(target, arrays, rows, size, ask, deadline))
                except InvalidArgument as error:
                    limit = _TOO_LARGE.search(error.message)
                    sent = min(rows or 0, size or 0)
                    if limit is None or not 1 <= int(limit[1]) < sent:
                        raise
                    self._limits[target.model] = int(limit[1])
        except InvalidArgument as error:
            raise InvalidArgument(error.message + _shape_hint(arrays, signature)) from None

    def classify(
        self, examples: Sequence[Any], target: Target, signature_name: str, timeout: float | None
    ) -> Steps[list[list[tuple[str, float]]]]:
        """Yield the steps of `Client.classify`; (label, score) pairs per example are the result."""
        call = self._wire.classify(target, signature_name, example_values(examples))
        found = yield from self._asking(call, self._deadline(timeout))
        _require_one_each(len(found), len(examples))
        return found

    def regress(
        self, examples: Sequence[Any], target: Target, signature_name: str, timeout: float | None
    ) -> Steps[list[float]]:
        """Yield the steps of `Client.regress`; one number per example is the result."""
        call = self._wire.regress(target, signature_name, example_values(examples))
        found = yield from self._asking(call, self._deadline(timeout))
        _require_one_each(len(found), len(examples))
        return found

    def metadata(self, target: Target, timeout: float | None) -> Steps[Metadata]:
        """Yield the steps of `Client.metadata`."""
        return (yield from self._asking(self._wire.metadata(target), self._deadline(timeout)))

    def status(self, target: Target, timeout: float | None) -> Steps[list[VersionState]]:
        """Yield the steps of `Client.status`."""
        return (yield from self._asking(self._wire.status(target), self._deadline(timeout)))

    def models(self, timeout: float | None) -> Steps[list[ListedModel]]:
        """Yield the steps of `Client.models`."""
        return (yield from self._asking(self._wire.models(), self._deadline(timeout)))

    def reload(self, config: Any, timeout: float | None) -> Steps[None]:
        """Yield the steps of `Client.reload`."""
        return (yield from self._asking(self._wire.reload(config), self._deadline(timeout)))

    def _deadline(self, timeout: float | None) -> float:
        seconds = self._options.timeout if timeout is None else timeout
        if not seconds > 0:  # NaN is not
            raise ValueError(f"timeout must be positive; got {seconds}")
        return time.monotonic() + min(seconds, _LONGEST_CALL)

    def _signature(self, target: Target, name: str, deadline: float) -> Steps[Signature]:
        def is_unknown() -> bool:
            known = self._known.get(target)
            return known is None or (name or DEFAULT_SIGNATURE) not in known.signatures

        if not is_unknown():
            return self._known[target].find(name)
        message, read = self._wire.metadata(target)
        call = message, lambda answer: None if answer is None else read(answer)
        while is_unknown():  # in an event loop other calls may bring it, or forget it, meanwhile
            found = yield from self._asking(call, deadline, is_unknown)
            if found is not None:
                self._known[target] = found
                return found.find(name)
        return self._known[target].find(name)

    def _in_parts(
        self,
        target: Target,
        arrays: Arrays,
        rows: int,
        size: int,
        ask: Callable[[Target, Arrays], Steps[Arrays]],
        deadline: float,
    ) -> Steps[Arrays]:
        if target.version is None:
            # All parts are answered by one version, even if another comes into service meanwhile.
            now = yield from self._asking(self._wire.metadata(target), deadline)
            target = Target(target.model, now.version)
        parts, counts = [], []
        for start in range(0, rows, size):
            part = {name: array[start : start + size] for name, array in arrays.items()}
            parts.append((yield from ask(target, part)))
            counts.append(min(size, rows - start))
        return join_parts(parts, counts)

    def _asking(
        self, call: Call[ResultT], deadline: float, is_needed: Callable[[], bool] = lambda: True
    ) -> Steps[ResultT]:
        """Send a request, and repeat it while the server is unavailable."""
        message, read = call
        for attempt in range(self._options.retries + 1):
            try:
                left = max(0.001, deadline - time.monotonic())
                answer = yield Exchange(message, left, is_needed)
                return read_answer(read, answer)
            except Unavailable:
                wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1.5)
                if attempt == self._options.retries or time.monotonic() + wait > deadline:
                    raise
                yield Pause(wait)
        raise AssertionError("unreachable")


def _batch_rows(arrays: Arrays, signature: Signature) -> int | None:
    """Return the number of rows that a request holds by its signature.

    None where it has no rows.
    """
    shapes = [signature.inputs[name].shape for name in arrays]
    by_row = all(shape is not None and shape[:1] == (-1,) for shape in shapes)
    return row_count(arrays.values()) if by_row else None


def _require_outputs(outputs: Arrays, signature: Signature, rows: int | None, shaped: bool) -> None:
    """Check that the outputs of an answer are those of the signature.

    An output whose first dimension is open has one entry for each row of the request.

    Args:
        outputs: Outputs of the answer.
        signature: Signature that was asked.
        rows: Number of rows that were sent; None where the inputs have no rows.
        shaped: Whether the inputs had the shapes of the signature. TensorFlow Serving does not
            compare them, and outputs of others may have any shape.

    Raises:
        Unknown: An output has another type or shape.
    """
    for name, array in outputs.items():
        expected = signature.outputs.get(name)
        if expected is None:
            raise Unknown(
                f"the server's answer: expected the outputs {sorted(signature.outputs)}; got "
                f"{name!r}"
            )
        dtype = by_numpy(array.dtype)
        if dtype.number != expected.dtype:
            raise Unknown(
                f"the server's answer, output {name!r}: expected {by_number(expected.dtype).name}; "
                f"got {dtype.name}"
            )
        shape = expected.shape
        if shape is None or not shaped:
            continue
        if rows is not None and shape[:1] == (-1,):
            shape = (rows, *shape[1:])
        # JSON holds no shape of an output without elements, but its first dimension.
        told = min(array.ndim, len(shape)) if array.size == 0 and array.ndim > 0 else None
        if not fits_shape(array.shape[:told], shape[:told]):
            raise Unknown(
                f"the server's answer, output {name!r}: expected shape {shape_text(shape)}; got "
                f"{list(array.shape)}"
            )


def _require_one_each(count: int, examples: int) -> None:
    if count != examples:
        raise Unknown(
            f"the server's answer: expected one result for each of {examples} examples; got {count}"
        )


def _alike(first: Signature, second: Signature) -> bool:
    """Tell whether requests and answers have the same form in both versions."""
    return (
        first.inputs == second.inputs
        and first.outputs == second.outputs
        and first.defaults.keys() == second.defaults.keys()
    )


def _shape_hint(arrays: Arrays, signature: Signature) -> str:
    """Return an addition to a refusal that names inputs whose shapes the signature excludes."""
    hints = [
        f"input {name}: expected shape {shape_text(wanted)}, sent {list(arrays[name].shape)}"
        for name, wanted in _misshapen(arrays, signature).items()
    ]
    return f" ({'; '.join(hints)})" if hints else ""


def _misshapen(arrays: Arrays, signature: Signature) -> dict[str, tuple[int, ...]]:
    """Return the shapes that the signature expects of inputs that have others, by name."""
    found = {}
    for name, array in arrays.items():
        wanted = signature.inputs[name].shape
        if wanted is not None and not fits_shape(array.shape, wanted):
            found[name] = wanted
    return found
