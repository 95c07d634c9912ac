"""Applies changes: scans base paths, loads and unloads versions."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from pathlib import Path

from gru_serving.engine.predictor import Predictor
from gru_serving.errors import NotFound, RefusedVersion, ServingError
from gru_serving.repository.catalogue import Catalogue
from gru_serving.repository.loading import RepositoryOptions, load_with_retries
from gru_serving.repository.versions import ModelVersions, State, Version
from gru_serving.storage.version_files import contents_of
from gru_serving.storage.version_scan import scan

log = logging.getLogger(__name__)


class VersionChanges:
    """Scans, loads and unloads; one thread at a time, except for `load_initial` and `close`.

    Args:
        catalogue: Of the versions.
        load: Makes a predictor of a version directory.
        options: How to look for and load versions.
        loaded: Called for every version that is about to serve: model, number, directory.
        unloaded: Called for every version that no longer serves, likewise.
        stopping: Set when nothing is to be loaded any more.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        load: Callable[[Path], Predictor],
        options: RepositoryOptions,
        loaded: Callable[[str, int, Path], None],
        unloaded: Callable[[str, int, Path], None],
        stopping: threading.Event,
    ) -> None:
        self._catalogue = catalogue
        self._load = load
        self._options = options
        self._loaded = loaded
        self._unloaded = unloaded
        self._stopping = stopping
        self._refusals = self._refusals_scanned = 0
        initial = max(1, options.initial_threads)
        # A broken model keeps a thread busy with its retries; it must not be the manager's thread.
        least = initial if options.isolate_models else 0
        self._starters = ThreadPoolExecutor(initial, "start")
        self._loaders = _threads(options.load_threads or least, "load")
        self._unloaders = _threads(options.unload_threads, "unload")

    def scan(self) -> None:
        """Note for every model which versions it should have."""
        self._refusals_scanned = self._refusals
        if self._options.poll_seconds < 0:
            return
        catalogue = self._catalogue
        with catalogue.changed:
            configured = [one for one in catalogue.models.values() if not one.retired]
            looked_for = [(model.config, model.failed()) for model in configured]
        found = []
        for config, failed in looked_for:
            # Files that are being copied change from one scan to the next.
            contents = {version.number: contents_of(version.path) for version in failed}
            for version in failed:
                version.look(contents[version.number])
            refused = {version.number for version in failed if version.is_refused()}
            try:
                found.append((config, scan(config, refused)))
            except NotFound as error:
                log.error(
                    "FileSystemStoragePathSource encountered a filesystem access error: %s", error
                )
                if not self._options.isolate_models:
                    # As TF Serving: it leaves the aspired versions of all models as they are.
                    return
        with catalogue.changed:
            for config, versions in found:
                model = catalogue.models[config.name]
                # Where a reload came meanwhile, these are the versions of what it replaced.
                if model.config is config and not model.retired:
                    model.aspire(versions)

    def refused(self) -> bool:
        """Whether a version was refused since the last scan: another may come in its place."""
        return self._refusals != self._refusals_scanned

    def load_initial(self) -> None:
        """Load everything wanted, several at once: nothing serves yet that could be disturbed."""
        catalogue = self._catalogue
        models = catalogue.models.values()
        new = [(model, version) for model in models for version in model.in_state(State.START)]
        loads = [self._starters.submit(self._bring_up, *pair) for pair in new]
        if self._options.isolate_models:
            with catalogue.changed:
                catalogue.changed.wait_for(lambda: all(_was_tried(version) for _, version in new))
        else:
            for load in loads:
                load.result()

    def started(self) -> None:
        """End the phase of initial loads."""
        self._starters.shutdown(wait=False)

    def act(self) -> bool:
        """Unload or load one version, unloads first; False when there is nothing to do."""
        with self._catalogue.changed:
            models = list(self._catalogue.models.values())
            unloads = [(model, version) for model in models if (version := model.next_unload())]
            loads = [(model, version) for model in models if (version := model.next_load())]
        if unloads:
            self._do(self._unloaders, self._unload, State.UNLOADING, unloads[0])
        elif loads:
            self._do(self._loaders, self._bring_up, State.LOADING, loads[0])
        return bool(unloads or loads)

    def close(self) -> None:
        """Wait for loads in progress, and free all versions once no request uses them."""
        for threads in (self._starters, self._loaders, self._unloaders):
            if threads is not None:
                threads.shutdown()
        for model in self._catalogue.models.values():
            for version in model.in_state(State.AVAILABLE):
                self._unload(model, version)

    def _do(
        self,
        threads: ThreadPoolExecutor | None,
        action: Callable[[ModelVersions, Version], None],
        state: State,
        what: tuple[ModelVersions, Version],
    ) -> None:
        """Load or unload here and now, or in the threads there are for it."""
        if threads is None:
            action(*what)
            return
        # Recorded here, so that the next scan does not start the same change again.
        self._catalogue.change(what[1], state)
        threads.submit(action, *what).add_done_callback(_log_failure)

    def _bring_up(self, model: ModelVersions, version: Version) -> None:
        """Load a version, trying again as often as allowed; ends AVAILABLE or END."""
        name = f"{{name: {model.config.name} version: {version.number}}}"
        self._catalogue.change(version, State.LOADING)
        try:
            version.predictor = load_with_retries(
                lambda: self._load_noted(version),
                name,
                1 + max(0, self._options.max_load_retries),
                lambda: self._may_retry(model, version),
            )
        except ServingError as error:
            with self._catalogue.changed:
                # The frames of its traceback keep the half-loaded version in memory.
                self._catalogue.change(version, State.END, copy(error))
                self._refusals += isinstance(error, RefusedVersion)
        else:
            self._loaded(model.config.name, version.number, version.path)
            self._catalogue.change(version, State.AVAILABLE)

    def _load_noted(self, version: Version) -> Predictor:
        """Load a version, and note which files it had."""
        version.tried = version.seen = contents_of(version.path)
        return self._load(version.path)

    def _may_retry(self, model: ModelVersions, version: Version) -> bool:
        """Wait before the next try; False when the version is no longer wanted."""
        with self._catalogue.changed:
            version.retrying = True
            self._catalogue.changed.notify_all()
        self._stopping.wait(max(0.0, self._options.retry_seconds))
        if self._options.poll_seconds > 0:
            self.scan()
        return version.number in model.aspired and not self._stopping.is_set()

    def _unload(self, model: ModelVersions, version: Version) -> None:
        """Take a version out of service, wait for its requests, free it."""
        self._catalogue.change(version, State.UNLOADING)
        with self._catalogue.changed:
            self._catalogue.changed.wait_for(lambda: version.in_use == 0)
            predictor, version.predictor = version.predictor, None
        if predictor is not None:
            predictor.close()
        self._unloaded(model.config.name, version.number, version.path)
        self._catalogue.change(version, State.END)
        log.info(
            "Unloaded servable version {name: %s version: %d}", model.config.name, version.number
        )


def _was_tried(version: Version) -> bool:
    """Whether a load of the version has succeeded or failed."""
    return version.retrying or version.state not in (State.START, State.LOADING)


def _threads(count: int, name: str) -> ThreadPoolExecutor | None:
    return ThreadPoolExecutor(count, name) if count > 0 else None


def _log_failure(done: Future[None]) -> None:
    if (error := done.exception()) is not None:
        log.error("loading or unloading a version failed", exc_info=error)
