"""The command-line arguments for a server's address and credentials."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gru_serving.client import Client, ClientOptions, connect
from gru_serving.client.metadata import ListedVersion
from gru_serving.commands.terminal import (
    NO_ANSWER,
    USAGE,
    explain_error,
    run_command,
    safe_text,
)
from gru_serving.errors import Code, InvalidArgument, ServingError

_NO_ANSWER = (
    Code.CANCELLED,
    Code.UNKNOWN,
    Code.DEADLINE_EXCEEDED,
    Code.PERMISSION_DENIED,
    Code.RESOURCE_EXHAUSTED,
    Code.INTERNAL,
    Code.UNAVAILABLE,
    Code.UNAUTHENTICATED,
)


_HINT_SECONDS = 3.0
_MOST_NAMES = 20


def add_connection_arguments(
    parser: argparse.ArgumentParser, url: str | None = "http://localhost:8501"
) -> None:
    """Add --url and the arguments of the connection.

    Args:
        parser: Parser of the command.
        url: The default; None for no default.
    """
    group = parser.add_argument_group("server")
    group.add_argument(
        "--url",
        default=url,
        help="http(s)://host:port for REST; grpc(s)://host:port, host:port or unix:/path for gRPC"
        + (" (default: %(default)s)" if url else ""),
    )
    group.add_argument(
        "--timeout",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="time to wait for an answer (default: %(default)g)",
    )
    group.add_argument(
        "--max_answer_bytes",
        type=int,
        default=ClientOptions.max_answer_bytes,
        metavar="N",
        help="largest answer to read (default: %(default)s)",
    )
    group.add_argument("--ca_file", metavar="PEM", help="certificates to trust, for TLS")
    group.add_argument("--cert_file", metavar="PEM", help="the client's certificate, for TLS")
    group.add_argument("--key_file", metavar="PEM", help="the key of --cert_file")
    group.add_argument(
        "--token_file", type=Path, metavar="FILE", help="file whose first line is a bearer token"
    )


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --model, --version and --label."""
    parser.add_argument(
        "--model",
        default="default",
        metavar="NAME",
        help="name on the server (default: %(default)s)",
    )
    parser.add_argument(
        "--version",
        type=int,
        metavar="N",
        help="version to ask (default: the highest that serves)",
    )
    parser.add_argument("--label", default="", help="version label to ask (default: none)")


def run_asking(
    parser: argparse.ArgumentParser,
    argv: Sequence[str],
    work: Callable[[argparse.Namespace], int],
    status: Callable[[Exception], int] | None = None,
    errors: tuple[type[Exception], ...] = (),
) -> int:
    """Run a command that asks a server; an unknown model or version is answered with those there.

    Args:
        parser: Parser of the command, without the arguments of the connection.
        argv: Arguments of the command.
        work: Function that gets the arguments and returns the exit status.
        status: Function that returns the exit status for an error; by default `exit_status`.
        errors: Further errors than those of servers, values and files.
    """
    add_connection_arguments(parser)
    return run_command(parser, argv, work, status or exit_status, errors, explain_asked)


def target_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the version and the label that the arguments name."""
    return {"version": arguments.version, "label": arguments.label}


def connect_as_told(arguments: argparse.Namespace) -> Client:
    """Connect as the arguments say.

    Raises:
        ValueError: The arguments cannot work.
    """
    return connect(arguments.url, **connection_options(arguments))


def connection_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `connect` that the arguments give."""
    token = None
    if arguments.token_file is not None:
        lines = arguments.token_file.read_text("utf-8").splitlines()
        token = lines[0].strip() if lines else ""
    return {
        "timeout": arguments.timeout,
        "max_answer_bytes": arguments.max_answer_bytes,
        "ca_file": arguments.ca_file,
        "cert_file": arguments.cert_file,
        "key_file": arguments.key_file,
        "token": token,
    }


def explain_asked(error: Exception, arguments: argparse.Namespace) -> str:
    """Explain an error, naming the versions that exist if another was asked for."""
    said = explain_error(error)
    unknown = isinstance(error, ServingError) and (
        error.code is Code.NOT_FOUND or "version label" in error.message
    )
    return said + safe_text(_what_there_is(arguments)) if unknown and arguments.url else said


def _what_there_is(arguments: argparse.Namespace) -> str:
    """Describe the models and versions on the server; empty if it has no list of them."""
    try:
        with connect(arguments.url, **connection_options(arguments), retries=0) as client:
            try:
                models = {one.name: one.versions for one in client.models(timeout=_HINT_SECONDS)}
            except ServingError:  # TF Serving has no list, and gRPC no request for one
                states = client.status(arguments.model, timeout=_HINT_SECONDS)
                found = tuple(ListedVersion(one.version, one.state) for one in states)
                models = {arguments.model: found}
    except (ServingError, ValueError, OSError):
        return ""
    if arguments.model not in models:
        return f"; the server has {_joined('model', list(models))}"
    shown = []
    for one in models[arguments.model]:
        labels = f" ({_joined('label', list(one.labels))})" if one.labels else ""
        if one.state == "AVAILABLE":
            shown.append(f"{one.version}{labels}")
    return f"; model {arguments.model} has {_joined('version', shown)}"


def _joined(what: str, names: list[str]) -> str:
    if not names:
        return f"no {what}"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    plural = "s" if len(names) > 1 else ""
    return f"the {what}{plural} {', '.join(names[:_MOST_NAMES])}{more}"


def exit_status(error: Exception) -> int:
    """Return USAGE for an error that the caller can fix, NO_ANSWER for one of the server."""
    return NO_ANSWER if isinstance(error, ServingError) and error.code in _NO_ANSWER else USAGE


def check_texts(texts: list[str], what: str = "texts") -> None:
    """Refuse texts with bytes that are not UTF-8, which Python marks when it reads arguments.

    Raises:
        InvalidArgument: A text has such a byte; the message names text and byte.
    """
    for number, text in enumerate(texts):
        for place, character in enumerate(text):
            if "\udc80" <= character <= "\udcff":
                byte = ord(character) - 0xDC00
                raise InvalidArgument(
                    f"{what}: expected UTF-8; text {number + 1} has the byte 0x{byte:02x} at "
                    f"character {place + 1}. Convert it first, as with `iconv -f latin1 -t utf-8`"
                )
