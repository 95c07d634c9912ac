"""Features beyond TF Serving: tokens, host check, logs and additional metrics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gru_serving.config.flags import Flags
from gru_serving.repository.catalogue import Catalogue
from gru_serving.server.rest.guards import Hosts, Observed, TokenGuard, cors_headers
from gru_serving.server.tokens import Tokens
from gru_serving.telemetry.access_log import AccessLog
from gru_serving.telemetry.metrics import Metrics, VersionMetrics
from gru_serving.telemetry.prediction_log import PredictionLogger, PredictionLogOptions
from gru_serving.telemetry.refusals import Refusals
from gru_serving.telemetry.request_record import RequestRecord
from gru_serving.telemetry.tracing import Identities, Tracing

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class Additions:
    """The additions that the flags enable; without these flags it does nothing.

    Args:
        flags: Flags that ask for additions.
        repository: Models with their logging configurations.
        metrics: Metrics to which those with version and signature are added; None where no
            metrics are served.
        refusals: Counter of the requests that are refused.

    Attributes:
        refusals: Counter of the requests that are refused.
        tokens: Tokens that requests need; None for none.
        observers: Functions that get the record of every request.
        identities: Ids and traces that requests get; None where nobody wants them.
        in_progress: Gauge of the requests in progress; None where no metrics are served.

    Raises:
        ServingError: A file or a figure is wrong.
    """

    def __init__(
        self, flags: Flags, repository: Catalogue, metrics: Metrics | None, refusals: Refusals
    ) -> None:
        self.refusals = refusals
        self.tokens = Tokens(flags.auth_token_file) if flags.auth_token_file else None
        self.observers: list[Callable[[RequestRecord], None]] = []
        self._playground = flags.enable_playground
        self._cors = cors_headers(flags)
        self._sizes = bool(flags.access_log)
        self._hosts = Hosts(flags)
        self._loggers: list[AccessLog | PredictionLogger] = []
        if metrics is not None:
            self.observers.append(VersionMetrics(metrics))
        if flags.access_log:
            self._loggers.append(AccessLog(flags.access_log))
        if flags.prediction_log_directory:
            options = PredictionLogOptions(
                Path(flags.prediction_log_directory),
                flags.prediction_log_sampling_rate,
                flags.prediction_log_file_mib << 20,
                flags.prediction_log_files,
            )
            count = None if metrics is None else metrics.request_log_count.add
            tags = flags.saved_model_tags.split(",")
            self._loggers.append(PredictionLogger(options, repository.logging, tags, count))
        self.observers += self._loggers
        self._tracing = Tracing() if flags.tracing else None
        if self._tracing is not None:
            self.observers.append(self._tracing.end)
        self.in_progress = None if metrics is None else metrics.in_progress
        wanted = self._loggers or self._tracing is not None
        self.identities = Identities(self._tracing) if wanted else None

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Wrap the REST application in the layers that the flags ask for."""
        from gru_serving.server.playground.routes import OPEN_PATHS

        if self.tokens is not None:
            open_paths = OPEN_PATHS if self._playground else ()
            app = TokenGuard(app, self.tokens, self.refusals, self._cors, open_paths)
        app = self._hosts.wrap(app, self.refusals)
        if not self.observers:
            return app
        return Observed(app, self.observers, self.identities, self.in_progress, self._sizes)

    def close(self) -> None:
        """Flush the logs, and send the last traces."""
        for logger in self._loggers:
            logger.close()
        if self._tracing is not None:
            self._tracing.close()
