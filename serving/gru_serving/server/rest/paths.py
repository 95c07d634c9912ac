"""Paths of the REST API, as TF Serving reads them."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from gru_serving.errors import InvalidArgument
from gru_serving.inference.request import Target

# Full matches over path and query string, as TF Serving's: a query makes a request malformed.
_NAME = rb"/v1/models/(?P<model>[^/:]+)"
_VERSION = rb"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
POST = re.compile(rb"(?i)" + _NAME + _VERSION + rb":(?P<verb>classify|regress|predict)")
GET = re.compile(
    rb"(?i)/v1/models(?:/(?P<model>[^/:]+))?" + _VERSION + rb"(?P<metadata>/metadata)?"
)
API = re.compile(rb"(?i)/v1/.*", re.DOTALL)
_INT64_DIGITS = 19
METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH")
# Bytes that a URI may not have, and per cent signs without two digits (RFC 3986).
NO_URI = re.compile(rb"[^!$%&-;=?-Z_a-z~]|%(?![0-9A-Fa-f]{2})")


class EmptyError(InvalidArgument):
    """Answered without a body, as TF Serving happens to."""


def target_of(match: re.Match[bytes]) -> Target:
    """The target of a path that matched `POST` or `GET`.

    Raises:
        EmptyError: The version is beyond int64.
    """
    version = None
    if match["version"]:
        digits = match["version"].lstrip(b"0")
        if len(digits) > _INT64_DIGITS or int(digits or b"0") >= 1 << 63:
            shown = match["version"].decode()
            raise EmptyError(f"Failed to convert version: {shown} to numeric.")
        version = int(digits or b"0")
    label = unquote(match["label"]) if match["label"] else None
    return Target(unquote(match["model"]), version, label)


def unquote(part: bytes | None) -> str:
    """A part of a path without its escapes; bytes that are not UTF-8 as half surrogate pairs."""
    return unquote_to_bytes(part or b"").decode("utf-8", "surrogateescape")
