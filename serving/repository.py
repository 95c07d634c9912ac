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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from serving.config_files import ServedModel
from serving.errors import (
    Code,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ServingError,
    Unavailable,
    Unknown,
)
from serving.predictor import Predictor
from serving.version_scan import scan

log = logging.getLogger(__name__)


class State(IntEnum):
    """Life of a version, with the numbers of `ModelVersionStatus.State`."""

    START = 10
    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclass(frozen=True)
class RepositoryOptions:
    """How versions are looked for and loaded.

    Attributes:
        poll_seconds: Between scans of the base paths; 0 scans once, negative never.
        max_load_retries: After the first failure of a load.
        retry_seconds: Between tries of a load; negative for no wait.
        initial_threads: Loads at once before the ports open.
        allow_labels_for_unavailable: New labels may point to versions that are not loaded yet.
    """

    poll_seconds: float = 1.0
    max_load_retries: int = 5
    retry_seconds: float = 60.0
    initial_threads: int = 4
    allow_labels_for_unavailable: bool = False


@dataclass(frozen=True)
class VersionStatus:
    """State of one version, for status answers."""

    version: int
    state: State
    error_code: Code = Code.OK
    error_message: str = ""


@dataclass
class _Version:
    """One version ever seen; fields are guarded by the repository's lock."""

    number: int
    path: Path
    state: State = State.START
    error: ServingError | None = None
    predictor: Predictor | None = None
    in_use: int = 0


@dataclass
class _Model:
    config: ServedModel
    versions: dict[int, _Version] = field(default_factory=dict)
    aspired: dict[int, Path] = field(default_factory=dict)
    #: Asked for again while it was going: starts anew when gone.
    labels: dict[str, int] = field(default_factory=dict)

    def in_state(self, *states: State) -> list[int]:
        return [number for number, version in self.versions.items() if version.state in states]


class Repository:
    """The models of a server.

    Args:
        models: What to serve.
        load: Makes a predictor of a version directory.
        options: How to look for and load versions.
    """

    def __init__(
        self,
        models: Sequence[ServedModel],
        load: Callable[[Path], Predictor] = Predictor,
        options: RepositoryOptions | None = None,
    ) -> None:
        self._load = load
        self._options = options or RepositoryOptions()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._manager: threading.Thread | None = None
        self._models = {model.name: _Model(model) for model in models}

    def start(self) -> None:
        """Load the first versions and start to watch; returns when every model has one that serves.

        Waits as long as a model has no version at all, as TF Serving does; `close` from another
        thread ends the wait.

        Raises:
            ServingError: A version could not be loaded, with TF Serving's text.
        """
        for model in self._models.values():
            self._check_labels(model, model.config)
            model.labels = dict(model.config.labels)
        self._scan()
        self._load_initial()
        waiting_since = time.monotonic()
        while not self._stopping.is_set():
            missing = [m.config for m in self._models.values() if not m.in_state(State.AVAILABLE)]
            self._raise_ended()
            if not missing:
                break
            if time.monotonic() - waiting_since > 10:
                waiting_since = time.monotonic()
                for config in missing:
                    log.warning("waiting for a version of %s in %s", config.name, config.base_path)
            if self._options.poll_seconds <= 0 or self._stopping.wait(self._options.poll_seconds):
                names = ", ".join(config.name for config in missing)
                raise Unavailable(f"no version to serve of: {names}")
            self._scan()
            self._load_initial()
        if self._options.poll_seconds > 0:
            self._manager = threading.Thread(target=self._manage, name="repository", daemon=True)
            self._manager.start()

    def close(self) -> None:
        """Stop watching and free all versions once nobody uses them."""
        self._stopping.set()
        if self._manager is not None:
            self._manager.join()
        for model in self._models.values():
            for number in model.in_state(State.AVAILABLE):
                self._unload(model, model.versions[number])

    def ready(self) -> bool:
        """Whether every model has a version that serves."""
        with self._changed:
            return all(model.in_state(State.AVAILABLE) for model in self._models.values())

    def names(self) -> list[str]:
        """The models, by name."""
        return sorted(self._models)

    @contextmanager
    def acquire(
        self, name: str, version: int | None = None, label: str = ""
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

    def _find(self, name: str, version: int | None, label: str) -> _Version:
        if not name:
            raise InvalidArgument("ModelSpec has no name specified.")
        model = self._models.get(name)
        if label:
            if model is None or label not in model.labels:
                raise InvalidArgument(f"Unrecognized servable version label: {label}")
            version = model.labels[label]
        wanted = f"Latest({name})" if version is None else f"Specific({name}, {version})"
        if model is not None:
            serving = model.in_state(State.AVAILABLE)
            if version is None and serving:
                version = max(serving)
            if version in serving and version is not None:
                return model.versions[version]
        raise NotFound(f"Servable not found for request: {wanted}")

    def status(self, name: str, version: int | None = None) -> list[VersionStatus]:
        """States of all versions known, highest first, or of one.

        Raises:
            ServingError: With TF Serving's text: no such model or version.
        """
        if not name:
            raise InvalidArgument("ModelSpec has no name specified.")
        with self._changed:
            model = self._models.get(name)
            known = sorted(model.versions.values(), key=lambda v: -v.number) if model else []
            statuses = [
                VersionStatus(
                    one.number,
                    one.state,
                    one.error.code if one.error else Code.OK,
                    one.error.message if one.error else "",
                )
                for one in known
                if version in (None, one.number)
            ]
        if not statuses:
            if version is None:
                raise NotFound(f"Could not find any versions of model {name}")
            raise NotFound(f"Could not find version {version} of model {name}")
        return statuses

    def poll(self) -> None:
        """Scan once and do all that follows from it; what the manager thread does for ever."""
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
        found = {}
        try:
            for model in self._models.values():
                found[model.config.name] = scan(model.config)
        except NotFound as error:
            # As TF Serving: one bad path leaves the aspired versions of all models as they are.
            log.error(
                "FileSystemStoragePathSource encountered a filesystem access error: %s", error
            )
            return
        with self._changed:
            for name, versions in found.items():
                self._models[name].aspired = versions
                self._note_new(self._models[name])

    def _note_new(self, model: _Model) -> None:
        for number, known in list(model.versions.items()):
            # An ended version that is gone from disk may come back as a new one.
            if known.state is State.END and number not in model.aspired:
                known.path = Path()
        for number, path in model.aspired.items():
            known_version = model.versions.get(number)
            if known_version is None or (
                known_version.state is State.END and known_version.path == Path()
            ):
                model.versions[number] = _Version(number, path)

    def _load_initial(self) -> None:
        """Load everything asked for, several at once: nothing serves yet that could suffer."""
        with self._changed:
            new = [
                (model, model.versions[number])
                for model in self._models.values()
                for number in model.in_state(State.START)
            ]
        with ThreadPoolExecutor(max(1, self._options.initial_threads)) as threads:
            for done in [threads.submit(self._bring_up, *pair) for pair in new]:
                done.result()

    def _raise_ended(self) -> None:
        failed = []
        for model in self._models.values():
            if not model.in_state(State.AVAILABLE):
                ended = [model.versions[n] for n in model.in_state(State.END)]
                failed += [
                    f"{{name: {model.config.name} version: {one.number}}} due to error: "
                    f"{one.error.status}"
                    for one in ended
                    if one.error is not None
                ]
        if failed:
            raise Unknown(
                f"{len(failed)} servable(s) did not become available: "
                + "{"
                + "".join(f"{text}, " for text in failed)
                + "}"
            )

    def _act(self) -> bool:
        """Unload or load one version; False when there is nothing to do."""
        for choose in (self._next_unload, self._next_load):
            for model in list(self._models.values()):
                with self._changed:
                    version = choose(model)
                if version is None:
                    continue
                if choose == self._next_unload:
                    self._unload(model, version)
                else:
                    self._bring_up(model, version)
                return True
        return False

    @staticmethod
    def _next_unload(model: _Model) -> _Version | None:
        serving = model.in_state(State.AVAILABLE)
        surplus = [number for number in serving if number not in model.aspired]
        kept = len(serving) > len(surplus)
        if surplus and (not model.aspired or kept or len(surplus) > 1):
            return model.versions[min(surplus)]
        return None

    @staticmethod
    def _next_load(model: _Model) -> _Version | None:
        new = [number for number in model.in_state(State.START) if number in model.aspired]
        return model.versions[max(new)] if new else None

    def _bring_up(self, model: _Model, version: _Version) -> None:
        """Load a version, trying again as often as allowed; ends AVAILABLE or END."""
        name = model.config.name
        self._set_state(version, State.LOADING)
        options = self._options
        for attempt in range(1 + max(0, options.max_load_retries)):
            started = time.monotonic()
            try:
                predictor = self._load(version.path)
            except ServingError as error:
                failure = error
            except Exception as error:
                failure = Unknown(f"{type(error).__name__}: {error}")
            else:
                with self._changed:
                    version.predictor = predictor
                self._set_state(version, State.AVAILABLE)
                log.info(
                    "Successfully loaded servable version {name: %s version: %d} in %.2f s",
                    name,
                    version.number,
                    time.monotonic() - started,
                )
                return
            log.error(
                "Loading servable {name: %s version: %d} failed (try %d): %s",
                name,
                version.number,
                attempt + 1,
                failure.status,
            )
            if attempt == options.max_load_retries or not self._may_retry(model, version):
                break
        self._set_state(version, State.END, failure)

    def _may_retry(self, model: _Model, version: _Version) -> bool:
        """Wait before the next try; False when the version is no longer wanted."""
        if self._options.retry_seconds > 0 and self._stopping.wait(self._options.retry_seconds):
            return False
        if self._options.poll_seconds > 0:
            self._scan()
        return version.number in model.aspired

    def _unload(self, model: _Model, version: _Version) -> None:
        """Take a version out of service, wait for its requests, free it."""
        with self._changed:
            version.state = State.UNLOADING
            self._changed.notify_all()
            self._changed.wait_for(lambda: version.in_use == 0)
            predictor, version.predictor = version.predictor, None
        if predictor is not None:
            predictor.close()
        self._set_state(version, State.END)
        log.info(
            "Unloaded servable version {name: %s version: %d}", model.config.name, version.number
        )

    def _set_state(
        self, version: _Version, state: State, error: ServingError | None = None
    ) -> None:
        with self._changed:
            version.state = state
            version.error = error
            self._changed.notify_all()

    def _check_labels(self, model: _Model, config: ServedModel) -> None:
        for label, number in config.labels.items():
            known = model.versions.get(number)
            if known is not None and known.state is State.AVAILABLE:
                continue
            moved = model.labels.get(label, number) != number
            if moved or not self._options.allow_labels_for_unavailable:
                raise FailedPrecondition(
                    f"Request to assign label to version {number} of model {config.name}, which "
                    "is not currently available for inference"
                )
