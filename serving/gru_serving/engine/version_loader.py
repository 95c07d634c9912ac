"""Loading of a version's directory into a predictor, according to the flags."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from gru_serving.config.batching_options import of_version
from gru_serving.engine.batching.scheduler import BatchScheduler
from gru_serving.engine.batching.session import BatchingSession
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.load_watch import LoadWatch, LoadWatches
from gru_serving.engine.model_session import ModelSession
from gru_serving.engine.predictor import CountedSession, Predictor
from gru_serving.engine.runtime import (
    MODEL_FILE,
    ONNX_FILE,
    Opened,
    import_runtime,
    open_version,
)
from gru_serving.engine.trial import Trials, TriedVersions, default_folder
from gru_serving.engine.warmup import replay
from gru_serving.errors import Code, ServingError, Unavailable
from gru_serving.storage.digests import check_digests, has_digests
from gru_serving.storage.signatures import TrustedSigners, UnsignedVersion
from gru_serving.storage.version_files import Contents, contents_of
from gru_serving.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

MLMD_FILE = Path("assets.extra", "mlmd_uuid")
_GRAPHS = ("saved_model.pb", "saved_model.pbtxt", "saved_model.cpb", MODEL_FILE, ONNX_FILE)

T = TypeVar("T")


SHORT_TURN_SECONDS = 0.0005
"""Seconds after which a load releases the interpreter lock to a waiting request."""


class _Turns:
    """The switch interval of the interpreter, which is short while versions load.

    A load executes much Python code beside the requests. With Python's default interval the event
    loop waits up to 5 ms for its turn, and again after each run of a model. Outside of loads a
    short interval would cost gRPC a tenth of its throughput.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loads = 0
        self._usual = 0.0

    @contextmanager
    def short(self) -> Iterator[None]:
        """Shorten the switch interval inside the context; loads may overlap."""
        with self._lock:
            if not self._loads:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual, SHORT_TURN_SECONDS))
            self._loads += 1
        try:
            yield
        finally:
            with self._lock:
                self._loads -= 1
                if not self._loads:
                    sys.setswitchinterval(self._usual)


_TURNS = _Turns()


class VersionLoader:
    """Loads versions; may be called from several threads.

    Args:
        options: Options for loading versions.
        metrics: Metrics that count loads, runs and batches.
        scheduler: Scheduler of batches; needed where the options ask for batching.

    Raises:
        InvalidArgument: A file of the trusted signers is not what it should be.
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
        self._watches = LoadWatches(self._options.seconds)
        self._runtimes: dict[Path, str] = {}
        self._trials = Trials()
        self._tried = TriedVersions(default_folder())
        self._signers = TrustedSigners(self._options.signers) if self._options.signers else None

    def __call__(self, directory: Path) -> Predictor:
        """Check a version, try it, load it, and run its warmup requests.

        Raises:
            ServingError: The version is refused, cannot be loaded in time, or a warmup request
                fails; or `stop` was called.
        """
        with (
            _TURNS.short(),
            self._watches.watch() as watch,
            self._metrics.loading(str(directory)),
            _naming_files(directory),
        ):
            before = contents_of(directory)
            watch.begin()
            checked = has_digests(directory)
            if self._signers is not None:
                _timed(
                    lambda: self._check_signature(directory), "Checked the signature of", directory
                )
            elif checked:
                _timed(
                    lambda: check_digests(directory, watch.check), "Checked the files of", directory
                )
            known = False
            if self._is_to_be_tried(directory, checked):
                known = self._try(directory, before, watch)
            predictor = self._load(directory, watch)
            if (checked or known or self._signers) and contents_of(directory) != before:
                predictor.close()
                raise Unavailable(f"{directory}: its files changed while it was loaded")
        return predictor

    def stop(self) -> None:
        """Interrupt all loads with an error because the server stops."""
        self._watches.stop()
        self._trials.close()

    def _check_signature(self, directory: Path) -> None:
        assert self._signers is not None
        outcome = "invalid"
        try:
            self._signers.check(directory)
            outcome = "valid"
        except UnsignedVersion:
            outcome = "missing"
            raise
        finally:
            self._metrics.signature_check_count.add(str(directory), outcome)

    def _is_to_be_tried(self, directory: Path, checked: bool) -> bool:
        trial = self._options.trial
        if trial == "never" or (trial == "auto" and checked):
            return False
        # If the files cannot be found or read, the load itself reports it.
        return any(os.access(directory / name, os.R_OK) for name in _GRAPHS)

    def _try(self, directory: Path, before: Contents | None, watch: LoadWatch) -> bool:
        """Try a version with these files; returns whether it had passed an earlier trial."""
        # In a trial there are no other requests to share batches with.
        options = replace(self._options, trial="never", batching=None, seconds=0.0, signers=())
        key = None
        if self._options.trial == "auto":
            key = self._tried.key(directory, options, watch.check)
            if key is not None and key in self._tried:
                log.info("%s came through its trial before", directory)
                return True
        # The load needs them as well: both processes import them at the same time.
        threading.Thread(target=import_runtime, args=(directory, options), name="import").start()
        loaded = _timed(
            lambda: self._trials.try_version(directory, options, watch), "Tried", directory
        )
        if key is not None and loaded and contents_of(directory) == before:
            self._tried.add(key)
        watch.begin()
        return False

    def _load(self, directory: Path, watch: LoadWatch) -> Predictor:
        options = self._options
        session, runtime, left = self._session(directory, watch)
        self._runtimes[directory] = runtime
        hurried: AbstractContextManager[None] = nullcontext()
        if isinstance(session, BatchingSession):
            hurried = session.hurried()
        predictor = Predictor(
            session, check_method_names=options.check_method_names, runtime=runtime, left=left
        )
        try:
            with hurried, watch.interrupting(predictor.interrupt):
                replay(predictor, directory, options.warmup_iterations, self._metrics, left)
        except BaseException:
            predictor.close()
            raise
        return predictor

    def note_metadata(self, model: str, version: int, directory: Path) -> None:
        """Publish the runtime of a served version, and its ML Metadata if it has any."""
        runtime = self._runtimes.get(directory)
        if runtime is not None:
            log.info("Model %s, version %d: run by %s", model, version, runtime)
            self._metrics.model_runtime.set(1, model, str(version), runtime)
        if (directory / MLMD_FILE).exists():
            # The key itself is text, while TF Serving's metrics page has only numbers.
            self._metrics.mlmd_map.set(0, model, str(version))

    def forget(self, model: str, version: int, directory: Path) -> None:
        """Drop the metrics of a version that no longer serves."""
        self._runtimes.pop(directory, None)
        self._metrics.forget(model_name=model, version=str(version))
        self._metrics.forget(model_name=model, shadow_version=str(version))
        self._metrics.forget(model_path=str(directory))

    def _session(self, directory: Path, watch: LoadWatch) -> Opened:
        options = self._options
        batching = options.batching
        if batching is not None and options.per_model_batching:
            batching = of_version(directory)
        how = replace(options.session, frugal=batching is not None)
        opened = open_version(directory, replace(options, session=how), watch)
        session: ModelSession = CountedSession(opened.session, self._metrics)
        if batching is not None and self._scheduler is not None:
            session = BatchingSession(session, self._scheduler, batching, self._metrics)
        return opened._replace(session=session)


@contextmanager
def _naming_files(directory: Path) -> Iterator[None]:
    """Name the file in errors of the operating system raised inside the context."""
    try:
        yield
    except OSError as error:
        denied = isinstance(error, PermissionError)
        raise ServingError(
            f"{error.filename or directory}: {error.strerror or error}",
            Code.PERMISSION_DENIED if denied else Code.UNKNOWN,
        ) from error


def _timed(action: Callable[[], T], what: str, directory: Path) -> T:
    started = time.monotonic()
    result = action()
    log.info("%s %s in %.2f s", what, directory, time.monotonic() - started)
    return result
