"""The owner's catalogue in a worker, with the versions that the worker has in memory."""

import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gru_serving.config.files import ServedModel
from gru_serving.engine.version_loader import VersionLoader
from gru_serving.repository.catalogue import Catalogue, ModelVersions, State, Version
from gru_serving.server.workers.peer import Clock

Ask = Callable[..., Future[Any]]


@dataclass(frozen=True)
class Snapshot:
    """The owner's catalogue at one time.

    Attributes:
        configured: Whether it has been said what to serve.
        models: Versions of each model, by its name; without predictors.
        copies: Numbers of the copies that workers have in memory, by model and version.
    """

    configured: bool
    models: dict[str, ModelVersions]
    copies: dict[tuple[str, int], int]


class Replica(Catalogue):
    """A copy of the owner's catalogue, of which the predictors are this process's own.

    Args:
        loader: Loader of versions.
        clock: Clock that says which of the owner's snapshots is in force.
        ask: Function that calls a method of the owner.
        isolate_models: Whether it is enough that some models serve.
    """

    def __init__(self, loader: VersionLoader, clock: Clock, ask: Ask, isolate_models: bool) -> None:
        super().__init__(None, isolate_models)
        self._loader = loader
        self._clock = clock
        self._ask = ask
        self._time = 0
        self._staged: tuple[int, Snapshot] | None = None
        self._held: dict[int, Version] = {}
        self._begun = threading.Event()

    @property
    def models(self) -> dict[str, ModelVersions]:
        """See the base class; as the snapshot in force says."""
        if self._clock.now() != self._time:
            with self.changed:
                self._advance()
        return self._models

    def _advance(self) -> None:
        """Take over the staged snapshot if it is in force."""
        if self._staged is None or self._staged[0] > self._clock.now():
            return
        self._time, snapshot = self._staged
        self._staged = None
        for (name, number), copy in snapshot.copies.items():
            said, held = snapshot.models[name].known[number], self._held.get(copy)
            if held is not None:  # else the owner is about to forget it
                held.number, held.state, held.error = number, said.state, said.error
                snapshot.models[name].known[number] = held
        self.configured, self._models = snapshot.configured, snapshot.models
        self.changed.notify_all()

    def stage(self, time: int, pickled: bytes) -> None:
        """Have a snapshot ready for the time when the clock says that it is in force."""
        snapshot = pickle.loads(pickled)
        with self.changed:
            self._advance()
            self._staged = time, snapshot

    def load(self, copy: int, directory: Path) -> tuple[str, frozenset[str]]:
        """Load a version; it serves once a snapshot says so.

        Args:
            copy: Number for this copy.
            directory: Directory of the version.

        Returns:
            What runs it, and the signatures that this leaves to TensorFlow.

        Raises:
            ServingError: The version cannot be loaded.
        """
        predictor = self._loader(directory)
        with self.changed:
            self._held[copy] = Version(0, directory, predictor=predictor)
        return predictor.runtime, predictor.left

    def unload(self, copy: int) -> None:
        """Free a version that no snapshot has serve any more, once no request holds it."""
        with self.changed:
            self._advance()
            version = self._held.pop(copy, None)
            if version is None:
                return
            self.changed.wait_for(lambda: version.in_use == 0)
            predictor, version.predictor = version.predictor, None
        if predictor is not None:
            predictor.close()

    def forget(self, model: str, version: int, directory: Path) -> None:
        """Drop the metrics of a version that no longer serves."""
        self._loader.forget(model, version, directory)

    def serve(self) -> None:
        """Let the ports be opened."""
        self._begun.set()

    def start(self) -> None:
        """See the base class."""
        self._begun.wait()

    def reconfigure(self, models: Sequence[ServedModel] | None) -> None:
        """See the base class; done by the owner."""
        self._ask("reconfigure", models).result()

    def give_up(self) -> None:
        """See the base class."""
        self._begun.set()

    def close(self) -> None:
        """See the base class."""
        with self.changed:
            self._advance()
            for version in self._held.values():
                version.state = State.UNLOADING
            copies = list(self._held)
        for copy in copies:
            self.unload(copy)
