"""Answers of servers that send too much, never finish, or send something that is no answer."""

import gzip
import time
import zlib

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n"


def endless(head, piece, pause=0.0):
    """A stream that never ends."""

    def send(connection):
        connection.sendall(head)
        while True:
            connection.sendall(piece)
            time.sleep(pause)

    return send


MEGABYTE = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
PACKED = zlib.compressobj(9, wbits=31)
PACKED = PACKED.compress(bytes(64 << 20)) + PACKED.flush()

TOO_LARGE = {
    "a length of 10 GB": endless(OK + b"Content-Length: 10000000000\r\n\r\n", b" " * 65536),
    "a length of 20 digits": endless(OK + b"Content-Length: " + b"9" * 20 + b"\r\n\r\n", b" "),
    "chunks without end": endless(CHUNKED + b"\r\n", MEGABYTE),
    "no length and no end": endless(OK + b"Connection: close\r\n\r\n", b" " * 65536),
    "gzip": endless(
        OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED), PACKED, 1
    ),
    "gzip of a refusal": endless(
        b"HTTP/1.1 400 Bad Request\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
        % len(PACKED),
        PACKED,
        1,
    ),
}

NEVER = {
    "100 Continue": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "103 Early Hints, slowly": endless(b"", b"HTTP/1.1 103 x\r\nLink: a\r\n\r\n", 0.05),
    "headers byte by byte": endless(OK + b"X: ", b"x", 0.05),
    "a body byte by byte": endless(OK + b"Content-Length: 9999\r\n\r\n", b" ", 0.05),
    "chunks byte by byte": endless(CHUNKED + b"\r\n", b"1\r\n \r\n", 0.05),
    "a chunk's length byte by byte": endless(CHUNKED + b"\r\n", b"0", 0.05),
    "trailers byte by byte": endless(CHUNKED + b"\r\n0\r\nX: ", b"x", 0.05),
    "silence": endless(b"", b"", 0.5),
    "silence after the head": endless(OK + b"Content-Length: 9\r\n\r\n", b"", 0.5),
}

STRANGE = {
    "endless headers": (endless(OK, b"X: " + b"x" * 4096 + b"\r\n"), "no HTTP"),
    "a header without end": (endless(OK + b"X: ", b"x" * 4096), "no HTTP"),
    "a redirect": (
        endless(b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n",
                b"", 1),
        "HTTP status 302",
    ),
    "an encoding not asked for": (
        endless(OK + b"Content-Encoding: gzip, gzip\r\nContent-Length: 2\r\n\r\n{}", b"", 1),
        "cannot be unpacked",
    ),
    "gzip cut short": (
        endless(OK + b"Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n"
                + gzip.compress(b"{}" * 99)[:20], b"", 1),
        "cannot be unpacked",
    ),
    "deep JSON": (
        endless(OK + b"Content-Length: 400000\r\n\r\n" + b'[{"a":' * 66666 + b"    ", b"", 1),
        "no JSON",
    ),
}  # fmt: skip
