"""The versions of one model: their states, and which of them is to come or go next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from gru_serving.config.files import ServedModel
from gru_serving.engine.predictor import Predictor
from gru_serving.errors import Code, FailedPrecondition, RefusedVersion, ServingError
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
    """One version ever seen.

    Attributes:
        number: Of the version.
        path: Its directory.
        state: Where it is in its life.
        error: Why it ended, when it was not asked to.
        predictor: While it is in memory.
        in_use: Requests that hold it.
        gone: At some time since it was first seen, it was not wanted.
        retrying: Its load failed, and is tried again.
        tried: Its files when it was loaded last.
        seen: Its files when they were looked at last.
        changed: Its load failed, and its files have changed since.
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

    def look(self, contents: Contents | None) -> None:
        """Note the files of a version that failed.

        It has changed once they differ from those at its load and are the same at two scans: a
        version that is being copied is not tried at every scan.
        """
        self.changed = contents != self.tried and contents == self.seen
        self.seen = contents

    def is_refused(self) -> bool:
        """Whether it must not be loaded as it is."""
        return isinstance(self.error, RefusedVersion) and not self.changed

    def status(self) -> VersionStatus:
        """For status answers."""
        if self.error is None:
            return VersionStatus(self.number, self.state)
        return VersionStatus(self.number, self.state, self.error.code, self.error.message)


@dataclass
class ModelVersions:
    """The versions of one model; its users must hold the lock.

    Attributes:
        config: What is configured.
        known: Every version ever seen, by number. Ended ones stay, as in TF Serving.
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
        """The versions in that state."""
        return [version for version in self.known.values() if version.state is state]

    def failed(self) -> list[Version]:
        """The versions that ended by an error."""
        return [version for version in self.in_state(State.END) if version.error is not None]

    def is_coming(self) -> bool:
        """Whether a version is about to be loaded."""
        states = (State.START, State.LOADING)
        return any(version.state in states for version in self.known.values())

    def aspire(self, found: Mapping[int, Path]) -> None:
        """Note which versions should serve.

        A version that ended, by failure or unloading, starts again only after it was not wanted
        in between; one that failed, also when its files have changed.
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
        """The version to take out of service next, so that one always stays (if one is wanted).

        The lowest surplus version, if nothing is wanted any more, or a wanted version serves, or
        more than one surplus version serves.
        """
        serving = self.in_state(State.AVAILABLE)
        surplus = [version for version in serving if version.number not in self.aspired]
        if surplus and (not self.aspired or len(serving) > len(surplus) or len(surplus) > 1):
            return min(surplus, key=lambda version: version.number)
        return None

    def next_load(self) -> Version | None:
        """The version to load next: the highest new one."""
        new = [one for one in self.in_state(State.START) if one.number in self.aspired]
        return max(new, key=lambda version: version.number, default=None)

    def configure(self, config: ServedModel) -> None:
        """Take over a configuration whose labels were checked."""
        self.config = config
        self.labels = dict(config.labels)
        self.retired = False

    def retire(self) -> None:
        """The configuration names this model no more: all its versions are to go."""
        self.aspire({})
        self.labels = {}
        self.retired = True

    def check_labels(self, labels: Mapping[str, int], allow_unavailable: bool) -> None:
        """Whether the labels of a configuration may be taken over.

        Args:
            labels: Version numbers by label.
            allow_unavailable: Labels may point to versions that do not serve, but no label may
                be moved to one.

        Raises:
            FailedPrecondition: With TF Serving's text.
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
