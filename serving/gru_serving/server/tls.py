"""TLS for both listeners, from TF Serving's SSLConfig."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import Any

from gru_serving.config.files import read_ssl_config
from gru_serving.errors import InvalidArgument, ServingError
from gru_serving.protos.ssl_config_pb2 import SSLConfig


def rest_context(path: str, flag: str = "rest_ssl_config_file") -> ssl.SSLContext:
    """What the REST listener needs.

    Args:
        path: Of an SSLConfig as text.
        flag: That named it, for messages.

    Raises:
        ServingError: The file is missing or no SSLConfig, or its key, certificate or CA is invalid.
    """
    config = read_ssl_config(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        _load_pair(context, config)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise _refused(
            path, flag, "server_key and server_cert are not a matching PEM pair", error
        ) from None
    if config.custom_ca:
        try:
            context.load_verify_locations(cadata=config.custom_ca)
        except (OSError, ValueError) as error:
            raise _refused(path, flag, "custom_ca contains no PEM certificate", error) from None
    if config.client_verify:
        if not config.custom_ca:
            raise _refused(path, flag, "client_verify needs a custom_ca")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def grpc_credentials(path: str) -> Any:
    """What the gRPC listener needs, from the file of `--ssl_config_file`; as `rest_context`."""
    import grpc

    # gRPC accepts anything, and then only says that it cannot listen.
    rest_context(path, "ssl_config_file")
    config = read_ssl_config(path)
    return grpc.ssl_server_credentials(
        [(config.server_key.encode(), config.server_cert.encode())],
        root_certificates=config.custom_ca.encode() or None,
        require_client_auth=config.client_verify,
    )


def _load_pair(context: ssl.SSLContext, config: SSLConfig) -> None:
    # Python reads keys from files only; the directory is readable by this user only.
    with tempfile.TemporaryDirectory(prefix="gru-serve-") as directory:
        key, certificate = Path(directory, "key"), Path(directory, "certificate")
        key.touch(mode=0o600)
        key.write_text(config.server_key)
        certificate.write_text(config.server_cert)
        context.load_cert_chain(certificate, key)


def _refused(path: str, flag: str, what: str, error: Exception | None = None) -> ServingError:
    reason = f" ({error})" if error is not None else ""
    return InvalidArgument(f"--{flag}: {path}: {what}{reason}")
