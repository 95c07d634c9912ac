"""Errors of clients about servers that are down, refuse them, or are not TF Serving."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from gru_serving.errors import (
    Code,
    DeadlineExceeded,
    ResourceExhausted,
    ServingError,
    Unavailable,
    Unknown,
)

ResultT = TypeVar("ResultT")

# Ray's ActorDiedError and ActorUnavailableError over gRPC, and what stands for both over HTTP.
_LOST_REPLICA = re.compile(
    r"The actor (died unexpectedly|\w+ is unavailable: )|Internal Server Error$"
)


def read_answer(read: Callable[[Any], ResultT], answer: Any) -> ResultT:
    """Read an answer with `read`; report any failure as a malformed answer.

    Raises:
        Unknown: The answer is not of the form that it should have.
        ServingError: The call of `read` raised it.
    """
    try:
        return read(answer)
    except ServingError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise Unknown(f"the server's answer is of an unknown form ({said[:200]})") from error


def unexpected_answer(url: str, detail: str) -> Unknown:
    """Make the error for an answer that TF Serving would not give."""
    return Unknown(
        f"{url} does not answer as TensorFlow Serving does: {detail}. Check the address: REST "
        "listens on --rest_api_port (commonly 8501), gRPC on --port (commonly 8500)"
    )


def no_server(url: str, reason: str, flag: str) -> Unavailable:
    """Make the error for a server that cannot be reached."""
    return Unavailable(
        f"no server answers at {url} ({reason}). Start one with: gru-serve serve "
        f"--model_base_path=/path/of/the/model --{flag}"
    )


def closed_connection(url: str, reason: str) -> Unavailable:
    """Make the error for a connection that was closed without an answer.

    With TLS 1.3, a server refuses a missing client certificate only after the handshake, often
    silently. A server with TLS treats plain connections in the same way.
    """
    advice = (
        "asks for a client's certificate, give cert_file with key_file"
        if url.startswith(("https://", "grpcs://"))
        else "wants TLS, its address begins with https:// or grpcs://"
    )
    return Unavailable(f"{url} closed the connection ({reason}). If the server {advice}")


def lost_replica(url: str, said: str) -> Unavailable | None:
    """Return the error for a replica of Ray Serve that ended with the request in it.

    None for others.

    Ray's proxies answer INTERNAL and 500, and leave it to the client to ask another replica.

    Args:
        url: URL of the proxy.
        said: Text of the error, or body of the answer.
    """
    if _LOST_REPLICA.match(said) is None:
        return None
    return Unavailable(
        f"{url} gave up the request, as Ray Serve does when the replica that has it ends: "
        f"{said.splitlines()[0]}"
    )


def refused_certificate(url: str, reason: str) -> ServingError:
    """Make the error for a TLS handshake that failed."""
    return ServingError(
        f"{url}: no secure connection ({reason}). Give the certificate to trust as ca_file, and "
        "cert_file with key_file where the server asks for a client's certificate; a server "
        "without TLS has http:// or grpc:// addresses",
        Code.UNAUTHENTICATED,
    )


def refused_token(url: str, code: Code, reason: str, sent: bool) -> ServingError:
    """Make the error for a server that requires a token or refuses the one sent."""
    advice = (
        "the token given is not accepted: check that it is complete and not revoked"
        if sent
        else "the server wants a token: give it as token=..., or --token_file"
    )
    return ServingError(f"{url} refuses the request ({reason}); {advice}", code)


def too_slow(url: str, seconds: float) -> DeadlineExceeded:
    """Make the error for a server that does not answer in time."""
    shown = f"{seconds:.1f}" if seconds >= 1 else f"{seconds:.2g}"
    return DeadlineExceeded(
        f"{url} did not answer within {shown} s; allow more with timeout=..., or send less"
    )


def too_large_answer(url: str, most: int) -> ResourceExhausted:
    """Make the error for an answer that exceeds the size limit."""
    return ResourceExhausted(
        f"the answer of {url} is larger than {most:,} bytes; allow more with max_answer_bytes=... "
        "or --max_answer_bytes, or ask for less"
    )
