"""The models of a server, the states of their versions, and the versions that requests hold.

A version is freed when the last request that holds it has ended.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any

from gru_serving.config.files import ServedModel, ShadowTarget
from gru_serving.engine.predictor import Predictor
from gru_serving.errors import (
    Code,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    RefusedVersion,
    ServingError,
    Unavailable,
)
from gru_serving.protos.logging_config_pb2 import LoggingConfig
from gru_serving.storage.digests import Digest, altered_files
from gru_serving.storage.version_files import Contents


class State(IntEnum):
    """Life of a version, with the numbers of `ModelVersionStatus.State`."""

    START = 10
    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclass(frozen=True)
class VersionStatus:
    """State of one version, for status answers."""

    version: int
    state: State
    error_code: Code = Code.OK
    error_message: str = ""


@dataclass
class Version:
    """One version that was seen on disk, in any state.

    Attributes:
        number: Number of the version.
        path: Directory of the version.
        state: State in its life.
        error: Error that ended it, when it was not asked to end.
        predictor: Predictor of the version while it is in memory; else None.
        in_use: Number of requests that hold it.
        gone: Whether it was not wanted at some time since it was first seen.
        retrying: Whether its load failed, and is tried again.
        tried: Files when it was loaded last.
        seen: Files when they were looked at last.
        changed: Whether its files have changed since its load, and are not being changed any more.
        listed: Digests of its files when it was loaded last; empty where it has none.
    """

    number: int
    path: Path
    state: State = State.START
    error: ServingError | None = None
    predictor: Predictor | None = None
    in_use: int = 0
    gone: bool = False
    retrying: bool = False
    tried: Contents | None = None
    seen: Contents | None = None
    changed: bool = False
    listed: Mapping[str, Digest] = field(default_factory=dict)

    def look(self, contents: Contents | None) -> None:
        """Record the files of a version that failed or serves.

        A version counts as changed once its files differ from those at its load and are equal in
        two scans, so that a version being copied is not tried at every scan.
        """
        self.changed = contents != self.tried and contents == self.seen
        self.seen = contents

    def altered(self, path: Path) -> list[str]:
        """Return the files in `path` that differ from those of the load, once for each change."""
        if not self.changed:
            return []
        before, now = (files or frozenset() for files in (self.tried, self.seen))
        self.tried, self.changed = self.seen, False
        return altered_files(path, self.listed, sorted({name for name, _ in before ^ now}))

    def is_refused(self) -> bool:
        """Tell whether the version must not be loaded with its present files."""
        return isinstance(self.error, RefusedVersion) and not self.changed

    def status(self) -> VersionStatus:
        """Return the state of the version for status answers."""
        if self.error is None:
            return VersionStatus(self.number, self.state)
        return VersionStatus(self.number, self.state, self.error.code, self.error.message)


@dataclass
class ModelVersions:
    """The versions of one model; its users must hold the lock.

    Attributes:
        config: Configuration of the model.
        known: Versions ever seen, by number. Ended ones stay, as in TF Serving.
        aspired: Directories of the versions that should serve, by number.
        labels: Version numbers by label.
        retired: The configuration names the model no more.
    """

    config: ServedModel
    known: dict[int, Version] = field(default_factory=dict)
    aspired: dict[int, Path] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    retired: bool = False

    def in_state(self, state: State) -> list[Version]:
        """Return the versions in this state."""
        return [version for version in self.known.values() if version.state is state]

    def failed(self) -> list[Version]:
        """Return the versions that ended with an error."""
        return [version for version in self.in_state(State.END) if version.error is not None]

    def is_coming(self) -> bool:
        """Tell whether a version is about to be loaded."""
        states = (State.START, State.LOADING)
        return any(version.state in states for version in self.known.values())

    def aspire(self, found: Mapping[int, Path]) -> None:
        """Set which versions should serve.

        A version that ended, by failure or unloading, starts again only after it was not wanted in
        between; a failed one also starts again when its files have changed.
        """
        self.aspired = dict(found)
        for number, version in self.known.items():
            if number not in found:
                version.gone = True
        for number, path in found.items():
            known = self.known.get(number)
            if known is None or (known.state is State.END and (known.gone or known.changed)):
                self.known[number] = Version(number, path)

    def next_unload(self) -> Version | None:
        """Choose the version to unload next, so that one always remains (if any is wanted).

        The lowest surplus version, if nothing is wanted any more, or a wanted version serves, or
        more than one surplus version serves.
        """
        serving = self.in_state(State.AVAILABLE)
        surplus = [version for version in serving if version.number not in self.aspired]
        if surplus and (not self.aspired or len(serving) > len(surplus) or len(surplus) > 1):
            return min(surplus, key=lambda version: version.number)
        return None

    def next_load(self) -> Version | None:
        """Choose the version to load next: the highest new one."""
        new = [one for one in self.in_state(State.START) if one.number in self.aspired]
        return max(new, key=lambda version: version.number, default=None)

    def configure(self, config: ServedModel) -> None:
        """Apply a configuration whose labels were checked."""
        self.config = config
        self.labels = dict(config.labels)
        self.retired = False

    def retire(self) -> None:
        """Retire the model: all its versions are to be unloaded."""
        self.aspire({})
        self.labels = {}
        self.retired = True

    def check_labels(self, labels: Mapping[str, int], allow_unavailable: bool) -> None:
        """Check that the labels of a configuration may be applied.

        Args:
            labels: Version numbers by label.
            allow_unavailable: Labels may point to versions that do not serve, but no label may
                be moved to one.

        Raises:
            FailedPrecondition: A label may not be assigned; the message is TF Serving's.
        """
        for label, number in labels.items():
            version = self.known.get(number)
            if version is not None and version.state is State.AVAILABLE:
                continue
            if self.labels.get(label, number) != number or not allow_unavailable:
                raise FailedPrecondition(
                    f"Request to assign label to version {number} of model {self.config.name}, "
                    "which is not currently available for inference"
                )


@dataclass(slots=True)
class Lease:
    """A context manager during which a version is not freed.

    Attributes:
        predictor: The version in memory.
        number: Number of the version.
        shadow: Version that is also asked what the model is asked; None for none.
        held: Version that is counted as in use; None after the end.
        changed: Condition of the catalogue.
    """

    predictor: Predictor
    number: int
    shadow: ShadowTarget | None
    held: Version | None
    changed: threading.Condition

    def __enter__(self) -> tuple[Predictor, int]:
        return self.predictor, self.number

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """Release the version."""
        held, self.held = self.held, None
        if held is None:
            return
        with self.changed:
            held.in_use -= 1
            if held.in_use == 0 and held.state is State.UNLOADING:
                self.changed.notify_all()


class Catalogue(ABC):
    """Models by name; its methods may be called from several threads.

    Args:
        models: Models to serve; None where that is not configured yet.
        isolate_models: Whether it is enough that some models serve.

    Attributes:
        changed: Condition that is notified of every change of a version.
        configured: Whether it has been said what to serve, even if that is nothing.
    """

    def __init__(self, models: Sequence[ServedModel] | None, isolate_models: bool = False) -> None:
        self.changed = threading.Condition()
        self.configured = models is not None
        self._models = {model.name: ModelVersions(model) for model in models or ()}
        self._isolate_models = isolate_models

    @property
    def models(self) -> dict[str, ModelVersions]:
        """Versions of each model, by its name; to be used under `changed`."""
        return self._models

    @abstractmethod
    def start(self) -> None:
        """Wait until there is something to serve, or until `give_up`.

        Raises:
            ServingError: No version will serve; the message is TF Serving's.
        """

    @abstractmethod
    def reconfigure(self, models: Sequence[ServedModel] | None) -> None:
        """Replace the configuration of the models; returns when those with a new name serve.

        This does not wait for models that another call has replaced meanwhile. Models that are no
        longer named are unloaded afterwards by the manager. A refused configuration changes
        nothing.

        Args:
            models: Models to serve; an empty list unloads all models.

        Raises:
            ServingError: The configuration has no models where some were configured, a label on a
                version that does not serve, or a new model that could not be loaded; the message is
                TF Serving's.
        """

    @abstractmethod
    def give_up(self) -> None:
        """Begin no change any more; loaded versions continue to serve until `close`."""

    @abstractmethod
    def close(self) -> None:
        """Free all versions once no request uses them."""

    def ready(self) -> bool:
        """Tell whether every model has a version that serves.

        Of isolated models, whether any has.
        """
        with self.changed:
            models = [model for model in self.models.values() if not model.retired]
            serving = [bool(model.in_state(State.AVAILABLE)) for model in models]
        return any(serving) if self._isolate_models and serving else all(serving)

    def acquire(self, name: str, version: int | None = None, label: str | None = None) -> Lease:
        """Hold a version for the duration of one request.

        Args:
            name: Name of the model.
            version: Number of the version; None for the highest that serves.
            label: Label that points to the version; not together with `version`.

        Raises:
            ServingError: The model, version or label does not exist; the message is TF Serving's.
        """
        with self.changed:
            held = self._find(name, version, label)
            held.in_use += 1
            assert held.predictor is not None
            shadow = self.models[name].config.shadow
            return Lease(held.predictor, held.number, shadow, held, self.changed)

    def _find(self, name: str, number: int | None, label: str | None) -> Version:
        if not name:
            raise InvalidArgument("ModelSpec has no name specified.")
        model = self.models.get(name)
        if label is not None:
            if not self.configured:
                raise Unavailable(f"Model labels does not init yet.{label}")
            if model is None or label not in model.labels:
                raise InvalidArgument(f"Unrecognized servable version label: {label}")
            number = model.labels[label]
        chosen: Version | None = None
        for version in () if model is None else model.known.values():
            serves = version.state is State.AVAILABLE and number in (None, version.number)
            if serves and (chosen is None or version.number > chosen.number):
                chosen = version
        if chosen is None:
            wanted = f"Latest({name})" if number is None else f"Specific({name}, {number})"
            raise NotFound(f"Servable not found for request: {wanted}")
        return chosen

    def status(self, name: str, number: int | None = None) -> list[VersionStatus]:
        """Return the states of all known versions, highest first, or of one.

        Raises:
            ServingError: The model or the version does not exist; the message is TF Serving's.
        """
        with self.changed:
            model = self.models.get(name)
            known = sorted(model.known.items(), reverse=True) if model is not None else []
            statuses = [version.status() for key, version in known if number in (None, key)]
        if not statuses:
            if number is None:
                raise NotFound(f"Could not find any versions of model {name}")
            raise NotFound(f"Could not find version {number} of model {name}")
        return statuses

    def directory(self, name: str, number: int) -> Path:
        """Return the directory of a version that serves.

        Raises:
            NotFound: The model or the version does not exist; the message is TF Serving's.
        """
        with self.changed:
            return self._find(name, number, None).path

    def listing(self) -> list[dict[str, Any]]:
        """List all models by name, with live versions, labels, and the ends of other versions.

        For a version that is not in memory, `runtime` and `left_to_tensorflow` are empty.
        """
        with self.changed:
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
                            **_runtime(version.predictor),
                        }
                        for number, version in sorted(model.known.items(), reverse=True)
                    ],
                }
                for name, model in sorted(self.models.items())
                if not model.retired
            ]

    def configured_names(self) -> list[str]:
        """Return the names of the configured models, loaded or not."""
        with self.changed:
            return [name for name, model in self.models.items() if not model.retired]

    def logging(self, name: str) -> LoggingConfig | None:
        """Return the `logging_config` of a model; None if it has none."""
        model = self.models.get(name)
        return None if model is None else model.config.logging

    def leases(self) -> int:
        """Count the requests that hold a version."""
        with self.changed:
            return sum(
                version.in_use for model in self.models.values() for version in model.known.values()
            )

    def interrupt(self) -> None:
        """End the runs in progress, just before the end of the process.

        This includes runs that no request holds any more: a batch whose clients have gone.
        """
        with self.changed:
            loaded = [
                version.predictor
                for model in self.models.values()
                for version in model.known.values()
                if version.predictor is not None
            ]
        for predictor in loaded:
            predictor.interrupt()


def _runtime(predictor: Predictor | None) -> dict[str, Any]:
    """Return the entries on a version's runtime in the list of models."""
    if predictor is None:
        return {"runtime": "", "left_to_tensorflow": []}
    return {"runtime": predictor.runtime, "left_to_tensorflow": sorted(predictor.left)}
