"""The extra of keras-gru that installs a package missing from an import."""

import contextlib
import importlib.util
from collections.abc import Iterator

_OWN_PACKAGES = ("keras_gru", "gru_training", "gru_serving")
# Everything else that `gru_serving` imports is installed with the clients.
_EXTRAS = {
    "flatbuffers": "serve",
    "grpc_health": "serve-light",
    "grpc_reflection": "serve-light",
    "matplotlib": "plot",
    "pyarrow": "tables",
    "onnxruntime": "serve-light",
    "prometheus_client": "serve-light",
    "ray": "ray",
    "starlette": "serve-light",
    "tensorflow": "serve",
    "uvicorn": "serve-light",
}
# What a flag or an argument asks for, whatever the command needs besides.
_ASKED_FOR = {"OpenSSL": "signing", "model_signing": "signing", "opentelemetry": "otel"}
_DISTRIBUTIONS = {
    "OpenSSL": "pyopenssl",
    "google": "protobuf",
    "google_crc32c": "google-crc32c",
    "grpc": "grpcio",
    "model_signing": "model-signing",
    "opentelemetry": "opentelemetry-sdk",
}


def missing_extra(error: ModuleNotFoundError, extra: str = "") -> str | None:
    """Name the missing package and how to install it, in one line.

    Args:
        error: Error of the import.
        extra: The extra to name; by default the smallest one with the package.

    Returns:
        A hint; None if no extra would help because a module of this project is missing.
    """
    package = (error.name or "").partition(".")[0]
    if package in ("", *_OWN_PACKAGES):
        return None
    extra = _ASKED_FOR.get(package) or extra or _EXTRAS.get(package, "client")
    return (
        f"needs {_DISTRIBUTIONS.get(package, package)}, which is not installed; install it with "
        f"pip install 'keras-gru[{extra}]'"
    )


def require_extra(extra: str) -> None:
    """Fail at once, rather than after a model has loaded, if packages of an extra are missing.

    Args:
        extra: `serve` or `plot`.

    Raises:
        ModuleNotFoundError: A package of the extra is not installed.
    """
    for package, installed_by in _EXTRAS.items():
        if installed_by == extra and importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)


@contextlib.contextmanager
def naming_extra(subject: str) -> Iterator[None]:
    """Turn a failed import inside the context into an error that names the package to install.

    Args:
        subject: Name of the part that needs the package; begins the message.

    Raises:
        ModuleNotFoundError: A package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (message := missing_extra(error)) is None:
            raise
        raise ModuleNotFoundError(f"{subject} {message}", name=error.name) from None
