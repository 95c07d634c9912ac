"""Models, their versions and states: what is loaded, what serves, what goes.

One manager thread scans the base paths and changes at most one version at a time, so that a new
version serves before the old one goes (availability-preserving policy). Requests hold the version
they use; a version is freed when the last of them is done.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from serving.config_files import ServedModel
from serving.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ServingError,
    Unavailable,
)
from serving.loading import RepositoryOptions, load_with_retries, raise_failed
from serving.predictor import Predictor
from serving.protos.logging_config_pb2 import LoggingConfig
from serving.version_scan import is_version, scan
from serving.versions import ModelVersions, State, Version, VersionStatus

log = logging.getLogger(__name__)

_PATIENCE = 10.0


class Repository:
    """The models of a server.

    Args:
        models: What to serve; None where that is not configured yet.
        load: Makes a predictor of a version directory.
        options: How to look for and load versions.
        loaded: Told of every version that is about to serve: model, number, directory.
    """

    def __init__(
        self,
        models: Sequence[ServedModel] | None,
        load: Callable[[Path], Predictor] = Predictor,
        options: RepositoryOptions | None = None,
        loaded: Callable[[str, int, Path], None] = lambda *_: None,
    ) -> None:
        self._load = load
        self._loaded = loaded
        self._options = options or RepositoryOptions()
        initial = max(1, self._options.initial_threads)
        # A broken model keeps a thread busy with its retries; that must not be the manager's.
        least = initial if self._options.isolate_models else 0
        self._starters = ThreadPoolExecutor(initial, "start")
        self._loaders = _threads(self._options.load_threads or least, "load")
        self._unloaders = _threads(self._options.unload_threads, "unload")
        self._changed = threading.Condition()
        self._managing = threading.Lock()
        self._stopping = threading.Event()
        self._manager: threading.Thread | None = None
        self._configured = models is not None
        self._models = {model.name: ModelVersions(model) for model in models or ()}

    def start(self) -> None:
        """Load the first versions and start to watch; returns when every model has one that serves.

        Waits as long as a model has no version at all, as TF Serving does; `close` from another
        thread ends the wait. With models isolated, it returns when each of them serves, or failed
        once, or has no version.

        Raises:
            ServingError: A version could not be loaded, with TF Serving's text.
        """
        with self._changed:
            for model in self._models.values():
                model.check_labels(model.config.labels, self._options.allow_labels_for_unavailable)
                model.configure(model.config)
        said = time.monotonic()
        while not self._stopping.is_set():
            self._scan()
            self._load_initial()
            missing = [m for m in self._models.values() if not m.in_state(State.AVAILABLE)]
            if not missing:
                break
            if self._options.isolate_models:
                names = ", ".join(model.config.name for model in missing)
                log.error("going on without a version to serve of: %s", names)
                break
            raise_failed(missing)
            if self._options.poll_seconds <= 0:
                names = ", ".join(model.config.name for model in missing)
                raise Unavailable(f"no version to serve of: {names}")
            if time.monotonic() - said > _PATIENCE:
                said = time.monotonic()
                for model in missing:
                    log.warning("waiting for a version of %s in %s", *_where(model.config))
            self._stopping.wait(self._options.poll_seconds)
        self._starters.shutdown(wait=False)
        if self._options.poll_seconds > 0 and not self._stopping.is_set():
            self._manager = threading.Thread(target=self._manage, name="repository", daemon=True)
            self._manager.start()

    def reconfigure(self, models: Sequence[ServedModel] | None) -> None:
        """Serve these models from now on; returns when those new by name serve.

        It does not wait for models that another call has replaced meanwhile. Models no longer named
        are unloaded after that, in the time the manager takes. A refused configuration changes
        nothing.

        Args:
            models: As for the class; an empty list unloads all models.

        Raises:
            ServingError: With TF Serving's text: no models where some were configured, a label on
                a version that does not serve, or a new model that could not be loaded.
        """
        if models is None:
            if self._configured:
                raise FailedPrecondition(
                    "Cannot transition to requested config. It is only legal to transition from "
                    "one ModelConfigList to another."
                )
            return
        with self._changed:
            self._configured = True
            named = {model.name: model for model in models}
            allow = self._options.allow_labels_for_unavailable
            for name, config in named.items():
                current = self._models.get(name) or ModelVersions(config)
                current.check_labels(config.labels, allow)
            new = [name for name in named if name not in self._models]
            for name, model in self._models.items():
                if name not in named:
                    model.retire()
            for name, config in named.items():
                model = self._models.setdefault(name, ModelVersions(config))
                if model.retired:
                    new.append(name)
                model.configure(config)
        while not self._stopping.is_set():
            self.poll()
            with self._changed:
                waited_for = [self._models[name] for name in new]
                missing = [
                    model
                    for model in waited_for
                    if not (model.retired or model.in_state(State.AVAILABLE))
                ]
                raise_failed(missing, "model(s)")
                coming = any(m.in_state(s) for m in missing for s in (State.START, State.LOADING))
                if not missing or (self._options.isolate_models and not coming):
                    return
            self._stopping.wait(max(0.1, self._options.poll_seconds))

    def give_up(self) -> None:
        """Stop watching and waiting; what is loaded goes on serving until `close`."""
        self._stopping.set()

    def close(self) -> None:
        """Stop watching and free all versions once nobody uses them."""
        self.give_up()
        if self._manager is not None:
            self._manager.join()
        for threads in (self._starters, self._loaders, self._unloaders):
            if threads is not None:
                threads.shutdown()
        for model in self._models.values():
            for version in model.in_state(State.AVAILABLE):
                self._unload(model, version)

    def ready(self) -> bool:
        """Whether every model has a version that serves; of isolated ones, whether any has."""
        with self._changed:
            models = [model for model in self._models.values() if not model.retired]
            serving = [bool(model.in_state(State.AVAILABLE)) for model in models]
        return any(serving) if self._options.isolate_models and serving else all(serving)

    @contextmanager
    def acquire(
        self, name: str, version: int | None = None, label: str | None = None
    ) -> Iterator[tuple[Predictor, int]]:
        """Hold a version for the time of one request.

        Args:
            name: Of the model.
            version: Exactly that one; None for the highest that serves.
            label: The version that the label points to; not together with `version`.

        Yields:
            The predictor and the version number.

        Raises:
            ServingError: With TF Serving's text: no such model, version or label.
        """
        with self._changed:
            held = self._find(name, version, label)
            held.in_use += 1
        try:
            assert held.predictor is not None
            yield held.predictor, held.number
        finally:
            with self._changed:
                held.in_use -= 1
                if held.in_use == 0 and held.state is State.UNLOADING:
                    self._changed.notify_all()

    def _find(self, name: str, number: int | None, label: str | None) -> Version:
        if not name:
            raise InvalidArgument("ModelSpec has no name specified.")
        model = self._models.get(name)
        if label is not None:
            if not self._configured:
                raise Unavailable(f"Model labels does not init yet.{label}")
            if model is None or label not in model.labels:
                raise InvalidArgument(f"Unrecognized servable version label: {label}")
            number = model.labels[label]
        wanted = f"Latest({name})" if number is None else f"Specific({name}, {number})"
        serving = model.in_state(State.AVAILABLE) if model is not None else []
        chosen = [version for version in serving if number in (None, version.number)]
        if not chosen:
            raise NotFound(f"Servable not found for request: {wanted}")
        return max(chosen, key=lambda version: version.number)

    def status(self, name: str, number: int | None = None) -> list[VersionStatus]:
        """States of all versions known, highest first, or of one.

        Raises:
            ServingError: With TF Serving's text: no such model or version.
        """
        with self._changed:
            model = self._models.get(name)
            known = sorted(model.known.items(), reverse=True) if model is not None else []
            statuses = [version.status() for key, version in known if number in (None, key)]
        if not statuses:
            if number is None:
                raise NotFound(f"Could not find any versions of model {name}")
            raise NotFound(f"Could not find version {number} of model {name}")
        return statuses

    def listing(self) -> list[dict[str, Any]]:
        """All models by name, with their live versions, labels and what became of the others."""
        with self._changed:
            return [
                {
                    "name": name,
                    "base_path": str(model.config.base_path),
                    "versions": [
                        {
                            "version": number,
                            "state": version.state.name,
                            "labels": sorted(k for k, v in model.labels.items() if v == number),
                            "error": "" if version.error is None else version.error.status,
                        }
                        for number, version in sorted(model.known.items(), reverse=True)
                    ],
                }
                for name, model in sorted(self._models.items())
                if not model.retired
            ]

    def configured_names(self) -> list[str]:
        """The names of the models that are configured, loaded or not."""
        with self._changed:
            return [name for name, model in self._models.items() if not model.retired]

    def logging(self, name: str) -> LoggingConfig | None:
        """The `logging_config` of a model; None where it has none."""
        model = self._models.get(name)
        return None if model is None else model.config.logging

    def interrupt(self) -> None:
        """End the runs under way, for the last moment before the end of the process.

        Also those that no request holds any more: a batch whose clients have gone.
        """
        with self._changed:
            loaded = [
                version.predictor
                for model in self._models.values()
                for version in model.known.values()
                if version.predictor is not None
            ]
        for predictor in loaded:
            predictor.interrupt()

    def poll(self) -> None:
        """Scan once and do all that follows from it; what the manager thread does for ever."""
        with self._managing:
            self._scan()
            while not self._stopping.is_set() and self._act():
                pass

    def _manage(self) -> None:
        while not self._stopping.wait(self._options.poll_seconds):
            try:
                self.poll()
            except Exception:
                log.exception("scanning the base paths failed; trying again")

    def _scan(self) -> None:
        """Note for every model which versions it should have."""
        if self._options.poll_seconds < 0:
            return
        with self._changed:
            configured = [one.config for one in self._models.values() if not one.retired]
        found = []
        for config in configured:
            try:
                found.append((config, scan(config)))
            except NotFound as error:
                log.error(
                    "FileSystemStoragePathSource encountered a filesystem access error: %s", error
                )
                if not self._options.isolate_models:
                    # As TF Serving: it leaves the aspired versions of all models as they are.
                    return
        with self._changed:
            for config, versions in found:
                model = self._models[config.name]
                # Where a reload came meanwhile, these are the versions of what it replaced.
                if model.config is config and not model.retired:
                    model.aspire(versions)

    def _load_initial(self) -> None:
        """Load everything asked for, several at once: nothing serves yet that could suffer."""
        new = [(m, version) for m in self._models.values() for version in m.in_state(State.START)]
        loads = [self._starters.submit(self._bring_up, *pair) for pair in new]
        if self._options.isolate_models:
            with self._changed:
                self._changed.wait_for(lambda: all(_was_tried(version) for _, version in new))
        else:
            for load in loads:
                load.result()

    def _act(self) -> bool:
        """Unload or load one version, unloads first; False when there is nothing to do."""
        with self._changed:
            models = list(self._models.values())
            unloads = [(model, version) for model in models if (version := model.next_unload())]
            loads = [(model, version) for model in models if (version := model.next_load())]
        if unloads:
            self._do(self._unloaders, self._unload, State.UNLOADING, unloads[0])
        elif loads:
            self._do(self._loaders, self._bring_up, State.LOADING, loads[0])
        return bool(unloads or loads)

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
        # Noted here already, lest the next look at the versions find the same thing to do.
        self._change(what[1], state)
        threads.submit(action, *what).add_done_callback(_log_failure)

    def _bring_up(self, model: ModelVersions, version: Version) -> None:
        """Load a version, trying again as often as allowed; ends AVAILABLE or END."""
        name = f"{{name: {model.config.name} version: {version.number}}}"
        self._change(version, State.LOADING)
        try:
            version.predictor = load_with_retries(
                lambda: self._load(version.path),
                name,
                1 + max(0, self._options.max_load_retries),
                lambda: self._may_retry(model, version),
            )
        except ServingError as error:
            self._change(version, State.END, error)
        else:
            self._loaded(model.config.name, version.number, version.path)
            self._change(version, State.AVAILABLE)

    def _may_retry(self, model: ModelVersions, version: Version) -> bool:
        """Wait before the next try; False when the version is no longer wanted."""
        with self._changed:
            version.retrying = True
            self._changed.notify_all()
        self._stopping.wait(max(0.0, self._options.retry_seconds))
        if self._options.poll_seconds > 0:
            self._scan()
        return version.number in model.aspired and not self._stopping.is_set()

    def _unload(self, model: ModelVersions, version: Version) -> None:
        """Take a version out of service, wait for its requests, free it."""
        self._change(version, State.UNLOADING)
        with self._changed:
            self._changed.wait_for(lambda: version.in_use == 0)
            predictor, version.predictor = version.predictor, None
        if predictor is not None:
            predictor.close()
        self._change(version, State.END)
        log.info(
            "Unloaded servable version {name: %s version: %d}", model.config.name, version.number
        )

    def _change(self, version: Version, state: State, error: ServingError | None = None) -> None:
        with self._changed:
            version.state = state
            version.error = error
            self._changed.notify_all()


def _where(config: ServedModel) -> tuple[str, str]:
    """The name of a model and where its versions are looked for, for people."""
    base = config.base_path
    if is_version(base):
        return config.name, f"{base}, which is a version itself; its base path is {base.parent}"
    return config.name, str(base)


def _was_tried(version: Version) -> bool:
    """Whether a load of the version has succeeded or failed."""
    return version.retrying or version.state not in (State.START, State.LOADING)


def _threads(count: int, name: str) -> ThreadPoolExecutor | None:
    return ThreadPoolExecutor(count, name) if count > 0 else None


def _log_failure(done: Future[None]) -> None:
    if (error := done.exception()) is not None:
        log.error("loading or unloading a version failed", exc_info=error)
