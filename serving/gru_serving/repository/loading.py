"""Loading of versions: options, retries and error reports."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gru_serving.engine.predictor import Predictor
from gru_serving.errors import RefusedVersion, ServingError, Unknown
from gru_serving.repository.versions import ModelVersions, State
from gru_serving.telemetry.server_log import still

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RepositoryOptions:
    """How versions are looked for and loaded.

    Attributes:
        poll_seconds: Between scans of the base paths; 0 scans once, negative never.
        max_load_retries: After the first failure of a load.
        retry_seconds: Between tries of a load; negative for no wait.
        initial_threads: Loads at once before the ports open.
        load_threads: Loads at once after that; 0 for one at a time, inside the manager's thread,
            which does nothing else meanwhile.
        unload_threads: Unloads at once; 0 likewise.
        allow_labels_for_unavailable: New labels may point to versions that are not loaded yet.
        isolate_models: A model without a version, or whose versions cannot be loaded, keeps no
            other from being served.
    """

    poll_seconds: float = 1.0
    max_load_retries: int = 5
    retry_seconds: float = 60.0
    initial_threads: int = 4
    load_threads: int = 0
    unload_threads: int = 0
    allow_labels_for_unavailable: bool = False
    isolate_models: bool = False


def load_with_retries(
    load: Callable[[], Predictor], name: str, tries: int, may_retry: Callable[[], bool]
) -> Predictor:
    """Load a version, with several attempts if necessary; a refused version gets one.

    Args:
        load: Loads it.
        name: For the log.
        tries: At most.
        may_retry: Waits before the next try; False for no more.

    Raises:
        ServingError: Of the last try.
    """
    log.info("Loading servable version %s", name)
    for attempt in range(1, tries + 1):
        started = time.monotonic()
        try:
            with still(f"loading {name}"):
                predictor = load()
        except Exception as error:
            failure = error if isinstance(error, ServingError) else Unknown(repr(error))
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
        Unknown: With TF Serving's text.
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
