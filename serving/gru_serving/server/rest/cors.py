"""CORS headers (Fetch standard), which let pages of other origins use the REST API."""

from __future__ import annotations

from gru_serving.config.flags import Flags


def cors_headers(flags: Flags) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of every answer; none unless the flag is set.

    They are TF Serving's. With tokens, which TF Serving does not have, pages may send them, too:
    browsers send `Authorization` only where it is listed.
    """
    if not flags.rest_api_enable_cors_support:
        return ()
    allowed = b"Content-Type, Authorization" if flags.auth_token_file else b"Content-Type"
    return (
        (b"access-control-allow-origin", b"*"),
        (b"access-control-allow-methods", b"POST, GET"),
        (b"access-control-allow-headers", allowed),
    )
