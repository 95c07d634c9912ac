"""A loaded version with arrays in and out, independent of HTTP and gRPC."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from gru_serving.codecs.dtypes import STRING, check_array, string_array
from gru_serving.codecs.signature import DEFAULT_SIGNATURE, Signature
from gru_serving.engine.batching.session import BatchingSession
from gru_serving.engine.load_options import SessionOptions
from gru_serving.engine.model_session import ModelSession
from gru_serving.errors import FailedPrecondition, InvalidArgument
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap
from gru_serving.telemetry.metrics import Metrics
from gru_serving.telemetry.tracing import RequestTrace

AnswerT = TypeVar("AnswerT")
OtherT = TypeVar("OtherT")

_MAX_CALLS = 1024


@dataclass(frozen=True)
class _Call:
    """Tensors of one signature with one choice of outputs.

    Outputs are fetched in the order of their names, however a request orders them, so runs that
    differ only in this order can share a batch.
    """

    signature: Signature
    feeds: Sequence[tuple[str, Any, bool]]  # alias, handle, whether it takes strings
    fetches: Sequence[Any]
    fetched: Sequence[str]
    wanted: Sequence[str]

    def answer(self, outputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs of a run by name, in the requested order."""
        answer = dict(zip(self.fetched, outputs, strict=True))
        return answer if self.wanted == self.fetched else {a: answer[a] for a in self.wanted}


@dataclass(frozen=True, slots=True)
class PreparedRun(Generic[AnswerT]):
    """One run of a model with everything that it needs.

    Attributes:
        session: Session that runs the model.
        feeds: Arrays by the handle of the tensor they stand for.
        fetches: Handles of the tensors wanted.
        read: Function that makes the answer of the arrays fetched.
    """

    session: ModelSession
    feeds: Mapping[Any, np.ndarray]
    fetches: Sequence[Any]
    read: Callable[[Sequence[np.ndarray]], AnswerT]

    @property
    def brief(self) -> bool:
        """True if the run would end before another thread could have started it."""
        return self.session.is_brief(self.feeds)

    @property
    def batched(self) -> bool:
        """True if the run is merged with others and has to be awaited (`run_in_batch`)."""
        return isinstance(self.session, BatchingSession)

    @property
    def rows(self) -> int:
        """The number of rows of the first array that is fed."""
        return len(next(iter(self.feeds.values())))

    def run(self, timeout_ms: int = 0) -> AnswerT:
        """Run the model; blocks until the answer is complete.

        Args:
            timeout_ms: Milliseconds allowed; 0 for no limit.

        Raises:
            ServingError: The run fails; the message is TF Serving's.
        """
        return self.read(self.session.run(self.feeds, self.fetches, timeout_ms))

    async def run_in_batch(self, timeout_ms: int = 0, trace: RequestTrace | None = None) -> AnswerT:
        """Run the model together with other requests, for an event loop.

        A request that waits for its batch to fill occupies no thread, so batches may hold more
        requests than there are threads.

        Args:
            timeout_ms: Milliseconds allowed; 0 for no limit.
            trace: Spans of the request, if it is sampled.
        """
        assert isinstance(self.session, BatchingSession)
        return self.read(await self.session.run_soon(self.feeds, self.fetches, timeout_ms, trace))

    def then(self, read: Callable[[AnswerT], OtherT]) -> PreparedRun[OtherT]:
        """Return the same run with its answer converted by a function."""
        first = self.read
        return PreparedRun(
            self.session, self.feeds, self.fetches, lambda outputs: read(first(outputs))
        )


class CountedSession:
    """A session that counts successful runs under the names of TensorFlow's own counters.

    Args:
        session: Session that runs the model.
        metrics: Metrics that count the runs.
    """

    def __init__(self, session: ModelSession, metrics: Metrics) -> None:
        self._session = session
        self._metrics = metrics
        self.signatures = session.signatures
        self.tensor = session.tensor
        self.is_brief = session.is_brief
        self.interrupt = session.interrupt
        self.close = session.close

    def run(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], timeout_ms: int = 0
    ) -> list[np.ndarray]:
        """Run the model; see `ModelSession.run`."""
        started = time.perf_counter()
        outputs = self._session.run(feeds, fetches, timeout_ms)
        microseconds = int((time.perf_counter() - started) * 1e6)
        self._metrics.direct_session_runs.add()
        self._metrics.graph_runs.add()
        self._metrics.graph_run_time_usecs.add(by=microseconds)
        return outputs


class Predictor:
    """A model in memory; its methods may be called from several threads.

    Args:
        model: Directory of a SavedModel, or what runs the model already; closed with this.
        tags: Tags of the MetaGraph to load.
        options: Threads of the session.
        check_method_names: Whether to refuse signatures whose `method_name` does not fit the
            request.
        runtime: Name of what runs the model.
        left: Signatures that this leaves to TensorFlow.

    Attributes:
        signatures: Signatures by name.
        signature_defs: Signatures as stored, for metadata.
        check_method_names: Whether it refuses such signatures.
        runtime: Name of what runs the model: `tensorflow`, `tflite` or `onnx`.
        left: Signatures that this leaves to TensorFlow.

    Raises:
        ServingError: The SavedModel cannot be loaded.
    """

    def __init__(
        self,
        model: str | Path | ModelSession,
        tags: Sequence[str] = ("serve",),
        options: SessionOptions | None = None,
        check_method_names: bool = False,
        runtime: str = "tensorflow",
        left: Collection[str] = (),
    ) -> None:
        if isinstance(model, (str, Path)):
            from gru_serving.engine.runtime import open_graph_session

            model = open_graph_session(Path(model), tags, options)
        self._session = model
        self.check_method_names = check_method_names
        self.runtime = runtime
        self.left = frozenset(left)
        self.signature_defs: SignatureDefMap = self._session.signatures
        self.signatures: dict[str, Signature] = {
            name: Signature.from_proto(proto)
            for name, proto in sorted(self.signature_defs.signature_def.items())
        }
        self._calls: dict[tuple[str, tuple[str, ...]], _Call] = {}

    def find_signature(self, name: str) -> Signature:
        """Find the signature of a Predict request.

        Args:
            name: Name of the signature; empty for `serving_default`.

        Raises:
            FailedPrecondition: The model has no such signature; the message is TF Serving's.
        """
        name = name or DEFAULT_SIGNATURE
        try:
            return self.signatures[name]
        except KeyError:
            raise FailedPrecondition(f'Serving signature key "{name}" not found.') from None

    def check_inputs(self, signature: Signature, names: Collection[str]) -> None:
        """Check that a Predict request fits its signature.

        Args:
            signature: Signature of this model.
            names: Names of the inputs that the request feeds.

        Raises:
            ServingError: The signature is not one for Predict, or takes other inputs; the message
                is TF Serving's.
        """
        if self.check_method_names:
            signature.check_predict_method()
        signature.check_input_names(names)

    def predict(
        self,
        inputs: Mapping[str, np.ndarray],
        signature_name: str = "",
        output_filter: Collection[str] = (),
        timeout_ms: int = 0,
    ) -> dict[str, np.ndarray]:
        """Run one signature.

        Args:
            inputs: Arrays by input name; shapes are not checked, the graph does.
            signature_name: Name of the signature; empty for `serving_default`.
            output_filter: Outputs wanted, in that order; all when empty.
            timeout_ms: Time allowed; 0 for no limit.

        Returns:
            Arrays by output name.

        Raises:
            ServingError: The request cannot be answered; the message is TF Serving's.
        """
        return self.prepare_checked(inputs, signature_name, output_filter).run(timeout_ms)

    def prepare_checked(
        self,
        inputs: Mapping[str, np.ndarray],
        signature_name: str = "",
        output_filter: Collection[str] = (),
    ) -> PreparedRun[dict[str, np.ndarray]]:
        """Prepare the run of `predict` after `check_inputs`."""
        self.check_inputs(self.find_signature(signature_name), inputs.keys())
        return self.prepare(inputs, signature_name, output_filter)

    def prepare(
        self,
        inputs: Mapping[str, np.ndarray],
        signature_name: str = "",
        output_filter: Collection[str] = (),
    ) -> PreparedRun[dict[str, np.ndarray]]:
        """Prepare the run of `predict`; the names of the inputs must have passed `check_inputs`."""
        key = (signature_name, tuple(output_filter))
        call = self._calls.get(key)
        if call is None:
            call = self._new_call(self.find_signature(signature_name), output_filter)
            # Clients choose the filters; their variety must not fill the memory.
            if len(self._calls) < _MAX_CALLS:
                self._calls[key] = call
        signature = call.signature
        feeds = {}
        for alias, handle, takes_strings in call.feeds:
            array = inputs.get(alias)
            if array is None:
                array = signature.defaults[alias]
            check_array(array)
            if takes_strings and array.dtype.kind in "SUT":
                array = string_array(array)
            if handle in feeds:
                raise InvalidArgument(
                    f'Endpoint "{signature.inputs[alias].name}" fed more than once.'
                )
            feeds[handle] = array
        return PreparedRun(self._session, feeds, call.fetches, call.answer)

    def prepare_graph(
        self, feeds: Mapping[str, np.ndarray], fetches: Collection[str]
    ) -> PreparedRun[dict[str, np.ndarray]]:
        """Prepare a run of the graph, independent of the signatures.

        Args:
            feeds: Arrays by tensor name.
            fetches: Names of the tensors wanted; the answer has the arrays by these names.

        Raises:
            ServingError: The graph has no such tensor; the message is TensorFlow's.
        """
        for array in feeds.values():
            check_array(array)
        tensor = self._session.tensor
        names = sorted(set(fetches))
        return PreparedRun(
            self._session,
            {tensor(name): array for name, array in feeds.items()},
            [tensor(name) for name in names],
            lambda outputs: dict(zip(names, outputs, strict=True)),
        )

    def interrupt(self) -> None:
        """End the requests in progress if possible; for the end of the process."""
        self._session.interrupt()

    def close(self) -> None:
        """Free the model; no request may be in progress."""
        self._session.close()

    def _new_call(self, signature: Signature, output_filter: Collection[str]) -> _Call:
        wanted = signature.select_outputs(output_filter)
        if not wanted:
            raise InvalidArgument("Must specify at least one target to fetch or execute.")
        tensor = self._session.tensor
        fetched = sorted(wanted)
        return _Call(
            signature=signature,
            feeds=[
                (alias, tensor(info.name), info.dtype == STRING.number)
                for alias, info in signature.inputs.items()
            ],
            fetches=[tensor(signature.outputs[alias].name) for alias in fetched],
            fetched=fetched,
            wanted=wanted,
        )
