"""A queryable list of the models of a server and the states of their versions.

Requests hold the version they use; it is freed when the last of them is done.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from gru_serving.config.files import ServedModel
from gru_serving.engine.predictor import Predictor
from gru_serving.errors import InvalidArgument, NotFound, ServingError, Unavailable
from gru_serving.protos.logging_config_pb2 import LoggingConfig
from gru_serving.repository.versions import ModelVersions, State, Version, VersionStatus


class Lease:
    """A version that is not freed meanwhile; a context manager.

    Args:
        held: Counted as in use already.
        changed: Of the catalogue.

    Attributes:
        predictor: The version in memory.
        number: Of the version.
    """

    __slots__ = ("_changed", "_held", "number", "predictor")

    def __init__(self, held: Version, changed: threading.Condition) -> None:
        assert held.predictor is not None
        self.predictor = held.predictor
        self.number = held.number
        self._held: Version | None = held
        self._changed = changed

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
        """Hold it no longer."""
        held, self._held = self._held, None
        if held is None:
            return
        with self._changed:
            held.in_use -= 1
            if held.in_use == 0 and held.state is State.UNLOADING:
                self._changed.notify_all()


class Catalogue:
    """Models by name; its methods may be called from several threads.

    Args:
        models: What to serve; None where that is not configured yet.

    Attributes:
        models: Their versions, by name; to be used under `changed`.
        changed: Called for every change of a version.
        configured: Whether it has been said what to serve, even if that is nothing.
    """

    def __init__(self, models: Sequence[ServedModel] | None) -> None:
        self.changed = threading.Condition()
        self.configured = models is not None
        self.models = {model.name: ModelVersions(model) for model in models or ()}

    def change(self, version: Version, state: State, error: ServingError | None = None) -> None:
        """Record the new state of a version."""
        with self.changed:
            version.state = state
            version.error = error
            self.changed.notify_all()

    def acquire(self, name: str, version: int | None = None, label: str | None = None) -> Lease:
        """Hold a version for the time of one request.

        Args:
            name: Of the model.
            version: Exactly that one; None for the highest that serves.
            label: The version that the label points to; not together with `version`.

        Raises:
            ServingError: With TF Serving's text: no such model, version or label.
        """
        with self.changed:
            held = self._find(name, version, label)
            held.in_use += 1
        return Lease(held, self.changed)

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
        chosen = [
            version
            for version in (() if model is None else model.known.values())
            if version.state is State.AVAILABLE and number in (None, version.number)
        ]
        if not chosen:
            wanted = f"Latest({name})" if number is None else f"Specific({name}, {number})"
            raise NotFound(f"Servable not found for request: {wanted}")
        return max(chosen, key=lambda version: version.number)

    def status(self, name: str, number: int | None = None) -> list[VersionStatus]:
        """States of all versions known, highest first, or of one.

        Raises:
            ServingError: With TF Serving's text: no such model or version.
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
        """The directory of a version that serves.

        Raises:
            NotFound: With TF Serving's text: no such model or version.
        """
        with self.changed:
            return self._find(name, number, None).path

    def listing(self) -> list[dict[str, Any]]:
        """All models by name, with their live versions, labels and what became of the others.

        The `runtime` of a version that is not in memory is empty, and so is `left_to_tensorflow`.
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
        """The names of the models that are configured, loaded or not."""
        with self.changed:
            return [name for name, model in self.models.items() if not model.retired]

    def logging(self, name: str) -> LoggingConfig | None:
        """The `logging_config` of a model; None where it has none."""
        model = self.models.get(name)
        return None if model is None else model.config.logging

    def interrupt(self) -> None:
        """End the runs under way, for the last moment before the end of the process.

        Also those that no request holds any more: a batch whose clients have gone.
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
    """What the list of models says of the runtime of a version."""
    if predictor is None:
        return {"runtime": "", "left_to_tensorflow": []}
    return {"runtime": predictor.runtime, "left_to_tensorflow": sorted(predictor.left)}
