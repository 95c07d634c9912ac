"""What REST answers beside TF Serving's API: health, the list of models, metrics, error pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from http import HTTPStatus
from itertools import islice

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from gru_serving.repository.repository import Repository
from gru_serving.telemetry.metrics import Metrics, page

_LINES = 500
"""Of the metrics' page, written in one go: about a millisecond."""


def pages(
    repository: Repository, draining: Callable[[], bool], further: Sequence[Route] = ()
) -> Starlette:
    """An application of /healthz, /readyz and /models.

    Args:
        repository: The models.
        draining: Whether the server is about to stop.
        further: More routes, as those of the playground.
    """

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> Response:
        if draining():
            return JSONResponse({"status": "stopping"}, 503)
        ready = repository.ready()
        return JSONResponse({"status": "ready" if ready else "loading"}, 200 if ready else 503)

    async def models(_: Request) -> Response:
        return JSONResponse({"models": repository.listing()})

    async def missing(_: Request, __: Exception) -> Response:
        return error_page(HTTPStatus.NOT_FOUND, "<p>The API is under /v1/models.</p>\n")

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/models", models),
            *further,
        ],
        exception_handlers={404: missing},
    )


def error_page(status: HTTPStatus, text: str = "") -> Response:
    """An error page, as TF Serving's HTTP library answers beside the API."""
    title, body = f"{status.value} {status.phrase}", f"<h1>{status.phrase}</h1>\n{text}"
    page = f"<html><head>\n<title>{title}</title>\n</head><body>\n{body}</body></html>\n"
    return Response(page, status, media_type="text/html")


async def metrics_page(metrics: Metrics, scope: Scope) -> Response:
    """The counts, in Prometheus' text form; written in pieces, between which requests go on."""
    headers = {"content-type": "text/plain"}
    if scope["query_string"]:
        shown = f"{scope['path']}?{scope['query_string'].decode('latin-1')}"
        text = f"Unexpected path: {shown}. Should be {scope['path']}"
        return Response(text, 400, headers)
    pieces, lines = [], metrics.lines()
    while piece := page(islice(lines, _LINES)):
        pieces.append(piece)
        await asyncio.sleep(0)
    return Response(b"".join(pieces), headers=headers)
