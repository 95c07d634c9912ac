"""Routes of the playground: its files, and the files of a version that the pages show."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from gru_serving.codecs.json_predict import encode_error
from gru_serving.config.flags import Flags
from gru_serving.errors import InvalidArgument, ServingError
from gru_serving.server.playground import PATH

if TYPE_CHECKING:
    from gru_serving.repository.catalogue import Catalogue

ASSETS = Path(__file__).parent / "assets"
FILES = {
    f"{PATH}/": ("index.html", "text/html; charset=utf-8"),
    f"{PATH}/playground.js": ("playground.js", "text/javascript; charset=utf-8"),
    f"{PATH}/playground.css": ("playground.css", "text/css; charset=utf-8"),
    f"{PATH}/icon.svg": ("icon.svg", "image/svg+xml"),
}
OPEN_PATHS = frozenset(path.encode() for path in (PATH, *FILES))
"""Paths that need no token: the page itself, which contains nothing of the models."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
_CARD, _GOLDEN = "model_card.json", "golden.json"
_MOST_BYTES = 32 << 20


def playground_routes(flags: Flags, metrics_path: str, repository: Catalogue) -> list[Route]:
    """Return the routes for `gru_serving.server.rest.app.Api`; none unless the flags ask for them.

    Args:
        flags: `--enable_playground`, and what the page says of the server.
        metrics_path: Path of the metrics page; empty for none.
        repository: The models.
    """
    if not flags.enable_playground:
        return []
    about = _about(flags, metrics_path)

    def redirect(_: Request) -> Response:
        return RedirectResponse(f"{PATH}/", 308)

    def server(_: Request) -> Response:
        return JSONResponse(about, headers=_HEADERS)

    return [
        Route(PATH, redirect),
        *(Route(path, _file(name, kind)) for path, (name, kind) in FILES.items()),
        Route(f"{PATH}/server.json", server),
        Route(f"{PATH}/card.json", _extra(_CARD, repository)),
        Route(f"{PATH}/golden.json", _extra(_GOLDEN, repository)),
    ]


def _file(name: str, kind: str) -> Callable[[Request], Response]:
    def file(_: Request) -> Response:
        return FileResponse(ASSETS / name, headers=_HEADERS, media_type=kind)

    return file


def _extra(name: str, repository: Catalogue) -> Callable[[Request], Response]:
    """Return a file of `assets.extra/` of the serving version that a query names.

    Null if there is none.
    """

    def extra(request: Request) -> Response:
        try:
            number = request.query_params.get("version", "")
            if not number.isascii() or not number.isdigit() or len(number) > 19:
                raise InvalidArgument(f"version: expected a number, got {number!r:.40}")
            model = request.query_params.get("model", "")
            content = _read(repository.directory(model, int(number)), name)
        except ServingError as error:
            status, body = encode_error(error)
            return Response(body, status, _HEADERS, "application/json")
        return Response(content, 200, _HEADERS, "application/json")

    return extra


def _read(directory: Path, name: str) -> bytes:
    path = directory / "assets.extra" / name
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError:
        return b"null"
    if len(content) > _MOST_BYTES:
        raise InvalidArgument(f"{name} is larger than {_MOST_BYTES >> 20} MiB")
    return content


def _about(flags: Flags, metrics_path: str) -> Mapping[str, Any]:
    runtimes = {}
    for package in ("keras-gru", "tensorflow", "tensorflow-cpu", "ai-edge-litert"):
        with contextlib.suppress(PackageNotFoundError):
            runtimes[package] = version(package)
    return {
        "runtimes": runtimes,
        "metrics_path": metrics_path,
        "grpc_port": flags.port,
        "grpc_tls": bool(flags.ssl_config_file),
        "tokens": bool(flags.auth_token_file),
        "batching": flags.enable_batching,
    }
