"""The models of a server, their versions, and the state of each version.

One manager thread scans the base paths and changes at most one version at a time, so that a new
version serves before the old one goes (availability-preserving policy).
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from gru_serving.config.files import ServedModel
from gru_serving.engine.predictor import Predictor
from gru_serving.errors import (
    FailedPrecondition,
    NotFound,
    RefusedVersion,
    ServingError,
    Unavailable,
    Unknown,
    refused_by_system,
)
from gru_serving.repository.catalogue import Catalogue, ModelVersions, State, Version
from gru_serving.storage.digests import has_digests, read_digests
from gru_serving.storage.version_files import contents_of
from gru_serving.storage.version_scan import is_version, scan
from gru_serving.telemetry.server_log import still

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RepositoryOptions:
    """Options for finding and loading versions.

    Attributes:
        poll_seconds: Seconds between scans of the base paths; 0 scans once, negative never.
        max_load_retries: Number of further tries after the first failure of a load.
        retry_seconds: Seconds between tries of a load; negative for no wait.
        initial_threads: Number of loads at once before the ports open.
        load_threads: Number of loads at once after that; 0 for one at a time, inside the manager's
            thread, which does nothing else meanwhile.
        unload_threads: Number of unloads at once; 0 for one at a time, inside the manager's thread.
        allow_labels_for_unavailable: Whether new labels may point to versions not loaded yet.
        isolate_models: A model without a version, or whose versions cannot be loaded, keeps no
            other from being served.
        always_present: Whether the versions that serve go on where no version is left on disk.
    """

    poll_seconds: float = 1.0
    max_load_retries: int = 5
    retry_seconds: float = 60.0
    initial_threads: int = 4
    load_threads: int = 0
    unload_threads: int = 0
    allow_labels_for_unavailable: bool = False
    isolate_models: bool = False
    always_present: bool = False


def load_with_retries(
    load: Callable[[], Predictor], name: str, tries: int, may_retry: Callable[[], bool]
) -> Predictor:
    """Load a version with several attempts if necessary; a refused version gets one.

    Args:
        load: Function that loads the version.
        name: Name in the log.
        tries: Greatest number of tries.
        may_retry: Function that waits before the next try; False for no more.

    Raises:
        ServingError: The last try failed with this error.
    """
    log.info("Loading servable version %s", name)
    for attempt in range(1, tries + 1):
        started = time.monotonic()
        try:
            with still(f"loading {name}"):
                predictor = load()
        except Exception as error:
            failure = (
                error
                if isinstance(error, ServingError)
                else refused_by_system(error) or Unknown(repr(error))
            )
        else:
            seconds = time.monotonic() - started
            log.info("Successfully loaded servable version %s in %.2f s", name, seconds)
            return predictor
        log.error("Loading %s failed (try %d of %d): %s", name, attempt, tries, failure.status)
        if isinstance(failure, RefusedVersion) or attempt == tries or not may_retry():
            break
    raise failure


def raise_failed(models: Sequence[ModelVersions], what: str = "servable(s)") -> None:
    """Raise for the versions of these models that could not be loaded, if there are any.

    Raises:
        Unknown: A version could not be loaded; the message is TF Serving's.
    """
    failed = [
        f"{{{{name: {model.config.name} version: {version.number}}} due to error: "
        f"{version.error.status}}}, "
        for model in models
        for version in model.in_state(State.END)
        if version.error is not None
    ]
    if failed:
        count = len(failed)
        raise Unknown(f"{count} {what} did not become available: {{{''.join(failed)}}}")


class VersionChanges:
    """Performs scans, loads and unloads.

    For one thread at a time, except for `load_initial` and `close`.

    Args:
        catalogue: Catalogue of the versions.
        load: Function that makes a predictor of a version directory.
        options: Options for finding and loading versions.
        loaded: Function that is called for every version about to serve: model, number, directory.
        unloaded: Function that is called for every version that no longer serves, likewise.
        stopping: Event that is set when nothing is to be loaded any more.
    """

    def __init__(
        self,
        catalogue: Repository,
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
        # A broken model occupies a thread with its retries, which must not be the manager's thread.
        least = initial if options.isolate_models else 0
        self._starters = ThreadPoolExecutor(initial, "start")
        self._loaders = _threads(options.load_threads or least, "load")
        self._unloaders = _threads(options.unload_threads, "unload")

    def scan(self) -> None:
        """Determine for every model which versions it should have."""
        self._refusals_scanned = self._refusals
        if self._options.poll_seconds < 0:
            return
        catalogue = self._catalogue
        with catalogue.changed:
            configured = [one for one in catalogue.models.values() if not one.retired]
            looked_for = [
                (model.config, model.failed(), model.in_state(State.AVAILABLE))
                for model in configured
            ]
        found = []
        for config, failed, serving in looked_for:
            # Files that are being copied change from one scan to the next.
            contents = {version.number: contents_of(version.path) for version in failed}
            for version in failed:
                version.look(contents[version.number])
            refused = {version.number for version in failed if version.is_refused()}
            try:
                versions = scan(config, refused)
                if serving and not versions and self._options.always_present:
                    log.error("Refusing to unload all versions for Servable: %s", config.name)
                    continue
                found.append((config, versions))
                _say_altered(config.name, serving, versions)
            except NotFound as error:
                log.error(
                    "FileSystemStoragePathSource encountered a filesystem access error: %s", error
                )
                if not self._options.isolate_models:
                    # As in TF Serving, the aspired versions of all models stay as they are.
                    return
        with catalogue.changed:
            for config, versions in found:
                model = catalogue.models[config.name]
                # If a reload came meanwhile, these are the versions of the configuration that it
                # replaced.
                if model.config is config and not model.retired:
                    model.aspire(versions)
            catalogue.announce()

    def refused(self) -> bool:
        """Tell whether a version was refused since the last scan: another may take its place."""
        return self._refusals != self._refusals_scanned

    def load_initial(self) -> None:
        """Load all wanted versions, several at once, since nothing serves yet."""
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
        """Unload or load one version, unloads first; returns False if there is nothing to do."""
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
        """Load or unload in this thread, or in the threads for it."""
        if threads is None:
            action(*what)
            return
        # The state is set here so that the next scan does not start the same change again.
        self._catalogue.change(what[1], state)
        threads.submit(action, *what).add_done_callback(_log_failure)

    def _bring_up(self, model: ModelVersions, version: Version) -> None:
        """Load a version with as many attempts as allowed; it ends AVAILABLE or END."""
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
        """Load a version, and record its files."""
        version.tried = version.seen = contents_of(version.path)
        version.listed = {}
        if has_digests(version.path):
            with contextlib.suppress(RefusedVersion):  # the load says so
                version.listed = read_digests(version.path)
        return self._load(version.path)

    def _may_retry(self, model: ModelVersions, version: Version) -> bool:
        """Wait before the next attempt; returns False when the version is no longer wanted."""
        with self._catalogue.changed:
            version.retrying = True
            self._catalogue.changed.notify_all()
        self._stopping.wait(max(0.0, self._options.retry_seconds))
        if self._options.poll_seconds > 0:
            self.scan()
        return version.number in model.aspired and not self._stopping.is_set()

    def _unload(self, model: ModelVersions, version: Version) -> None:
        """Take a version out of service, wait for its requests, and free it."""
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


def _say_altered(model: str, serving: Sequence[Version], wanted: Mapping[int, Path]) -> None:
    """Log the serving versions whose files differ from those that were loaded."""
    for version in serving:
        path = wanted.get(version.number)  # under another base path since it was loaded, perhaps
        if path is None:
            continue
        version.look(contents_of(path))
        if names := version.altered(path):
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            log.warning(
                "Version %d of servable %s was altered after it was loaded (%s%s): this server "
                "answers with the files as they were, but not after a restart, and no other "
                "replica does; publish changes as a new version",
                version.number,
                model,
                names[0] if path == version.path else path / names[0],
                more,
            )


def _was_tried(version: Version) -> bool:
    """Tell whether a load of the version has succeeded or failed."""
    return version.retrying or version.state not in (State.START, State.LOADING)


def _threads(count: int, name: str) -> ThreadPoolExecutor | None:
    return ThreadPoolExecutor(count, name) if count > 0 else None


def _log_failure(done: Future[None]) -> None:
    if (error := done.exception()) is not None:
        log.error("loading or unloading a version failed", exc_info=error)


_PATIENCE = 10.0


class Repository(Catalogue):
    """The models of a server.

    Args:
        models: Models to serve; None where that is not configured yet.
        load: Function that makes a predictor of a version directory.
        options: Options for finding and loading versions.
        loaded: Function that is called for every version about to serve: model, number, directory.
        unloaded: Function that is called for every version that no longer serves, likewise.
    """

    def __init__(
        self,
        models: Sequence[ServedModel] | None,
        load: Callable[[Path], Predictor] = Predictor,
        options: RepositoryOptions | None = None,
        loaded: Callable[[str, int, Path], None] = lambda *_: None,
        unloaded: Callable[[str, int, Path], None] = lambda *_: None,
    ) -> None:
        self._options = options or RepositoryOptions()
        super().__init__(models, self._options.isolate_models)
        self._managing = threading.Lock()
        self._stopping = threading.Event()
        self._manager: threading.Thread | None = None
        self._changes = VersionChanges(self, load, self._options, loaded, unloaded, self._stopping)

    def start(self) -> None:
        """Load the first versions and start to watch; returns when every model has one that serves.

        This waits while a model has no version at all, as TF Serving does; `close` from another
        thread ends the wait. With isolated models it returns when each of them serves, has failed
        once, or has no version.

        Raises:
            ServingError: A version could not be loaded, with TF Serving's text.
        """
        with self.changed:
            for model in self.models.values():
                model.check_labels(model.config.labels, self._options.allow_labels_for_unavailable)
                model.configure(model.config)
            self.announce()
        said = time.monotonic()
        while not self._stopping.is_set():
            self._changes.scan()
            self._changes.load_initial()
            if self._changes.refused():
                continue
            missing = [m for m in self.models.values() if not m.in_state(State.AVAILABLE)]
            if not missing:
                break
            if self._options.isolate_models:
                names = ", ".join(model.config.name for model in missing)
                log.error("continuing without a version to serve for: %s", names)
                break
            raise_failed(missing)
            if self._options.poll_seconds <= 0:
                names = ", ".join(model.config.name for model in missing)
                raise Unavailable(f"no version to serve for: {names}")
            if time.monotonic() - said > _PATIENCE:
                said = time.monotonic()
                for model in missing:
                    log.warning("waiting for a version of %s in %s", *_where(model.config))
            self._stopping.wait(self._options.poll_seconds)
        self._changes.started()
        if self._options.poll_seconds > 0 and not self._stopping.is_set():
            self._manager = threading.Thread(target=self._manage, name="repository", daemon=True)
            self._manager.start()

    def reconfigure(self, models: Sequence[ServedModel] | None) -> None:
        """See the base class."""
        if models is None:
            if self.configured:
                raise FailedPrecondition(
                    "Cannot transition to requested config. It is only legal to transition from "
                    "one ModelConfigList to another."
                )
            return
        with self.changed:
            self.configured = True
            named = {model.name: model for model in models}
            allow = self._options.allow_labels_for_unavailable
            for name, config in named.items():
                current = self.models.get(name) or ModelVersions(config)
                current.check_labels(config.labels, allow)
            new = [name for name in named if name not in self.models]
            for name, model in self.models.items():
                if name not in named:
                    model.retire()
            for name, config in named.items():
                model = self.models.setdefault(name, ModelVersions(config))
                if model.retired:
                    new.append(name)
                model.configure(config)
            self.announce()
        while not self._stopping.is_set():
            self.poll()
            if self._changes.refused():
                continue
            with self.changed:
                waited_for = [self.models[name] for name in new]
                missing = [
                    model
                    for model in waited_for
                    if not (model.retired or model.in_state(State.AVAILABLE))
                ]
                coming = [model for model in missing if model.is_coming()]
                raise_failed([model for model in missing if model not in coming], "model(s)")
                if not missing or (self._options.isolate_models and not coming):
                    return
            self._stopping.wait(max(0.1, self._options.poll_seconds))

    def change(self, version: Version, state: State, error: ServingError | None = None) -> None:
        """Set the state of a version."""
        with self.changed:
            version.state = state
            version.error = error
            self.changed.notify_all()
            self.announce()

    def announce(self) -> None:
        """Tell of a change of the catalogue, under `changed`; here there is nobody to be told."""

    def give_up(self) -> None:
        """Stop scanning; loaded versions continue to serve until `close`."""
        self._stopping.set()

    def close(self) -> None:
        """Stop scanning and free all versions once no request uses them."""
        self.give_up()
        if self._manager is not None:
            self._manager.join()
        self._changes.close()

    def poll(self) -> None:
        """Scan once and apply all resulting changes; the manager thread repeats this."""
        with self._managing:
            self._scan_and_act()
            while self._changes.refused() and not self._stopping.is_set():
                self._scan_and_act()

    def _scan_and_act(self) -> None:
        self._changes.scan()
        while not self._stopping.is_set() and self._changes.act():
            pass

    def _manage(self) -> None:
        while not self._stopping.wait(self._options.poll_seconds):
            try:
                self.poll()
            except Exception:
                log.exception("scanning the base paths failed; trying again")


def _where(config: ServedModel) -> tuple[str, str]:
    """Describe a model and the place of its versions."""
    base = config.base_path
    if is_version(base):
        return config.name, f"{base}, which is a version itself; its base path is {base.parent}"
    return config.name, str(base)
