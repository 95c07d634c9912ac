"""Bearer tokens that authorize requests."""

import hmac
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from gru_serving.errors import InvalidArgument, NotFound, ServingError

log = logging.getLogger(__name__)

REFUSAL = "a bearer token is required: send 'Authorization: Bearer TOKEN', once"
_LOOK_AGAIN_SECONDS = 1.0
_MIN_LENGTH = 16


class Tokens:
    """The tokens of a file, which is read again when it changes.

    One token per line; empty lines and lines that start with `#` are skipped. Several tokens let
    you replace one without downtime: add the new one, switch the clients over, remove the old one.
    If the file becomes unreadable or empty, the previous tokens stay valid.

    Args:
        path: Path of the file.

    Raises:
        ServingError: There is no such file, or it holds no usable tokens.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._looked = time.monotonic()
        self._stamp = self._look()
        self._tokens = _read(self._path)

    def allow(self, authorization: str | bytes) -> bool:
        """Tell whether a request with this `Authorization` header may pass."""
        self._refresh()
        raw = authorization.encode() if isinstance(authorization, str) else authorization
        scheme, _, given = raw.partition(b" ")
        given = given.strip()
        # Every token is compared, so that the time taken reveals nothing.
        fits = [hmac.compare_digest(given, token) for token in self._tokens]
        return scheme.lower() == b"bearer" and any(fits)

    def _refresh(self) -> None:
        now = time.monotonic()
        if now - self._looked < _LOOK_AGAIN_SECONDS or not self._lock.acquire(blocking=False):
            return
        try:
            self._looked = now
            stamp = self._look()
            if stamp != self._stamp:
                self._stamp = stamp
                self._tokens = _read(self._path)
                log.info("Read %s: it has %d token(s)", self._path, len(self._tokens))
        except ServingError as error:
            log.error("%s The server keeps using the previous tokens.", error)
        finally:
            self._lock.release()

    def _look(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _read(path: Path) -> Sequence[bytes]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        raise NotFound(f"--auth_token_file: there is no file {path}.") from None
    except OSError as error:
        raise InvalidArgument(f"--auth_token_file: cannot read {path}: {error}.") from None
    tokens = [line.strip() for line in lines if line.strip() and not line.startswith(b"#")]
    if not tokens:
        raise InvalidArgument(f"--auth_token_file: {path} holds no token; expected one per line.")
    for number, token in enumerate(tokens, 1):
        if len(token) < _MIN_LENGTH or any(not 0x21 <= byte <= 0x7E for byte in token):
            raise InvalidArgument(
                f"--auth_token_file: token {number} of {path} must be at least {_MIN_LENGTH} "
                "printable ASCII characters without blanks, as `openssl rand -hex 32` makes."
            )
    return tokens
