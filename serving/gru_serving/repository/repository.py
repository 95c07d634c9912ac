"""The models of a server, their versions, and the state of each version.

One manager thread scans the base paths and changes at most one version at a time, so that a new
version serves before the old one goes (availability-preserving policy).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gru_serving.config.files import ServedModel
from gru_serving.engine.predictor import Predictor
from gru_serving.errors import FailedPrecondition, Unavailable
from gru_serving.repository.catalogue import Catalogue
from gru_serving.repository.changes import VersionChanges
from gru_serving.repository.loading import RepositoryOptions, raise_failed
from gru_serving.repository.versions import ModelVersions, State
from gru_serving.storage.version_scan import is_version

log = logging.getLogger(__name__)

_PATIENCE = 10.0


class Repository(Catalogue):
    """The models of a server.

    Args:
        models: What to serve; None where that is not configured yet.
        load: Makes a predictor of a version directory.
        options: How to look for and load versions.
        loaded: Called for every version that is about to serve: model, number, directory.
        unloaded: Called for every version that no longer serves, likewise.
    """

    def __init__(
        self,
        models: Sequence[ServedModel] | None,
        load: Callable[[Path], Predictor] = Predictor,
        options: RepositoryOptions | None = None,
        loaded: Callable[[str, int, Path], None] = lambda *_: None,
        unloaded: Callable[[str, int, Path], None] = lambda *_: None,
    ) -> None:
        super().__init__(models)
        self._options = options or RepositoryOptions()
        self._managing = threading.Lock()
        self._stopping = threading.Event()
        self._manager: threading.Thread | None = None
        self._changes = VersionChanges(self, load, self._options, loaded, unloaded, self._stopping)

    def start(self) -> None:
        """Load the first versions and start to watch; returns when every model has one that serves.

        Waits as long as a model has no version at all, as TF Serving does; `close` from another
        thread ends the wait. With models isolated, it returns when each of them serves, or failed
        once, or has no version.

        Raises:
            ServingError: A version could not be loaded, with TF Serving's text.
        """
        with self.changed:
            for model in self.models.values():
                model.check_labels(model.config.labels, self._options.allow_labels_for_unavailable)
                model.configure(model.config)
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
        """Serve these models from now on; returns when those with a new name serve.

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

    def give_up(self) -> None:
        """Stop scanning; loaded versions continue to serve until `close`."""
        self._stopping.set()

    def close(self) -> None:
        """Stop scanning and free all versions once no request uses them."""
        self.give_up()
        if self._manager is not None:
            self._manager.join()
        self._changes.close()

    def ready(self) -> bool:
        """Whether every model has a version that serves; of isolated ones, whether any has."""
        with self.changed:
            models = [model for model in self.models.values() if not model.retired]
            serving = [bool(model.in_state(State.AVAILABLE)) for model in models]
        return any(serving) if self._options.isolate_models and serving else all(serving)

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
    """The name of a model and where its versions are looked for, for people."""
    base = config.base_path
    if is_version(base):
        return config.name, f"{base}, which is a version itself; its base path is {base.parent}"
    return config.name, str(base)
