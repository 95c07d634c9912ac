"""The body of an answer, counted and unpacked piece by piece: a server may lie about its size."""

from __future__ import annotations

import zlib

from gru_serving.client.errors import too_large_answer

ENCODING = "gzip"
"""What `AnswerBody` unpacks, for Accept-Encoding."""

_PIECE = 1 << 20
_GZIP = 16 + zlib.MAX_WBITS


class UnpackError(Exception):
    """A body is not what its Content-Encoding says."""


class AnswerBody:
    """Takes the pieces of a body as they come.

    Args:
        url: Of the server, for messages.
        encoding: The answer's Content-Encoding.
        announced: Its Content-Length; None where it has none.
        most: The largest body, unpacked, in bytes.

    Raises:
        ResourceExhausted: It is announced as larger.
        UnpackError: An encoding that was not asked for.
    """

    def __init__(self, url: str, encoding: str, announced: str | None, most: int) -> None:
        self._url, self._most = url, most
        self._content = bytearray()
        self._packed = encoding.lower() == ENCODING
        if not self._packed and encoding.lower() not in ("", "identity"):
            raise UnpackError(f"Content-Encoding {encoding[:80]!r}")
        self._unpacker = zlib.decompressobj(_GZIP)
        if announced is not None and announced.isdecimal() and int(announced[:20]) > most:
            raise too_large_answer(self._url, self._most)

    def add(self, piece: bytes) -> None:
        """Take the next piece.

        Raises:
            ResourceExhausted: The body is larger than allowed.
            UnpackError: It cannot be unpacked.
        """
        if not self._packed:
            self._append(piece)
            return
        try:
            while piece and not self._unpacker.eof:
                self._append(self._unpacker.decompress(piece, _PIECE))
                piece = self._unpacker.unconsumed_tail
        except zlib.error as error:
            raise UnpackError(str(error)) from None

    def whole(self) -> bytes:
        """All of it, when the last piece is in.

        Raises:
            UnpackError: The packed body is cut short.
        """
        if self._packed:
            try:
                while rest := self._unpacker.decompress(b"", _PIECE):
                    self._append(rest)
            except zlib.error as error:
                raise UnpackError(str(error)) from None
            if self._content and not self._unpacker.eof:
                raise UnpackError("it is cut short")
        return bytes(self._content)

    def _append(self, piece: bytes) -> None:
        if len(self._content) + len(piece) > self._most:
            raise too_large_answer(self._url, self._most)
        self._content += piece
