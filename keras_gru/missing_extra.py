"""Imports that name the extra of keras-gru to install where a package is missing."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def naming_extra(extra: str, *packages: str) -> Iterator[None]:
    """Turn a failed import inside the context into an error that names the package to install.

    Args:
        extra: Name of the extra that installs the packages.
        packages: Names of the packages; the failure of any other import stays as it is.

    Raises:
        ModuleNotFoundError: One of the packages is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in packages:
            raise
        raise ModuleNotFoundError(
            f"keras_gru needs {package}, which is not installed; install it with "
            f"pip install 'keras-gru[{extra}]'",
            name=error.name,
        ) from None
