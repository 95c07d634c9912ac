"""The options of a client: connection, timeouts and retries."""

import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ClientOptions:
    """Settings of a client, the same for both transports.

    Attributes:
        timeout: Seconds allowed for a call where the call does not say, retries included.
        retries: Further tries while the server is unavailable, with growing waits, within the
            time allowed. No other error is tried again.
        max_batch_size: Most rows to send in one request; larger inputs are split and the answers
            put together. None for no limit but the server's, which is learnt from its refusal.
        ca_file: Certificates (PEM) to trust, for https and grpcs; the system's when None.
        cert_file: The client's own certificate (PEM), for servers that ask for one.
        key_file: The private key (PEM) of `cert_file`.
        token: Token that is sent as `authorization: Bearer <token>` with every request.
        max_answer_bytes: The largest answer to read, unpacked; a server may send anything.
        balance: Over gRPC, ask all addresses of the host's name in turn: for a name of many
            replicas, as that of a headless service in Kubernetes.
        max_under_way: Calls that a client for an event loop has under way at once; further calls
            wait in the client, within their timeout.
    """

    timeout: float = 30.0
    retries: int = 3
    max_batch_size: int | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    token: str | None = None
    max_answer_bytes: int = 256 << 20
    balance: bool = False
    max_under_way: int = 100

    def __post_init__(self) -> None:
        if not self.timeout > 0:  # NaN is not
            raise ValueError(f"timeout must be positive; got {self.timeout}")
        if self.retries < 0:
            raise ValueError(f"retries must not be negative; got {self.retries}")
        if self.max_batch_size is not None and self.max_batch_size < 1:
            raise ValueError(f"max_batch_size must be at least 1; got {self.max_batch_size}")
        if self.max_under_way < 1:
            raise ValueError(f"max_under_way must be at least 1; got {self.max_under_way}")
        if not 1 <= self.max_answer_bytes < 1 << 31:  # gRPC counts no further
            raise ValueError(
                f"max_answer_bytes must be from 1 to 2^31 - 1; got {self.max_answer_bytes}"
            )
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError(
                "cert_file and key_file belong together; "
                f"got cert_file={self.cert_file!r}, key_file={self.key_file!r}"
            )
        if self.token is not None and (
            not self.token or not self.token.isascii() or any(c <= " " for c in self.token)
        ):
            raise ValueError("token must be visible ASCII characters without blanks")

    def pem(self, name: str) -> bytes | None:
        """Read `ca_file`, `cert_file` or `key_file`.

        Raises:
            ValueError: The file cannot be read or holds no PEM.
        """
        path = getattr(self, name)
        if path is None:
            return None
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise ValueError(f"{name} {path}: cannot be read ({error.strerror})") from None
        if b"-----BEGIN " not in content:
            raise ValueError(f"{name} {path}: expected PEM (-----BEGIN ...), found none")
        return content

    def ssl_context(self) -> ssl.SSLContext:
        """Return the TLS context for https URLs.

        Raises:
            ValueError: A file cannot be used.
        """
        for name in ("ca_file", "cert_file", "key_file"):
            self.pem(name)
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.cert_file is not None:
                context.load_cert_chain(self.cert_file, self.key_file)
        except (ssl.SSLError, OSError) as error:
            raise ValueError(f"certificate files cannot be used: {error}") from None
        return context
