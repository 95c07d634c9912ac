"""From a version's directory to a predictor that serves, as the flags want it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from serving.batch_scheduler import BatchScheduler
from serving.batching import BatchingSession
from serving.batching_options import BatchingOptions, of_version
from serving.metrics import Metrics
from serving.model_session import ModelSession
from serving.predictor import Predictor
from serving.saved_model_config import check_saved_model_config
from serving.session import GraphSession, SessionOptions
from serving.tflite_session import MODEL_FILE, TfliteSession
from serving.warmup import replay

MLMD_FILE = Path("assets.extra", "mlmd_uuid")


@dataclass(frozen=True)
class LoadOptions:
    """How versions are brought into memory.

    Attributes:
        tags: Of the MetaGraph to load.
        session: Threads and the like of a graph's session.
        warmup_iterations: Times to run each warmup request; 0 runs none.
        check_method_names: Refuse signatures whose `method_name` does not fit the request.
        batching: Merge requests like this; None for not at all.
        per_model_batching: Merge the requests of those versions only that carry parameters of
            their own, by these.
        prefer_tflite: Load `model.tflite` where a version has one.
        tflite_interpreters: Requests that one TFLite model works on at once.
    """

    tags: Sequence[str] = ("serve",)
    session: SessionOptions = field(default_factory=SessionOptions)
    warmup_iterations: int = 1
    check_method_names: bool = False
    batching: BatchingOptions | None = None
    per_model_batching: bool = False
    prefer_tflite: bool = False
    tflite_interpreters: int = 1


class VersionLoader:
    """Loads versions; may be called from several threads.

    Args:
        options: How.
        metrics: Where loads, runs and batches are counted.
        scheduler: Runs batches; needed where the options ask for batching.
    """

    def __init__(
        self,
        options: LoadOptions | None = None,
        metrics: Metrics | None = None,
        scheduler: BatchScheduler | None = None,
    ) -> None:
        self._options = options or LoadOptions()
        self._metrics = metrics or Metrics()
        self._scheduler = scheduler

    def __call__(self, directory: Path) -> Predictor:
        """Load a version, and run its warmup requests.

        Raises:
            ServingError: The version cannot be loaded, or a warmup request fails.
        """
        options = self._options
        with self._metrics.loading(str(directory)):
            predictor = Predictor(
                self._session(directory), check_method_names=options.check_method_names
            )
            try:
                replay(predictor, directory, options.warmup_iterations, self._metrics)
            except BaseException:
                predictor.close()
                raise
        return predictor

    def note_metadata(self, model: str, version: int, directory: Path) -> None:
        """Publish which ML Metadata a served version carries, if it carries any."""
        if (directory / MLMD_FILE).exists():
            # The key itself is a text; the format of TF Serving's page has numbers only.
            self._metrics.mlmd_map.set(0, model, str(version))

    def _session(self, directory: Path) -> ModelSession:
        options = self._options
        batching = options.batching
        if batching is not None and options.per_model_batching:
            batching = of_version(directory)
        session: ModelSession
        if options.prefer_tflite and (directory / MODEL_FILE).exists():
            session = TfliteSession(directory / MODEL_FILE, options.tflite_interpreters)
        else:
            check_saved_model_config(directory)
            how = replace(options.session, frugal=batching is not None)
            session = GraphSession(directory, options.tags, how)
        session = _CountedSession(session, self._metrics)
        if batching is not None and self._scheduler is not None:
            session = BatchingSession(session, self._scheduler, batching, self._metrics)
        return session


class _CountedSession:
    """Counts the runs of a session, under the names of TensorFlow's own counters."""

    def __init__(self, session: ModelSession, metrics: Metrics) -> None:
        self._session = session
        self._metrics = metrics
        self.signatures = session.signatures
        self.tensor = session.tensor
        self.interrupt = session.interrupt
        self.close = session.close

    def run(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], timeout_ms: int = 0
    ) -> list[np.ndarray]:
        started = time.perf_counter()
        outputs = self._session.run(feeds, fetches, timeout_ms)
        self._metrics.graph_run(time.perf_counter() - started)
        return outputs
